"""Which cached rows belong to a segment: the one place that decides ``<`` against ``<=`` between cache and sink."""

from dataclasses import dataclass

from applier.events import FoldedName
from applier.position import Ts


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentWindow:
    """Rows with ``after_ts`` < commit_ts <= ``upto_ts``; with ``again`` also those at exactly ``after_ts``.

    Not again: rows of the ``settled_tables`` that a DDL at ``after_ts`` has touched (a schema stands as ``(schema, '')``), and rows
    of tables without a key.
    """

    after_ts: Ts
    upto_ts: Ts
    again: bool
    settled_tables: frozenset[FoldedName]

    def floor(self, table: FoldedName, *, keyed: bool) -> int:
        """Return the bound below which rows of ``table`` are out: floor < commit_ts <= ``upto_ts`` are in."""
        if not self.again or not keyed:
            return self.after_ts
        if table in self.settled_tables or FoldedName(table.schema, "") in self.settled_tables:
            return self.after_ts
        return self.after_ts - 1
