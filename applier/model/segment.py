"""The rules of time: every choice between ``<`` and ``<=`` of two timestamps, each with its reason (DESIGN.md 3).

A is the checkpoint, W the watermark, T the commit_ts of a DDL. Between two steps the sink equals: all rows <= A, all DDLs < A, and
of the DDLs at A exactly the ones that the ledger calls done. A closed window is (A, W]; a segment is (after, upto] inside of it.

All others ask this module: the coordinator, the selection of cached chunks, the compaction, the writer of the checkpoint. A test keeps it
so. The protocol's text says that rows < W are complete; both producers and the founders' consumer say <=, and so do we. A second
module that decides the same with the other sign would lose or repeat a transaction at a boundary, which no test of one module sees.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

from applier.model.events import FoldedName
from applier.model.position import NO_TS, Stream, Ts

T = TypeVar("T")
K = TypeVar("K")

# --- the starting point ------------------------------------------------------------------------------------------------


def floor_ts(checkpoint_ts: Ts, start_ts: Ts) -> Ts:
    """Return the least commit_ts of a row that still matters: rows below A are replays; rows at or below start_ts came with the dump.

    Rows at exactly A stay: a latecomer may belong to their group.
    """
    # Not checkpoint_ts + 1: if rows at A are dropped, 58 of 3,000 simulated histories end wrong.
    return max(checkpoint_ts, Ts(start_ts + 1))


def is_in_dump(ts: int, start_ts: Ts) -> bool:
    """Whether an event is part of the snapshot that the sink was loaded from."""
    return ts <= start_ts


def has_moved(checkpoint_ts: Ts, start_ts: Ts) -> bool:
    """Whether the checkpoint has left the starting point. Only then are rows at A ours: at start_ts they came with the dump."""
    return checkpoint_ts > start_ts


# --- events ------------------------------------------------------------------------------------------------------------


def is_past(ts: int, checkpoint_ts: int) -> bool:
    """Whether an event is below A: a replay if the replica has seen it, and missed if it has not.

    At A it may be new: tiflow sends resolved(T) before the DDL of T.
    """
    return ts < checkpoint_ts


def is_applied(commit_ts: int, checkpoint_ts: Ts) -> bool:
    """Whether the transaction of a row is in the sink."""
    return commit_ts <= checkpoint_ts


def may_follow(ts: int, earlier_ts: int) -> bool:
    """Whether an event can come after one of ``earlier_ts``. Within one commit_ts kind and offset decide, so an equal ts can."""
    return ts >= earlier_ts


def is_later_version(version: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a version of one row follows another, by (commit_ts, kind) or (commit_ts, kind, offset, index).

    Within one commit_ts the delete comes before the upsert; or, if the source keeps the order, by (commit_ts, offset, index, kind).
    """
    return version > other


def supersede(latest: dict[K, int], rows: Iterable[tuple[K, int]], versions: tuple[Sequence[int], ...]) -> None:
    """Let each row replace its key's row in ``latest`` if its version is later, by these columns; the first is commit_ts."""
    commit_ts, second, third, last = versions
    # Inlined, as `inside`, and without a call: the loop runs once for each superseded row.
    for key, row in rows:
        other = latest[key]
        ts, other_ts = commit_ts[row], commit_ts[other]
        if ts < other_ts:
            continue
        if ts > other_ts or (second[row], third[row], last[row]) > (second[other], third[other], last[other]):
            latest[key] = row


def after_ddl(ts: Ts) -> Ts:
    """Return the least timestamp at which a DDL of ``ts`` is over, by the order of a source that keeps it."""
    return Ts(ts + 1)


# --- promises ----------------------------------------------------------------------------------------------------------


def is_behind_promise(ts: Ts, resolved_ts: Ts) -> bool:
    """Whether an event is a fallback: below what its stream has promised already."""
    return ts < resolved_ts


def repeats_from(promised_ts: int, ts: int) -> bool:
    """Whether an event has been sent before, if it comes after a promise: producers send all rows <= resolved_ts before it."""
    # Not <, as for ``is_behind_promise``: a row at the promise is a latecomer by the documents, and a repeated one by the producers' code.
    return ts <= promised_ts


def has_advanced(resolved_ts: Ts, earlier_ts: Ts) -> bool:
    """Whether a stream has promised more than it had at an earlier look."""
    return resolved_ts > earlier_ts


def is_ahead(resolved_ts: int, watermark: int) -> bool:
    """Whether a stream's promise is greater than the least one: it does not hold W back."""
    return resolved_ts > watermark


def has_shown_past(resolved_ts: int, checkpoint_ts: int) -> bool:
    """Whether a stream of a new topic has shown all that it held below A: it has promised more than A."""
    return resolved_ts > checkpoint_ts


def has_reached(ts: Ts, until_ts: int) -> bool:
    """Whether a promise, or the checkpoint, is all that a catch-up to ``until_ts`` needs, or the end of a copy."""
    return ts >= until_ts


def is_asked_for(ts: Ts, since: Ts | None, until: Ts | None) -> bool:
    """Whether an operator who looks at events from ``since`` to ``until``, both included, asks for this one. None: no limit."""
    return (since is None or ts >= since) and (until is None or ts <= until)


# --- the checkpoint ----------------------------------------------------------------------------------------------------


def is_open(checkpoint_ts: Ts, watermark: Ts) -> bool:
    """Whether there is a window. Nothing is done while W == A: the group of rows at A may not be complete."""
    return watermark > checkpoint_ts


def is_due(ddl_ts: Ts, watermark: Ts) -> bool:
    """Whether a DDL may run: W > T, never earlier: then every copy, every piece of the same ts and every row at T has arrived."""
    # W >= T would let a DDL run before another one of the same ts has arrived: 38 of 3,000 simulated histories end wrong.
    return ddl_ts < watermark


def moves_checkpoint(upto_ts: Ts, checkpoint_ts: Ts) -> bool:
    """Whether a step moves past the group at A."""
    return upto_ts > checkpoint_ts


def steps_back(checkpoint_ts: Ts, stored_ts: Ts) -> bool:
    """Whether a commit would take the stored checkpoint back, which it never may. At the same ts it stores positions only."""
    return checkpoint_ts < stored_ts


def first_holding(points: Sequence[T], checkpoint_ts: Ts, value_of: Callable[[T], Ts]) -> int:
    """Return the index of the first of some ascending resume points that keeps the stored offset: rows >= A, resolved events > A.

    The value of a point is the commit_ts of a row, or ts - 1 of a resolved event.
    """
    # bisect_left is >=. With > instead, a delete at A is read again without its upsert, or the other way round.
    return bisect_left(points, checkpoint_ts, key=value_of)


def ddl_holds_offset(ddl_ts: Ts, checkpoint_ts: Ts) -> bool:
    """Whether a DDL that is not settled keeps the stored offset."""
    # Without this rule a DDL is lost by a restart: 575 of 3,000 simulated histories end wrong.
    return ddl_ts >= checkpoint_ts


# --- segments ----------------------------------------------------------------------------------------------------------


def is_spent(max_ts: Ts, checkpoint_ts: Ts) -> bool:
    """Whether cached rows can go: all of them are below A. Those at A stay until A moves on."""
    # With <=, a latecomer at A would be applied without the rest of its group.
    return max_ts < checkpoint_ts


def is_beyond(ts: Ts, upto_ts: Ts) -> bool:
    """Whether a row comes after the end of a segment."""
    return ts > upto_ts


def first_beyond(points: Sequence[T], upto_ts: Ts, ts_of: Callable[[T], Ts]) -> int:
    """Return the index of the first of some ascending points after the end of a segment."""
    return bisect_right(points, upto_ts, key=ts_of)


def overlaps_segment(min_ts: int, max_ts: int, after_ts: Ts, upto_ts: Ts) -> bool:
    """Whether rows between two commit_ts (inclusive) may belong to a segment. One that ends where it begins has no rows of its own."""
    return after_ts < upto_ts and min_ts <= upto_ts and max_ts > after_ts


def lies_in_segment(min_ts: int, max_ts: int, after_ts: Ts, upto_ts: Ts) -> bool:
    """Whether all rows between two commit_ts (inclusive) belong to a segment."""
    return after_ts < min_ts and max_ts <= upto_ts


def keeps_offset(checkpoint_ts: Ts, since_ts: Ts, value: Ts) -> bool:
    """Whether a stored offset that was found at ``since_ts`` is the same at a checkpoint: its resume point has this value."""
    return since_ts <= checkpoint_ts <= value


def may_hold(ts: Ts, min_ts: int, max_ts: int) -> bool:
    """Whether rows between two commit_ts (inclusive) may be at ``ts``."""
    return min_ts <= ts <= max_ts


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsWritten:
    """Rows that are in the sink ahead of the checkpoint: of ``tables``, in each stream up to a commit_ts."""

    upto: Mapping[Stream, Ts]
    tables: frozenset[FoldedName]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentWindow:
    """Rows with ``after_ts`` < commit_ts <= ``upto_ts``; with ``again`` also those at exactly ``after_ts``.

    Not again: rows of the ``settled_tables`` that a DDL at ``after_ts`` has touched (a schema is given as ``(schema, '')``), and rows
    of tables without a key. Not at all: rows that are ``written`` already.
    """

    after_ts: Ts
    upto_ts: Ts
    again: bool = False
    settled_tables: frozenset[FoldedName] = frozenset()
    written: RowsWritten | None = None

    def bound(self, stream: Stream, table: FoldedName, *, keyed: bool) -> Any:
        """Return what decides about rows of ``table`` in ``stream`` (``inside``): here those above a floor, up to ``upto_ts``, are in."""
        is_again = self.again and keyed and not table.is_covered(self.settled_tables)
        floor = self.after_ts - 1 if is_again else self.after_ts
        if self.written is None or table not in self.written.tables:
            return floor
        # Written again, a row would step back, and its later version, which is in the sink too, would not come again.
        return max(floor, self.written.upto.get(stream, floor))

    def may_select(self, min_ts: int, max_ts: int) -> bool:
        """Whether rows between two commit_ts (inclusive) may be in; those at ``after_ts`` whatever their table."""
        return overlaps_segment(min_ts, max_ts, self.after_ts, self.upto_ts) or (self.again and may_hold(self.after_ts, min_ts, max_ts))

    def selects_all(self, min_ts: int, max_ts: int) -> bool:
        """Whether all rows between two commit_ts (inclusive) are in, whatever their table."""
        return self.written is None and lies_in_segment(min_ts, max_ts, self.after_ts, self.upto_ts)

    def inside(self, commit_ts: Iterable[int], bounds: Iterable[Any]) -> list[bool]:
        """Say of each row whether it is in. ``bounds``: the ``bound`` of each row's stream and table."""
        upto_ts = self.upto_ts
        # Over columns, and inlined: the loop is the hot part of a chunk at the border of a segment.
        return [floor < ts <= upto_ts for ts, floor in zip(commit_ts, bounds, strict=True)]

    def snapshot_ts(self, latest_ts: int) -> int:
        """Return the timestamp at which rows of upstream are as they are after this window. ``latest_ts``: of the rows that are read."""
        # Late, because upstream forgets its past. But a DDL at the end of the window is visible at its own ts, and comes after these rows.
        return max(latest_ts, self.upto_ts - 1)

    def own(self, commit_ts: Iterable[int]) -> set[int]:
        """Return the distinct commit_ts without that of the group that is applied again."""
        return {ts for ts in commit_ts if ts > self.after_ts}


def between(commit_ts: Iterable[int], spans: Iterable[tuple[int, int]]) -> list[bool]:
    """Say of each row whether it is above the first and up to the second timestamp of its span."""
    return [floor < ts <= ceiling for ts, (floor, ceiling) in zip(commit_ts, spans, strict=True)]


def are_contiguous(windows: Sequence[SegmentWindow]) -> bool:
    """Whether windows follow one another without a gap, and only the first may repeat the group at its beginning."""
    return all(left.upto_ts == right.after_ts and not right.again for left, right in pairwise(windows))


def windows_of(windows: Sequence[SegmentWindow], commit_ts: Iterable[int]) -> list[int]:
    """Return for each row the number of the contiguous window that may hold it; ``len(windows)`` for a row beyond the last.

    A row at or before the beginning of the first window gets 0: that window decides (``inside``).
    """
    return slices_of([window.upto_ts for window in windows], commit_ts)


def slices_of(bounds: Sequence[Ts], commit_ts: Iterable[int]) -> list[int]:
    """Return for each row the number of its slice: slice n has the rows above bound n - 1 and up to bound n.

    Rows up to the first bound get 0, and those beyond the last one ``len(bounds)``.
    """
    # bisect_left: a row at the bound between two slices belongs to the first of them, as `upto_ts` is inclusive.
    return list(map(partial(bisect_left, bounds), commit_ts))


def slice_holding(bounds: Sequence[Ts], window: SegmentWindow) -> int | None:
    """Return the number of the slice that holds every row of a window; None: there is none."""
    number = bisect_left(bounds, window.upto_ts)
    # The group that is applied again may lie at the bound, and so in the slice before.
    is_inside = 0 < number < len(bounds) and bounds[number - 1] <= window.after_ts and not window.again
    return number if is_inside else None


# --- row window ------------------------------------------------------------------------------------------------------
# Row consistency: how far ahead of W the rows of a stream may be written, and which rows one step writes.
#
# ``segment`` compares timestamps; here is what bounds them.


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
    """Return up to where rows between two commit_ts (inclusive) may fall behind a promise that came before them; 0: none does."""
    return Ts(min(max_ts, just_before(resolved_ts))) if is_behind_promise(Ts(min_ts), resolved_ts) else NO_TS


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWindow(SegmentWindow):
    """Rows that are written ahead: of ``tables``, for each stream between its own two commit_ts in ``spans``."""

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
