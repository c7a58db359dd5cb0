"""What one producer has sent of a table without a key between two points where it went back: the runs by which ``keyless`` counts.

Two nodes may send one table for a while: one that was replaced, and does not know it, beside the one that sends again. What a node sends
again comes without a gap. So a commit that comes again does not begin a run where rows before it have not come again: the other node sends
it, and equal rows in it may be real. Where nothing lies between the row with which a node has begun and the commit, nothing shows this.
"""

from collections import defaultdict
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from applier.model.events import FoldedName
from applier.model.position import Ts
from applier.model.range_report import RepeatPoint
from applier.model.segment import first_beyond, is_behind_promise, is_beyond, may_follow, repeats_from

Image: TypeAlias = tuple[str, ...]
"""The literals of a whole row. As texts, 0.0 and -0.0 differ, and rows of two producers that differ in the order of columns do not."""
Change: TypeAlias = tuple[int, Image | None, Image | None]
"""commit_ts, and the row before and after an event: events that agree in all three are equal."""


class SentChange(NamedTuple):
    """One event, with its rows: that before it and that after it, as far as it has them."""

    offset: int
    change: Change
    rows: tuple[int, ...]


@dataclass(slots=True)
class CommitRun:
    """The events of one commit in one run of one stream. ``returns``: how often the producer had gone back; ``promised``: and promised."""

    returns: int
    promised: int = -1
    events: list[SentChange] = field(default_factory=list)

    @property
    def first(self) -> Change:
        """The change that it begins with."""
        return self.events[0].change

    def records(self) -> list[tuple[Change, ...]]:
        """Return its changes, record by record."""
        by_record: dict[int, list[Change]] = defaultdict(list)
        for event in self.events:
            by_record[event.offset].append(event.change)
        return [tuple(changes) for changes in by_record.values()]


def is_ordered(commit_ts: int, ordered_from: int | None) -> bool:
    """Whether the order of the rows of a commit proves anything; ``ordered_from``: that of all commits beyond it does; None: of none."""
    return ordered_from is not None and is_beyond(Ts(commit_ts), Ts(ordered_from))


class TableRuns:
    """The runs of one stream. ``of_commit``: the runs of each commit_ts."""

    def __init__(self, points: Sequence[RepeatPoint], returns: AbstractSet[FoldedName | None], ordered_from: int | None) -> None:
        """``returns``: the tables (None: all) whose points show that the producer went back. ``ordered_from``: as in ``is_ordered``."""
        self._points, self._returning, self._ordered_from = points, returns, ordered_from
        self._passed = self._returns = 0
        self._promised = self._latest = -1
        self._seen: dict[Change, int] = {}
        """Change -> how often the producer had gone back when it came last."""
        self._sorted: list[Change] = []
        """The changes that were seen, by commit_ts. Up to ``_checked`` they came again since the producer has gone back."""
        self._checked = 0
        self.of_commit: dict[int, list[CommitRun]] = defaultdict(list)

    def add(self, event: SentChange) -> None:
        """Take the next event, if it counts."""
        commit_ts = event.change[0]
        self._pass_points(event.offset)
        is_repeated = is_behind_promise(Ts(commit_ts), Ts(self._promised))
        if self._ordered_from is not None and (event.change in self._seen or is_repeated) and not may_follow(commit_ts, self._latest):
            self._go_back(commit_ts)
        self._latest = max(self._latest, commit_ts)
        if event.change in self._seen:
            self._seen[event.change] = self._returns
        if is_repeated:
            return
        if event.change not in self._seen:
            self._seen[event.change] = self._returns
            self._sorted.insert(first_beyond(self._sorted, Ts(commit_ts), _commit_ts), event.change)
        runs = self.of_commit[commit_ts]
        if not runs or (self._may_begin(event, runs) and self._is_over(runs[-1], commit_ts)):
            runs.append(CommitRun(self._returns))
        runs[-1].promised = self._promised
        runs[-1].events.append(event)

    @staticmethod
    def _may_begin(event: SentChange, runs: Sequence[CommitRun]) -> bool:
        # Any other beginning is the commit's rest, from a node that goes on beside the one that sends again. A record is of one run.
        return event.change == runs[0].first and event.offset != runs[-1].events[-1].offset

    def _is_over(self, run: CommitRun, commit_ts: int) -> bool:
        has_returned = run.returns != self._returns and is_ordered(commit_ts, self._ordered_from) and not self._lacks_rows(commit_ts)
        return has_returned or (repeats_from(self._promised, commit_ts) and not repeats_from(run.promised, commit_ts))

    def _lacks_rows(self, commit_ts: int) -> bool:
        """Whether rows between the place where the producer went back and a commit have not come again, so that another node sends it."""
        # Rows that the operator calls real are not doubted.
        if None in self._returning:
            return False
        while self._checked < len(self._sorted) and not may_follow(_commit_ts(change := self._sorted[self._checked]), commit_ts):
            if self._seen[change] != self._returns:
                return True
            self._checked += 1
        return False

    def _go_back(self, to_ts: int) -> None:
        self._returns += 1
        self._latest = -1
        self._checked = first_beyond(self._sorted, Ts(to_ts), _commit_ts)

    def _pass_points(self, offset: int) -> None:
        while self._passed < len(self._points) and self._points[self._passed].offset <= offset:
            point = self._points[self._passed]
            self._passed += 1
            self._promised = max(self._promised, point.ts)
            if point.is_return and point.table in self._returning:
                self._go_back(-1)


def _commit_ts(change: Change) -> Ts:
    return Ts(change[0])
