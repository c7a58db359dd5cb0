"""What ``time_zone = SYSTEM`` of upstream's session is: only upstream's server knows.

Replicas of a server take SYSTEM for their own zone. Here the sink's session gets the offset that upstream's zone had when the DDL ran: so
CURRENT_TIMESTAMP in old rows is upstream's. Other times in a DDL (literals of TIMESTAMP columns, a TIMESTAMP that becomes a DATETIME) would
need the rules of the zone; in a zone with several offsets such a DDL is refused.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from applier.ddl.parser import parse_or_none
from applier.ddl.remedy import BY_HAND
from applier.ddl.tree import AlterTableStatement, ClauseKind
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent
from applier.model.remedy import Remedy
from applier.sources.binlog.server import Server

SYSTEM: Final = ("time_zone", "SYSTEM")

_OFFSET: Final = "SELECT TIMESTAMPDIFF(SECOND, '1970-01-01 00:00:00', FROM_UNIXTIME({time_s})) - {time_s}"
_PROBES: Final = tuple(range(946_684_800, 2_000_000_000, 7_889_400))
"""Each quarter of a year since 2000."""
_ZONE_REMEDY: Final = Remedy("binlog.set-session-time-zone", f"Let upstream's sessions set their time_zone. {BY_HAND}")


def in_known_zone(ddl: DdlEvent, server: Server) -> DdlEvent:
    """Return the DDL with an offset in place of SYSTEM. NeedsOperator: one offset is not enough for it. SourceError."""
    if SYSTEM not in ddl.session:
        return ddl
    time_s = (ddl.time_ms or 0) // 1000
    offset = _offsets(server, (time_s,))[0]
    if _needs_rules(ddl.query) and len(_offsets(server, (time_s, *_PROBES))) > 1:
        raise NeedsOperator(
            "the DDL converts times, and the zone of upstream's server (time_zone = SYSTEM) has several offsets",
            remedy=_ZONE_REMEDY,
            table=str(ddl.name),
            commit_ts=ddl.commit_ts,
            query=ddl.query,
        )
    zone = ("time_zone", _spelled(offset))
    return replace(ddl, session=tuple(zone if variable == SYSTEM else variable for variable in ddl.session))


def _offsets(server: Server, times_s: Sequence[int]) -> list[int]:
    """Return the different offsets at some times, in a session that has the server's zone, whatever the default of sessions is."""
    server.rows("setting a variable", "SET time_zone = 'SYSTEM'")
    # Whole numbers of our own: no text of upstream is in the statement.
    query = " UNION ".join(_OFFSET.format(time_s=time_s) for time_s in times_s)
    return [int(offset) for (offset,) in server.rows("asking for the server's time zone", query)]


def _spelled(offset_s: int) -> str:
    hours, minutes = divmod(abs(offset_s) // 60, 60)
    return f"{'-' if offset_s < 0 else '+'}{hours:02d}:{minutes:02d}"


def _needs_rules(query: str) -> bool:
    """Return whether a statement may convert other times than its own: a column changes its type, or a TIMESTAMP has a literal."""
    tree = parse_or_none(query)
    if tree is None:
        return True
    words = [token.keyword for token in tree.tokens]
    if isinstance(tree.node, AlterTableStatement) and any(
        clause.kind in {ClauseKind.MODIFY, ClauseKind.CHANGE} for clause in tree.node.clauses
    ):
        return True
    has_literal = any(one == "DEFAULT" and other == "string" for one, other in pairwise(words))
    return ("TIMESTAMP" in words and has_literal) or not {"UNIX_TIMESTAMP", "FROM_UNIXTIME"}.isdisjoint(words)
