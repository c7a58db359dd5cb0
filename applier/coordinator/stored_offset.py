"""The stored offset of one stream: where a restart begins to read.

It is the first record with a row >= A, a DDL >= A that the ledger has not settled, or a resolved event > A (DESIGN.md 3). So a restart
reads again all that still matters, the watermark included: the promises that were read are not stored, they are read once more.
"""

from collections import deque
from collections.abc import Collection
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from applier.model.events import DdlIdentity
from applier.model.position import MAX_TS, Offset, Ts
from applier.model.range_report import HoldPoint
from applier.model.segment import ddl_holds_offset, first_holding

_VALUE: Final = attrgetter("value")
MAX_HELD: Final = 1000
"""Ranges whose hold points are kept one by one, and DDLs; a stream that does not resolve for days has more."""

HoldPoints: TypeAlias = tuple[HoldPoint, ...]
"""Those of one range, as its report gives them; not empty."""


class PlacedDdl(NamedTuple):
    """A DDL that was not settled when it was read."""

    offset: Offset
    key: DdlIdentity


class _HeldDdls(NamedTuple):
    """Some DDLs, one behind the other. ``offset``: of the first."""

    offset: Offset
    keys: tuple[DdlIdentity, ...]


class StoredOffset:
    """The rows, promises and DDLs of the contiguous prefix that hold the stored offset back."""

    __slots__ = ("_ddls", "_held", "_passed")

    def __init__(self, start: Offset) -> None:
        self._passed = start
        self._held: deque[HoldPoints] = deque()
        self._ddls: deque[_HeldDdls] = deque()

    def add(self, hold: HoldPoints, ddls: Collection[PlacedDdl]) -> None:
        """Add the next range of the prefix."""
        self._ddls.extend(_HeldDdls(ddl.offset, (ddl.key,)) for ddl in ddls)
        if hold:
            self._held.append(hold)
        # Halved by joining neighbours, which is conservative: an earlier offset stands for a later value. By pairs, so that old and new
        # entries are thinned alike. A restart then reads a few ranges more.
        if len(self._held) > MAX_HELD:
            held = list(self._held)
            self._held = deque(_joined(held[i : i + 2]) for i in range(0, len(held), 2))
        while len(self._ddls) > MAX_HELD:
            waiting = list(self._ddls)
            self._ddls = deque(_joined_ddls(waiting[i : i + 2]) for i in range(0, len(waiting), 2))

    def first(self, checkpoint_ts: Ts, pending: Collection[DdlIdentity], done: DdlIdentity | None) -> tuple[Offset | None, Ts | None]:
        """Return the first record that a restart at ``checkpoint_ts`` must read, None if there is none.

        And up to which checkpoint it is that record, if nothing more is read; None if a DDL may change it.
        """
        # Resolved events count among the hold points. Without them a restart never learns the promises that were read before it:
        # 240 of 3,000 simulated histories stand still.
        point = self._first_point(checkpoint_ts)
        if self._ddls:
            ddl = self._first_ddl(checkpoint_ts, pending, done)
            found = [offset for offset in (point and point.offset, ddl) if offset is not None]
            return max(min(found), self._passed) if found else None, None
        if point is None:
            return None, MAX_TS
        # Joined entries stand for offsets that did not matter any more: never above what was stored before.
        return max(point.offset, self._passed), point.value

    def _first_point(self, checkpoint_ts: Ts) -> HoldPoint | None:
        for hold in self._held:
            if (point := _first_held(hold, checkpoint_ts)) is not None:
                return point
        return None

    def _first_ddl(self, checkpoint_ts: Ts, pending: Collection[DdlIdentity], done: DdlIdentity | None) -> Offset | None:
        """Return the first DDL that holds the stored offset. Those in front that are settled never will again: each is looked at once."""
        while self._ddls and not any(key in pending for key in self._ddls[0].keys):
            self._ddls.popleft()
        holding = (
            ddls.offset
            for ddls in self._ddls
            if any(key != done and key in pending and ddl_holds_offset(key.ts, checkpoint_ts) for key in ddls.keys)
        )
        return next(holding, None)

    def drop_spent(self, checkpoint_ts: Ts, stored: Offset) -> None:
        """Forget what can never hold the stored offset again, now that ``stored`` is durable at ``checkpoint_ts``."""
        self._passed = max(self._passed, stored)
        while self._held and _first_held(self._held[0], checkpoint_ts) is None:
            self._held.popleft()


def _first_held(hold: HoldPoints, checkpoint_ts: Ts) -> HoldPoint | None:
    at = first_holding(hold, checkpoint_ts, _VALUE)
    return hold[at] if at < len(hold) else None


def _joined(held: list[HoldPoints]) -> HoldPoints:
    return (HoldPoint(held[0][0].offset, max(point.value for hold in held for point in hold)),)


def _joined_ddls(ddls: list[_HeldDdls]) -> _HeldDdls:
    return _HeldDdls(ddls[0].offset, tuple(key for held in ddls for key in held.keys))
