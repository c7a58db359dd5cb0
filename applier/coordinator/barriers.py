"""The DDLs that wait for their barrier: which are new, which are copies, and which runs next.

Broadcast copies, replays and the other wording of an upgraded producer collapse into one identity; the pieces of a RENAME chain do
not. The ledger's identities are never forgotten: a DDL below the checkpoint that the ledger does not know was missed.
"""

from bisect import insort
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from applier.coordinator.ddl_order import Queue, find_order, groups_by_names, tables_to_ask
from applier.coordinator.starting_point import FROM_DUMP_TO_REPLICA
from applier.coordinator.step import NeedNames
from applier.ddl import identity, same_ddl
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, DdlIdentity, FoldedName
from applier.model.failure import FailureKind
from applier.model.position import Offset, Place, Stream, Ts
from applier.model.range_report import DdlArrival
from applier.model.remedy import Remedy
from applier.model.segment import is_due, is_in_dump, is_past

MAX_SPELLINGS: Final = 3
"""Texts of one DDL whose identity is kept: an upgraded producer writes some differently."""
MOST_BEHIND: Final = 100
"""DDLs behind the next one that segments know of: as many slices are written, one file each, by each task that divides rows."""
ALWAYS_KEPT: Final = 1_000
"""Identities that are kept however few DDLs wait: copies on other partitions arrive after their DDL has run."""


class _Arrival(NamedTuple):
    """The place of one copy of a DDL; ``index``: among the events of its record."""

    stream: Stream
    offset: Offset
    index: int  # type: ignore[assignment] # hides tuple.index, which nobody needs here


class Barriers:
    """The pending DDLs of all streams. What a step costs does not depend on how many wait: a feed may begin with thousands."""

    __slots__ = ("_arrivals", "_known", "_names", "_order", "_parsed", "_start_ts", "_times", "_waiting", "pending")

    def __init__(self, settled: Iterable[DdlIdentity], start_ts: Ts) -> None:
        self._start_ts = start_ts
        self.pending: dict[DdlIdentity, DdlEvent] = {}
        # Never pruned: a replay may come at any time, and what is not known below A stops the replica. With the ledger pruned,
        # 185 of 3,000 simulated histories stop or end wrong.
        self._known: dict[tuple[Ts, FoldedName], list[DdlIdentity]] = defaultdict(list)
        for key in settled:
            self._known[key.ts, key.name].append(key)
        # Of each topic's DDLs, where they arrived first in their lowest partition. A DDL is in all partitions: what is kept of it must not
        # grow with them.
        self._arrivals: dict[str, dict[DdlIdentity, _Arrival]] = defaultdict(dict)
        self._waiting: dict[Ts, set[DdlIdentity]] = defaultdict(set)
        # The keys of _waiting, sorted. A backlog may begin with thousands of DDLs: their minimum per step would be quadratic.
        self._times: list[Ts] = []
        self._parsed: dict[DdlEvent, DdlIdentity] = {}
        # The order of the DDLs of one ts; cleared when a further one is admitted.
        self._order: deque[DdlIdentity] = deque()
        self._names: frozenset[FoldedName] | None = None

    def admit(self, stream: Stream, arrival: DdlArrival, begun_ts: Ts) -> DdlIdentity | None:
        """Take a DDL in; return its identity, or None if it is part of the dump or the ledger has settled it.

        ``begun_ts`` is the checkpoint, or what it becomes when the open step is confirmed. NeedsOperator if the DDL lies below it.
        """
        if is_in_dump(arrival.ddl.commit_ts, self._start_ts):
            return None
        found = self._identity(arrival.ddl)
        key = self._known_as(found)
        if key in self.pending and key.touches is None and found.touches is not None:
            # The same DDL in a text that can be parsed: it says what it touches, so it is the one to run.
            self.pending[key] = arrival.ddl
        if key not in self.pending:
            if key in self._known[key.ts, key.name]:
                return None
            # Against begun_ts and not A: rows up to there may be durable already, and the DDL belongs before some of them.
            if is_past(key.ts, begun_ts):
                raise _missed(stream, arrival, begun_ts)
            self._known[key.ts, key.name].append(key)
            self._await(key, arrival.ddl)
        # The least place, not the first report: ranges of one stream report in any order.
        place, arrivals = _Arrival(stream, arrival.offset, arrival.index), self._arrivals[stream.topic]
        arrivals[key] = min(arrivals.get(key, place), place)
        return key

    def _identity(self, ddl: DdlEvent) -> DdlIdentity:
        """Identify a DDL. Most are broadcast copies of one that waits, and parsing is what costs."""
        found = self._parsed.get(ddl)
        if found is None:
            if len(self._parsed) > MAX_SPELLINGS * len(self.pending) + ALWAYS_KEPT:
                self._parsed = {ddl: self._parsed[ddl] for ddl in self.pending.values() if ddl in self._parsed}
            found = self._parsed[ddl] = identity(ddl)
        return found

    def _await(self, key: DdlIdentity, ddl: DdlEvent) -> None:
        self.pending[key] = ddl
        if key.ts not in self._waiting:
            insort(self._times, key.ts)
        self._waiting[key.ts].add(key)
        if self._order and self._order[0].ts == key.ts:
            self._order.clear()

    def times_to_ask(self, ddls: Iterable[DdlEvent], checkpoint_ts: Ts) -> set[Ts]:
        """Return the ts of DDLs below the checkpoint that are not known here: the ledger decides whether they are replays."""
        return {
            ddl.commit_ts
            for ddl in ddls
            if is_past(ddl.commit_ts, checkpoint_ts)
            and not is_in_dump(ddl.commit_ts, self._start_ts)
            and not self._known.get((ddl.commit_ts, ddl.name.fold()))
        }

    def add_settled(self, settled: Iterable[DdlIdentity]) -> None:
        """Record what the ledger has settled."""
        for key in settled:
            if key not in self._known[key.ts, key.name]:
                self._known[key.ts, key.name].append(key)

    def _known_as(self, key: DdlIdentity) -> DdlIdentity:
        """Return the identity under which a DDL is known already (an equal one first), or ``key``."""
        # A text that cannot be parsed has no names to compare. Taken for a new DDL, it runs twice: 476 of 3,000 simulated
        # histories end wrong.
        same = [known for known in self._known[key.ts, key.name] if same_ddl(known, key)]
        return key if key in same or not same else same[0]

    def place_of(self, key: DdlIdentity) -> Place:
        """Return the record of a pending DDL: its first arrival in its lowest stream."""
        first = min(arrivals[key] for arrivals in self._arrivals.values() if key in arrivals)
        return Place(first.stream, first.offset)

    @property
    def first_ts(self) -> Ts | None:
        """The ts of the first DDL that waits, whether it may run or not."""
        return self._times[0] if self._times else None

    def next_ts(self, watermark: Ts) -> Ts | None:
        """Return the ts of the next DDL that may run."""
        return self._times[0] if self._times and is_due(self._times[0], watermark) else None

    def behind(self, ts: Ts, watermark: Ts) -> tuple[Ts, ...]:
        """Return the ts of the next DDLs that may run behind one at ``ts``, at most ``MOST_BEHIND``; () if none waits at ``ts``."""
        if not self._times or self._times[0] != ts:
            return ()
        return tuple(later for later in self._times[1 : 1 + MOST_BEHIND] if is_due(later, watermark))

    def first_at(self, ts: Ts) -> DdlIdentity | NeedNames:
        """Return the DDL of ``ts`` that runs first, or ask for names. NeedsOperator if the order is not certain."""
        if not (self._order and self._order[0].ts == ts):
            groups = groups_by_names(self._queues(self._waiting[ts]), self.pending)
            several = [queue for group in groups if len(group) > 1 for queue in group]
            if several and self._names is None:
                return NeedNames(tables_to_ask(several, self.pending))
            self._order = deque(key for group in groups for key in self._ordered(group))
            self._names = None
        return self._order[0]

    def _ordered(self, group: list[Queue]) -> Collection[DdlIdentity]:
        return group[0] if len(group) == 1 else find_order(group, self.pending, self._names or frozenset())

    def _queues(self, keys: set[DdlIdentity]) -> list[Queue]:
        """Return the order of each topic: that of first arrival in its lowest partition that holds any of them.

        A DDL that two topics hold (a changed dispatcher, then a replay) counts in the first.
        """
        queues: dict[str, Queue] = {}
        taken: set[DdlIdentity] = set()
        # By offset and not by report: 193 of 3,000 simulated histories end wrong in the order of reports.
        for topic, arrivals in sorted(self._arrivals.items()):
            found = sorted((arrivals[key], key) for key in keys & arrivals.keys())
            here = [key for place, key in found if place.stream == found[0][0].stream]
            queues[topic] = tuple(key for key in here if key not in taken)
            taken.update(here)
        return [queue for queue in queues.values() if queue]

    def answer_names(self, existing: Collection[FoldedName]) -> None:
        """Take the answer to NeedNames: the names that the sink has."""
        self._names = frozenset(existing)

    def settle(self, key: DdlIdentity) -> None:
        """Record that a DDL is done or skipped."""
        del self.pending[key]
        self._waiting[key.ts].remove(key)
        while self._times and not self._waiting[self._times[0]]:
            del self._waiting[self._times.pop(0)]
        if self._order and self._order[0] == key:
            self._order.popleft()
        else:
            self._order.clear()
        for arrivals in self._arrivals.values():
            arrivals.pop(key, None)

    def __iter__(self) -> Iterator[DdlEvent]:
        """Give the pending DDLs by ts."""
        return (self.pending[key] for key in sorted(self.pending, key=lambda key: (key.ts, key.name)))


def _missed(stream: Stream, arrival: DdlArrival, begun_ts: Ts) -> NeedsOperator:
    ddl = arrival.ddl
    return NeedsOperator(
        "a DDL below the checkpoint is not in the ledger: the replica has missed it",
        remedy=Remedy(
            "coordinator.skip-ddl-or-create-again",
            "If the sink already has its effect, run `applier ddl skip --ts … --table …`. Else create the replica again. "
            + FROM_DUMP_TO_REPLICA,
        ),
        kind=FailureKind.MISSED_DDL,
        topic=stream.topic,
        partition=stream.partition,
        offset=arrival.offset,
        table=str(ddl.name),
        commit_ts=ddl.commit_ts,
        checkpoint_ts=begun_ts,
        query=ddl.query,
    )
