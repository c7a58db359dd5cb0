"""Row consistency: how far ahead of W the rows of a stream may be written, and which rows one step writes.

``segment`` compares timestamps; here is what bounds them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from applier.model.events import FoldedName
from applier.model.position import NO_TS, Stream, Ts
from applier.model.segment import SegmentWindow, between, is_behind_promise


def row_limit(resolved_ts: Ts, known_ts: Ts, barrier_ts: Ts | None) -> Ts:
    """Return up to where a stream's rows may be written; ``known_ts``: up to there the DDLs of all topics are known.

    ``barrier_ts``: that of the first DDL that waits. Rows at it belong before it.
    """
    # Below both promises, not at them: at exactly its promise a stream may still bring a row, and a topic a DDL.
    limit = just_before(min(resolved_ts, known_ts))
    return limit if barrier_ts is None else min(limit, barrier_ts)


def just_before(ts: Ts) -> Ts:
    """Return the greatest timestamp below ``ts``."""
    return Ts(max(ts - 1, 0))


def passed_with(checkpoint_ts: Ts) -> Ts:
    """Return what a checkpoint says of a stream's rows: below it all are in the sink, at it one may still come. Never 0: "not ahead"."""
    return max(just_before(checkpoint_ts), Ts(1))


def behind_promise(min_ts: int, max_ts: int, resolved_ts: Ts) -> Ts:
    """Return up to where rows between two commit_ts (inclusive) may lie behind a promise that came before them; 0: none does."""
    return Ts(min(max_ts, just_before(resolved_ts))) if is_behind_promise(Ts(min_ts), resolved_ts) else NO_TS


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWindow(SegmentWindow):
    """Rows that are written ahead: of ``tables``, those of each stream between its own two commit_ts in ``spans``."""

    spans: Mapping[Stream, tuple[Ts, Ts]]
    tables: frozenset[FoldedName]

    def bound(self, stream: Stream, table: FoldedName, *, keyed: bool) -> Any:
        """Return the span of rows of ``table`` in ``stream``; an empty one if they are not written ahead."""
        return self.spans.get(stream, (0, 0)) if keyed and table in self.tables else (0, 0)

    def selects_all(self, min_ts: int, max_ts: int) -> bool:
        """Return False: it depends on the stream and the table."""
        del min_ts, max_ts
        return False

    def inside(self, commit_ts: Iterable[int], bounds: Iterable[Any]) -> list[bool]:
        """Say of each row whether it is in."""
        return between(commit_ts, bounds)

    @classmethod
    def of(cls, spans: Mapping[Stream, tuple[Ts, Ts]], tables: frozenset[FoldedName]) -> "RowWindow":
        """Make the window, which as a whole reaches from the least to the greatest commit_ts."""
        after_ts, upto_ts = min(span[0] for span in spans.values()), max(span[1] for span in spans.values())
        return cls(after_ts=after_ts, upto_ts=upto_ts, again=False, settled_tables=frozenset(), spans=spans, tables=tables)
