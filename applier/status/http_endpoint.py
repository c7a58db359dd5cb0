"""The HTTP endpoint of a run: open from its start if the address is free, else as soon as it becomes free.

It shows no secrets and listens on loopback by default: no password is needed, except for the two commands, which need a token.
"""

import errno
import json
import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hmac import compare_digest
from http import HTTPStatus
from ipaddress import ip_address
from socket import AF_INET6
from socketserver import TCPServer, ThreadingMixIn
from threading import BoundedSemaphore, Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from applier.model.errors import ApplierError, ConfigError, Remedy
from applier.model.failure import FailureKind
from applier.status.page import CONTENT_SECURITY_POLICY, PAGE
from applier.status.replica_access import ReplicaAccess
from applier.status.run_document import run_document
from applier.telemetry.log import LOGGER_NAME
from applier.telemetry.log_event import LogEvent
from applier.telemetry.metric import registry_of
from applier.telemetry.monitor import Monitor
from applier.telemetry.run_state import RunState

# --- history ---------------------------------------------------------------------------------------------------------
# The last hour of a run, kept in memory: how old the replica was, and how many rows a second it wrote.
#
# A thread of its own takes a sample every few seconds, whether anybody asks or not.


SAMPLE_S: Final = 5.0
"""Between two samples: 720 of them in an hour, some 30 kB as JSON."""
KEPT_S: Final = 3600.0


class Sample(NamedTuple):
    """A run at one point in time. ``lag_s`` is None before the first checkpoint; ``rows_per_s`` is the mean since the sample before."""

    unix_s: float
    lag_s: float | None
    rows_per_s: float


class RecentHistory:
    """The samples of the last hour, taken by ``sample`` or by the thread between ``start`` and ``close``."""

    def __init__(self, state: Callable[[], RunState], *, every_s: float = SAMPLE_S) -> None:
        self._state, self._every_s = state, every_s
        self._samples: deque[Sample] = deque(maxlen=int(KEPT_S / every_s))
        self._last: tuple[float, int] | None = None
        self._ended = Event()
        self._thread: Thread | None = None

    def sample(self, unix_s: float, now_s: float) -> None:
        """Add how the run is now. ``now_s`` is a clock that never steps back."""
        state = self._state()
        rows = state.counts.rows
        before_s, before = self._last or (now_s, rows)
        rate = (rows - before) / (now_s - before_s) if now_s > before_s else 0.0
        self._last = (now_s, rows)
        lag_s = state.lag_s(unix_s)
        self._samples.append(Sample(round(unix_s, 1), None if lag_s is None else round(lag_s, 3), round(max(0.0, rate), 1)))

    def document(self) -> dict[str, Any]:
        """Return the samples as columns, which is what a chart takes."""
        samples = tuple(self._samples)
        return {
            "every_s": self._every_s,
            "unix_s": [each.unix_s for each in samples],
            "lag_s": [each.lag_s for each in samples],
            "rows_per_s": [each.rows_per_s for each in samples],
        }

    def start(self) -> None:
        """Take samples from now on."""
        self._thread = Thread(target=self._follow, name="applier-history", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more samples."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _follow(self) -> None:
        while True:
            self.sample(time.time(), time.monotonic())
            if self._ended.wait(self._every_s):
                return


# --- app -------------------------------------------------------------------------------------------------------------
# The WSGI application of a run: which path gets which answer, who may ask, and what pages are told at the end of the run.
#
# A web site can point a name of its own at 127.0.0.1 (DNS rebinding), and its scripts may then read what is answered under that name. So
# the page and its data are answered under known names only. An IP address is no name that anybody could point elsewhere.


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
    """What one request gets. ``headers`` are added to the headers of every answer."""

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
    """Return the names that a browser may use: the names of loopback, the configured host, and ``more``."""
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
"""A page asks every second: a client that asked this recently will ask again."""


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
        """Return the status that someone has asked for, with the end of the run as ``end``: None while it runs."""
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
"""Asked by scrapers and supervisors under whatever name they use. These answers show no names of tables, statements or errors."""
_UNKNOWN_HOST: Final = Remedy("status.add-host-name", "Add the name to [http] names, or use the IP address")
_NO_TOKEN: Final = Remedy("status.set-token-file", "Set [http] token_file, or use `applier pause` and `applier resume`")
_WRONG_TOKEN: Final = Remedy(
    "status.send-token", "Send the header Authorization: Bearer TOKEN with the token of [http] token or token_file"
)
_PATHS: Final = Remedy("status.use-known-path", "Use /, /status, /history, /ddls, /quarantine, /last-end, /metrics, /healthz or /readyz")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageParts:
    """What the page needs in addition to the state. ``names``: host names that a browser may use; ``token``: "" refuses commands."""

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
        """Wait until a client that asks for the status has read the end."""
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
        # Computed at the request: a loop that hangs makes no new state that shows it.
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


# --- http endpoint ---------------------------------------------------------------------------------------------------


LOGGER: Final = logging.getLogger(LOGGER_NAME)
REQUEST_TIMEOUT_S: Final = 10.0
"""The connection of a client that sends nothing for so long is closed."""
MOST_CONNECTIONS: Final = 200
"""Further ones are closed unanswered: each takes a thread and a file descriptor of the run, which needs its own."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._free = BoundedSemaphore(MOST_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, unless there are too many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:  # no thread can be started
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and free the slot for the next one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def server_bind(self) -> None:
        """Bind without a look-up of our own name, which the library would make: where DNS is slow that takes half a minute."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def handle_error(self, request: object, client_address: object) -> None:
        """Log our own defects only: a load balancer that connects and closes again is not an error."""
        del request, client_address
        error = sys.exception()
        # A health check that connects and resets gave sixteen lines of traceback every few seconds.
        if not isinstance(error, OSError):
            LOGGER.warning(LogEvent.HTTP_REQUEST_FAILED, exc_info=error)


class _Server6(_Server):
    address_family = AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = REQUEST_TIMEOUT_S

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the library
        """Log no requests: there is a scrape every few seconds."""

    def address_string(self) -> str:
        """Return the address without a DNS look-up."""
        return str(self.client_address[0])


class StatusServer:
    """Serves the app on ``host``:``port`` (0: any free port) from ``start`` to ``close``."""

    def __init__(self, host: str, port: int, app: StatusApp) -> None:
        self._host, self._port, self._app = host, port, app
        self._server: WSGIServer | None = None
        self._thread: Thread | None = None

    @property
    def address(self) -> str:
        """Where it listens, as ``host:port``; "" if it does not."""
        if self._server is None:
            return ""
        return f"[{self._host}]:{self._server.server_port}" if ":" in self._host else f"{self._host}:{self._server.server_port}"

    def start(self) -> None:
        """Start to listen, if it does not yet. ConfigError (``kind`` "in_use" or "address") if it cannot use the address."""
        if self._server is not None:
            return
        try:
            self._server = make_server(self._host, self._port, self._app, _Server6 if _is_v6(self._host) else _Server, _Handler)
        except (OSError, UnicodeError) as error:
            raise _refused(self._host, self._port, error) from error
        self._thread = Thread(target=self._server.serve_forever, name="applier-http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server = self._thread = None

    def __enter__(self) -> Self:
        """Return itself; it listens after ``start``."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close."""
        self.close()


def _is_v6(host: str) -> bool:
    try:
        return ip_address(host).version == 6
    except ValueError:
        return False


def _refused(host: str, port: int, error: Exception) -> ConfigError:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        message, kind = "the address of the HTTP server is in use", FailureKind.IN_USE
        remedy = Remedy(
            "status.free-http-port", 'Stop the process that uses it (another applier?), or set [http] listen to another port, or to "off"'
        )
    else:
        message, kind = "the HTTP server cannot listen at this address", FailureKind.ADDRESS
        remedy = Remedy("status.set-http-listen", "Set [http] listen to an address of this machine, like 127.0.0.1:9464")
    return ConfigError(message, remedy=remedy, kind=kind, key="http.listen", host=host, port=port, reason=str(error))


FAREWELL_S: Final = 2.0
"""How long the end of a run waits for a page that asks every second. Without an open page there is no wait."""


class Address(Protocol):
    """A host and a port."""

    @property
    def host(self) -> str:
        """The host."""
        ...

    @property
    def port(self) -> int:
        """The port; 0: any free one."""
        ...


class EndpointSettings(Protocol):
    """``[http]`` of the configuration."""

    @property
    def listen(self) -> Address | None:
        """Where to listen; None: the endpoint is off."""
        ...

    @property
    def unhealthy_after_s(self) -> float:
        """How long the run may make no progress before ``/healthz`` answers 503."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Host names, in addition to the one in ``listen``, under which browsers may ask."""
        ...

    @property
    def secret(self) -> str:
        """The token of commands; "": there are none."""
        ...


class HttpEndpoint:
    """The HTTP server of one run."""

    def __init__(self, settings: EndpointSettings, monitor: Monitor, access: ReplicaAccess | None = None) -> None:
        self._monitor = monitor
        self._server: StatusServer | None = None
        self._app: StatusApp | None = None
        self._is_reported = False
        self._history = RecentHistory(monitor.state)
        if settings.listen is not None:
            names = names_of(settings.listen.host, settings.names)
            parts = PageParts(access=access, history=self._history, names=names, token=settings.secret)
            self._app = StatusApp(monitor.state, settings.unhealthy_after_s, parts)
            self._server = StatusServer(settings.listen.host, settings.listen.port, self._app)

    def open(self) -> None:
        """Listen, unless the address is in use. ConfigError if it is not an address of this machine."""
        try:
            self._start()
        except ConfigError as error:
            # In use: perhaps by a run that owns the replica. The sink reports it first, with the owner's name; this run must
            # not end before that.
            if error.kind is not FailureKind.IN_USE:
                raise

    def keep_open(self) -> None:
        """Listen if it does not yet; report an address in use once. The daemon calls it before each cycle."""
        try:
            self._start()
        except ConfigError as error:
            # Called before each cycle, many times a second.
            if not self._is_reported:
                self._is_reported = True
                facts = {name: error.facts[name] for name in ("host", "port", "reason")}
                self._monitor.note(LogEvent.HTTP_ADDRESS_IN_USE, **facts)

    def report_end(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Say from now on how the run has ended. The run calls it before it closes what takes long to close."""
        del kind, trace
        if self._app is not None:
            self._app.end(error)

    def _start(self) -> None:
        if self._server is not None and not self._server.address:
            self._server.start()
            self._monitor.note(LogEvent.HTTP_LISTENING, address=self._server.address)

    def __enter__(self) -> Self:
        """Begin the history."""
        if self._server is not None:
            self._history.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Tell an open page how the run has ended, and close."""
        self._history.close()
        self.report_end(kind, error, trace)
        if self._server is not None and self._app is not None:
            self._app.wait_until_read(FAREWELL_S)
            self._server.close()
