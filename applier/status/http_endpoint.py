"""The HTTP endpoint of a run: open from its start if the address is free, else as soon as it becomes free.

It shows no secrets and listens on loopback by default: nobody is asked for a password, except for the two commands, which need a token.
"""

import errno
import logging
import sys
from ipaddress import ip_address
from socket import AF_INET6
from socketserver import TCPServer, ThreadingMixIn
from threading import BoundedSemaphore, Thread
from types import TracebackType
from typing import Any, Final, Protocol, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from applier.model.errors import ConfigError
from applier.model.failure import FailureKind
from applier.model.remedy import Remedy
from applier.status.app import PageParts, StatusApp, names_of
from applier.status.history import RecentHistory
from applier.status.replica_access import ReplicaAccess
from applier.telemetry.log import LOGGER_NAME
from applier.telemetry.log_event import LogEvent
from applier.telemetry.monitor import Monitor

LOGGER: Final = logging.getLogger(LOGGER_NAME)
REQUEST_TIMEOUT_S: Final = 10.0
"""The connection of a client that sends nothing for so long is closed."""
MOST_CONNECTIONS: Final = 200
"""More at once are closed unanswered: each takes a thread and a file descriptor of the run, which needs its own."""


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
        """Answer, and make room for the next one."""
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
        """Log our own defects only: a load balancer that connects and closes again is no error."""
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
"""How long the end of a run waits for a page that asks every second. Nobody waits where no page is open."""


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
        """Host names, beside that of ``listen``, under which browsers may ask."""
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
            # In use: perhaps by a run that owns the replica. The sink says so first, with the owner's name; this run must
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
