"""When a run answers over HTTP: as soon as it begins, if the address is free; if not, as soon as it becomes so.

The address may be that of another run of the same configuration: one that ends just now, or a frozen one from which this run took the
replica over. Following the feed matters more than answering, so a run never ends because of an address that is in use.
"""

from types import TracebackType
from typing import Protocol, Self

from applier.model.errors import ConfigError
from applier.status.server import StatusApp, StatusServer
from applier.telemetry.log_event import LogEvent
from applier.telemetry.monitor import Monitor


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


class ReceptionSettings(Protocol):
    """``[http]`` of the configuration."""

    @property
    def listen(self) -> Address | None:
        """Where to listen; None: nowhere."""
        ...

    @property
    def unhealthy_after_s(self) -> float:
        """How long the loop may give no sign of life."""
        ...


class Reception:
    """The HTTP server of one run."""

    def __init__(self, settings: ReceptionSettings, monitor: Monitor) -> None:
        self._monitor = monitor
        self._server: StatusServer | None = None
        self._is_told = False
        if settings.listen is not None:
            app = StatusApp(monitor.state, settings.unhealthy_after_s)
            self._server = StatusServer(settings.listen.host, settings.listen.port, app)

    def open(self) -> None:
        """Listen, unless the address is in use. ConfigError if it is no address of this machine."""
        try:
            self._start()
        except ConfigError as error:
            if error.facts["kind"] != "in_use":
                raise

    def keep_open(self) -> None:
        """Listen, unless it does; an address that is in use is told once. To be called again and again once the replica is owned."""
        try:
            self._start()
        except ConfigError as error:
            if not self._is_told:
                self._is_told = True
                facts = {name: error.facts[name] for name in ("host", "port", "reason")}
                self._monitor.note(LogEvent.HTTP_ADDRESS_IN_USE, **facts)

    def _start(self) -> None:
        if self._server is not None and not self._server.address:
            self._server.start()
            self._monitor.note(LogEvent.HTTP_LISTENING, address=self._server.address)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
