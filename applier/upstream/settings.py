"""Where upstream is. Pure values: they cross to executors, which open the sessions."""

from dataclasses import dataclass, field

from applier.mysql_client.tls import Tls
from applier.sinks.settings import SinkSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSettings:
    """Upstream's TiDB. ``time_zone``: that of TIMESTAMP text on the wire. ``repr`` never shows the password."""

    url: str = field(repr=False)
    tls: Tls = field(default_factory=Tls)
    time_zone: str = "UTC"

    def session(self) -> SinkSettings:
        """Return the settings of a session: upstream is a server of the MySQL family."""
        return SinkSettings(url=self.url, tls=self.tls, time_zone=self.time_zone, name="upstream")
