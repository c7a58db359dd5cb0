"""When a run answers over HTTP: as soon as it begins, if the address is free; if not, once it owns the replica.

The address may be that of another run of the same configuration. Then what matters is who owns the replica, and only after that
who may be asked about it.
"""

from types import TracebackType
from typing import Protocol, Self

from applier.errors import ConfigError
from applier.telemetry.monitor import Monitor
from applier.telemetry.server import StatusApp, StatusServer


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
    def is_chosen(self) -> bool:
        """Whether the operator has set the address."""
        ...

    @property
    def unhealthy_after_s(self) -> float:
        """How long the loop may give no sign of life."""
        ...


class Reception:
    """The HTTP server of one run."""

    def __init__(self, settings: ReceptionSettings, monitor: Monitor) -> None:
        self._settings, self._monitor = settings, monitor
        self._server: StatusServer | None = None
        if settings.listen is not None:
            app = StatusApp(lambda: monitor.live, settings.unhealthy_after_s)
            self._server = StatusServer(settings.listen.host, settings.listen.port, app)

    def open(self) -> None:
        """Listen, unless the address is in use. ConfigError if it is no address of this machine."""
        try:
            self._start()
        except ConfigError as error:
            if error.facts["kind"] != "in_use":
                raise

    def insist(self) -> None:
        """Listen, now that the replica is owned. ConfigError if an address that the operator has set is in use.

        A run is not kept from its work because the default one is: that is noted, and it answers nobody.
        """
        try:
            self._start()
        except ConfigError as error:
            if self._settings.is_chosen:
                raise
            self._monitor.note(
                "does not answer over http: the default address is in use", host=error.facts["host"], port=error.facts["port"]
            )

    def _start(self) -> None:
        if self._server is not None and not self._server.address:
            self._server.start()
            self._monitor.note("answers over http", address=self._server.address)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Answer no more."""
        if self._server is not None:
            self._server.close()
