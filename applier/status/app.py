"""The WSGI application of a run: which path gets which answer.

It reads the frozen state of the run; what lies in the sink it asks over connections of its own. Its threads never touch the engine.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from prometheus_client import make_wsgi_app

from applier.model.errors import ApplierError
from applier.status.answer import HTML, Answer
from applier.status.caller import LOOPBACK_NAMES, has_token, is_known_host
from applier.status.end_notice import EndNotice
from applier.status.history import RecentHistory
from applier.status.page import CONTENT_SECURITY_POLICY, PAGE
from applier.status.replica_access import ReplicaAccess
from applier.status.run_document import run_document
from applier.telemetry.metric import registry_of
from applier.telemetry.run_state import RunState

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

COMMANDS: Final = frozenset({"/api/pause", "/api/resume"})
OPEN: Final = frozenset({"/metrics", "/healthz", "/readyz"})
"""Asked by scrapers and supervisors under whatever name they use. They show no names of tables, statements or errors."""
_UNKNOWN_HOST: Final = "Add the name to [http] names, or use the IP address"
_NO_TOKEN: Final = "Set [http] token_file, or use `applier pause` and `applier resume`"  # noqa: S105 - a remedy
_WRONG_TOKEN: Final = "Send the header Authorization: Bearer TOKEN with the token of [http] token or token_file"  # noqa: S105 - a remedy
_PATHS: Final = "Use /, /status, /history, /ddls, /quarantine, /last-end, /metrics, /healthz or /readyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageParts:
    """What the page needs beside the state. ``names``: host names that a browser may use; ``token``: "" refuses commands."""

    access: ReplicaAccess | None = None
    history: RecentHistory | None = None
    names: frozenset[str] = LOOPBACK_NAMES
    token: str = field(default="", repr=False)


class StatusApp:
    """The WSGI application. ``unhealthy_after_s``: how long the run may make no progress before ``/healthz`` answers 503."""

    def __init__(self, state: Callable[[], RunState], unhealthy_after_s: float, parts: PageParts | None = None) -> None:
        self._state, self._unhealthy_after_s = state, unhealthy_after_s
        self._parts = parts or PageParts()
        self._end_notice = EndNotice()
        self._metrics = make_wsgi_app(registry_of(state))

    def end(self, error: BaseException | None) -> None:
        """Say from now on that the run has ended, and with which error."""
        self._end_notice.end(error)

    def wait_until_read(self, at_most_s: float) -> None:
        """Wait until somebody who was asking for the status has heard of the end."""
        self._end_notice.wait_until_read(at_most_s)

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request."""
        path, method = environ.get("PATH_INFO", ""), environ["REQUEST_METHOD"]
        is_head = method == "HEAD"
        if path == "/metrics" and method in {"GET", "HEAD"}:
            # The library's app negotiates the format and compresses. It knows GET only.
            metrics: Iterable[bytes] = self._metrics(environ | {"REQUEST_METHOD": "GET"}, start_response)
            return [] if is_head else metrics
        return self._answer(environ, method, path).send(start_response, is_head=is_head)

    def _answer(self, environ: "WSGIEnvironment", method: str, path: str) -> Answer:
        if path not in OPEN and not is_known_host(environ.get("HTTP_HOST", ""), self._parts.names):
            return Answer.refusal(HTTPStatus.FORBIDDEN, "this host name is not known", _UNKNOWN_HOST)
        if path in COMMANDS:
            return self._command(environ, method, path)
        if method not in {"GET", "HEAD"}:
            return _not_allowed("GET, HEAD")
        return self._of_the_page(path) or self._of_the_state(path)

    def _of_the_page(self, path: str) -> Answer | None:
        parts = self._parts
        match path:
            case "/" | "/index.html":
                # The page shows its buttons only where they work.
                policy = (("Content-Security-Policy", CONTENT_SECURITY_POLICY),)
                return Answer(HTTPStatus.OK, PAGE[self._takes_commands], HTML, policy)
            case "/history":
                return Answer.of(parts.history.document() if parts.history else {})
            case "/ddls" | "/quarantine" | "/last-end":
                return self._of_the_sink(path)
            case _:
                return None

    def _of_the_state(self, path: str) -> Answer:
        state = self._state()
        # Computed at the request: a loop that hangs makes no new state that could say so.
        is_alive = state.is_alive(time.monotonic(), self._unhealthy_after_s)
        match path:
            case "/healthz":
                return Answer.of({"is_alive": is_alive, "phase": state.phase}, _status(is_alive))
            case "/readyz":
                return Answer.of({"is_ready": state.is_ready, "phase": state.phase}, _status(state.is_ready))
            case "/status":
                return Answer.of(self._end_notice.told(run_document(state, unix_s=time.time(), is_alive=is_alive)))
            case _:
                return Answer.refusal(HTTPStatus.NOT_FOUND, "unknown path", _PATHS)

    def _of_the_sink(self, path: str) -> Answer:
        access = self._parts.access
        if access is None:
            return Answer.refusal(HTTPStatus.NOT_FOUND, "this run has no sink", _PATHS)
        try:
            questions = {"/ddls": access.ddls, "/quarantine": access.quarantine, "/last-end": access.last_end}
            return Answer.of(questions[path]())
        except ApplierError as error:
            return Answer.refusal(HTTPStatus.SERVICE_UNAVAILABLE, error.message, error.remedy)

    @property
    def _takes_commands(self) -> bool:
        return bool(self._parts.token) and self._parts.access is not None

    def _command(self, environ: "WSGIEnvironment", method: str, path: str) -> Answer:
        parts = self._parts
        if method != "POST":
            return _not_allowed("POST")
        if not parts.token or parts.access is None:
            return Answer.refusal(HTTPStatus.FORBIDDEN, "no token is configured", _NO_TOKEN)
        if not has_token(environ.get("HTTP_AUTHORIZATION", ""), parts.token):
            asked = ("WWW-Authenticate", 'Bearer realm="applier"')
            return Answer.refusal(HTTPStatus.UNAUTHORIZED, "the token is missing or wrong", _WRONG_TOKEN, asked)
        try:
            if path == "/api/pause":
                parts.access.pause(f"http from {environ.get('REMOTE_ADDR', 'unknown')}")
            else:
                parts.access.resume()
        except ApplierError as error:
            return Answer.refusal(HTTPStatus.SERVICE_UNAVAILABLE, error.message, error.remedy)
        return Answer.of({"done": path.rpartition("/")[2]})


def _not_allowed(methods: str) -> Answer:
    return Answer.refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"only {methods} is allowed here", "Use that method", ("Allow", methods))


def _status(is_well: bool) -> HTTPStatus:  # noqa: FBT001 - its only argument
    return HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
