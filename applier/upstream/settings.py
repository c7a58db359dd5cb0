"""Where upstream is. Pure values: they cross to executors, which open the sessions."""

from dataclasses import dataclass, field

from applier.database.session import Tls
from applier.mysql.session import ServerAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamSettings:
    """Upstream's TiDB. ``time_zone``: that of TIMESTAMP text on the wire. ``repr`` never shows the password."""

    url: str = field(repr=False)
    tls: Tls = field(default_factory=Tls)
    time_zone: str = "UTC"

    @property
    def server(self) -> ServerAddress:
        """Return its address as a server of the MySQL family."""
        return ServerAddress(url=self.url, tls=self.tls, name="upstream")
