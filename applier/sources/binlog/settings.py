"""How the server is reached whose binlog is followed, and where the replica begins."""

from dataclasses import dataclass, field
from typing import Final

from applier.database.session import PREFERRED, Tls

COPY: Final = "copy"
"""The value of ``start`` for a replica that copies upstream first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogSettings:
    """Where the server is. Picklable; ``repr`` never shows the password."""

    url: str = field(repr=False)
    """``mysql+pymysql://user:password@host:port/``."""
    tls: Tls = PREFERRED
    server_ids: tuple[int, int] = (430_000_000, 430_000_063)
    """The first and the last of the ids that connections may use as replicas; each uses one."""
    start: str = "now"
    """Where a new replica begins: ``FILE:POS``, ``gtid:SET``, ``now`` or ``dump:PATH``; ``copy``: where its copy of upstream says."""
    name: str = "replica"
    """The replica's, for what a server's administrator sees of its connections."""
    unreachable_after_s: float = 30.0
    """How long nothing may come from the server before reading or listing fails."""
