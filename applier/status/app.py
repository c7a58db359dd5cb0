"""The WSGI application of a run: which path gets which answer, who may ask, and what pages are told at the end of the run.

A web site can point a name of its own at 127.0.0.1 (DNS rebinding), and its scripts may then read what is answered under that name. So
the page and its data are answered under known names only. An IP address is no name that anybody could point elsewhere.
"""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hmac import compare_digest
from http import HTTPStatus
from ipaddress import ip_address
from threading import Event
from typing import TYPE_CHECKING, Any, Final, Self

from prometheus_client import make_wsgi_app

from applier.model.errors import ApplierError
from applier.model.remedy import Remedy
from applier.status.history import RecentHistory
from applier.status.page import CONTENT_SECURITY_POLICY, PAGE
from applier.status.replica_access import ReplicaAccess
from applier.status.run_document import run_document
from applier.telemetry.metric import registry_of
from applier.telemetry.run_state import RunState

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

JSON: Final = "application/json; charset=utf-8"
HTML: Final = "text/html; charset=utf-8"
_ALWAYS: Final = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request gets. ``headers`` are added to those of every answer."""

    status: HTTPStatus
    body: bytes
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, value: Any, status: HTTPStatus = HTTPStatus.OK, *headers: tuple[str, str]) -> Self:
        """Return an answer in JSON."""
        return cls(status, json.dumps(value).encode() + b"\n", headers=headers)

    @classmethod
    def refusal(cls, status: HTTPStatus, error: str, remedy: Remedy, *headers: tuple[str, str]) -> Self:
        """Return why a request is refused, and what to do."""
        return cls.of({"error": error, "remedy": remedy}, status, *headers)

    def send(self, start_response: "StartResponse", *, is_head: bool) -> Iterable[bytes]:
        """Send the headers and return the body; none for HEAD, which has the headers of GET."""
        described = [("Content-Type", self.content_type), ("Content-Length", str(len(self.body)))]
        start_response(f"{self.status.value} {self.status.phrase}", [*described, *_ALWAYS, *self.headers])
        return [] if is_head else [self.body]


LOOPBACK_NAMES: Final = frozenset({"localhost", "ip6-localhost"})
_SCHEME: Final = "bearer "


def names_of(host: str, more: Iterable[str]) -> frozenset[str]:
    """Return the names that a browser may use: those of loopback, the configured host, and ``more``."""
    return LOOPBACK_NAMES | {name.casefold().rstrip(".") for name in (host, *more)}


def is_known_host(header: str, names: frozenset[str]) -> bool:
    """Return whether the Host header has an IP address or one of ``names``. Without one no browser asks."""
    if not header:
        return True
    host = _without_port(header.strip()).casefold().rstrip(".")
    return host in names or _is_address(host)


def has_token(header: str, token: str) -> bool:
    """Return whether the Authorization header carries the token. It takes the same time however many characters are right."""
    if not header.casefold().startswith(_SCHEME):
        return False
    return compare_digest(header[len(_SCHEME) :].strip().encode("utf-8", "replace"), token.encode())


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


ASKS_S: Final = 5.0
"""A page asks every second: somebody who asked this recently will ask again."""


class EndNotice:
    """Adds the end of the run to its status. Thread-safe: each field is replaced at once."""

    def __init__(self) -> None:
        self._end: dict[str, Any] | None = None
        self._asked_s: float | None = None
        self._read = Event()

    def end(self, error: BaseException | None) -> None:
        """Record how the run has ended. The first error counts: one that happens while the run closes is not the reason."""
        if self._end is None:
            self._end = _facts(error)

    def told(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return the status that somebody has asked for, with the end of the run as ``end``: None while it runs."""
        self._asked_s = time.monotonic()
        end = self._end
        if end is None:
            return document | {"end": None}
        self._read.set()
        return document | {"end": end, "is_ready": False}

    def wait_until_read(self, at_most_s: float) -> None:
        """Wait until a page has read the end, if one has asked for the status in the last ``ASKS_S``."""
        if self._asked_s is not None and time.monotonic() - self._asked_s < ASKS_S:
            self._read.wait(at_most_s)


def _facts(error: BaseException | None) -> dict[str, Any]:
    if error is None:
        return {"exit_code": 0, "error": None, "error_class": None, "remedy": None}
    kind = type(error).__name__
    if isinstance(error, ApplierError):
        facts = ", ".join(f"{name}={value}" for name, value in error.facts.items())
        text = error.message + (f" [{facts}]" if facts else "")
        return {"exit_code": error.exit_code, "error": text, "error_class": kind, "remedy": error.remedy}
    return {"exit_code": None, "error": kind, "error_class": kind, "remedy": None}


if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

COMMANDS: Final = frozenset({"/api/pause", "/api/resume"})
OPEN: Final = frozenset({"/metrics", "/healthz", "/readyz"})
"""Asked by scrapers and supervisors under whatever name they use. They show no names of tables, statements or errors."""
_UNKNOWN_HOST: Final = Remedy("status.add-host-name", "Add the name to [http] names, or use the IP address")
_NO_TOKEN: Final = Remedy("status.set-token-file", "Set [http] token_file, or use `applier pause` and `applier resume`")
_WRONG_TOKEN: Final = Remedy(
    "status.send-token", "Send the header Authorization: Bearer TOKEN with the token of [http] token or token_file"
)
_PATHS: Final = Remedy("status.use-known-path", "Use /, /status, /history, /ddls, /quarantine, /last-end, /metrics, /healthz or /readyz")


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
    return Answer.refusal(
        HTTPStatus.METHOD_NOT_ALLOWED, f"only {methods} is allowed here", Remedy("status.use-method", "Use that method"), ("Allow", methods)
    )


def _status(is_well: bool) -> HTTPStatus:  # noqa: FBT001 - its only argument
    return HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
