"""The rules of time: every choice between ``<`` and ``<=`` that the coordinator makes, each with its reason (DESIGN.md 3).

A is the checkpoint, W the watermark, T the commit_ts of a DDL. Between two steps the sink equals: all rows <= A, all DDLs < A, and
of the DDLs at A exactly those that the ledger calls done. A closed window is (A, W]; a segment is (after, upto] inside of it.
"""

from dataclasses import dataclass

from applier.model.events import FoldedName
from applier.model.position import Ts


def floor_ts(checkpoint_ts: Ts, start_ts: Ts) -> Ts:
    """Return the least commit_ts of a row that still matters: rows below A are replays; rows at or below start_ts came with the dump.

    Rows at exactly A stay: a latecomer may belong to their group.
    """
    return max(checkpoint_ts, Ts(start_ts + 1))


def is_in_dump(ddl_ts: Ts, start_ts: Ts) -> bool:
    """Whether a DDL is part of the snapshot that the sink was loaded from."""
    return ddl_ts <= start_ts


def is_missed(ts: Ts, checkpoint_ts: Ts) -> bool:
    """Whether an event that the replica has not seen should have been: it lies below A.

    At A it may be new: tiflow sends resolved(T) before the DDL of T.
    """
    return ts < checkpoint_ts


def is_judged(resolved_ts: Ts, checkpoint_ts: Ts) -> bool:
    """Whether a stream of a new topic has shown all that it held below A: it has promised more than A."""
    return resolved_ts > checkpoint_ts


def has_group(checkpoint_ts: Ts, start_ts: Ts) -> bool:
    """Whether rows at A are ours: at start_ts they came with the dump."""
    return checkpoint_ts > start_ts


def moves_checkpoint(upto_ts: Ts, checkpoint_ts: Ts) -> bool:
    """Whether a step leaves the group at A behind."""
    return upto_ts > checkpoint_ts


def is_due(ddl_ts: Ts, watermark: Ts) -> bool:
    """Whether a DDL may run: W > T, never earlier: then every copy, every piece of the same ts and every row at T has arrived."""
    return ddl_ts < watermark


def is_open(checkpoint_ts: Ts, watermark: Ts) -> bool:
    """Whether there is a window. Nothing is done while W == A: the group of rows at A may not be complete."""
    return watermark > checkpoint_ts


def holds_offset(value: Ts, checkpoint_ts: Ts) -> bool:
    """Whether a stair (commit_ts of a row; ts - 1 of a resolved event) keeps the stored offset: rows >= A, resolved events > A."""
    return value >= checkpoint_ts


def ddl_holds_offset(ddl_ts: Ts, checkpoint_ts: Ts) -> bool:
    """Whether a DDL that is not settled keeps the stored offset."""
    return ddl_ts >= checkpoint_ts


def is_spent(max_ts: Ts, checkpoint_ts: Ts) -> bool:
    """Whether a cached range can go: all its rows are below A."""
    return max_ts < checkpoint_ts


def is_in_segment(ts: Ts, after_ts: Ts, upto_ts: Ts) -> bool:
    """Whether a row belongs to a segment."""
    return after_ts < ts <= upto_ts


def overlaps_segment(min_ts: Ts, max_ts: Ts, after_ts: Ts, upto_ts: Ts) -> bool:
    """Whether rows between two commit_ts (inclusive) may belong to a segment. One that ends where it begins has none of its own."""
    return after_ts < upto_ts and min_ts <= upto_ts and max_ts > after_ts


def may_hold(ts: Ts, min_ts: Ts, max_ts: Ts) -> bool:
    """Whether rows between two commit_ts (inclusive) may lie at ``ts``."""
    return min_ts <= ts <= max_ts


def is_behind_promise(ts: Ts, resolved_ts: Ts) -> bool:
    """Whether an event is a fallback: below what its stream has promised already."""
    return ts < resolved_ts


def has_reached(resolved_ts: Ts, until_ts: Ts) -> bool:
    """Whether a stream has promised all that a catch-up to ``until_ts`` needs."""
    return resolved_ts >= until_ts


def is_ahead(resolved_ts: Ts, watermark: Ts) -> bool:
    """Whether a stream's promise is greater than the least one: it does not hold W back."""
    return resolved_ts > watermark


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
