"""The HTTP endpoint of a run: open from its start if the address is free, else as soon as it becomes free.

Another run of the same configuration may still use the address: one that is just ending, or a frozen one that this run has taken the
replica over from. Following the feed matters more than answering, so an address in use never stops a run.
"""

from types import TracebackType
from typing import Final, Protocol, Self

from applier.model.errors import ConfigError
from applier.status.app import PageParts, StatusApp
from applier.status.caller import names_of
from applier.status.history import RecentHistory
from applier.status.replica_access import ReplicaAccess
from applier.status.server import StatusServer
from applier.telemetry.log_event import LogEvent
from applier.telemetry.monitor import Monitor

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
            if error.facts["kind"] != "in_use":
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
