"""The DDLs that wait for their barrier: which are new, which are copies, and which runs next.

Broadcast copies, replays and the other wording of an upgraded producer collapse into one identity; the pieces of a RENAME chain do
not. The ledger's identities are never forgotten: a DDL below the checkpoint that the ledger does not know was missed.
"""

from bisect import insort
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from applier.coordinator.starting_point import FROM_DUMP_TO_REPLICA
from applier.coordinator.step import NeedNames
from applier.ddl import DdlKind, DdlStatement, identity, parse_ddl, same_ddl, touches
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent, DdlIdentity, FoldedName, TableName
from applier.model.failure import FailureKind
from applier.model.position import Offset, RecordPosition, Stream, Ts
from applier.model.range_report import DdlArrival
from applier.model.segment import is_due, is_in_dump, is_past

# --- ddl order -------------------------------------------------------------------------------------------------------
# The order of DDLs that share one commit_ts.
#
# Within a topic: by first arrival in the topic's lowest partition (it existed before all others, so it holds every DDL). Between topics
# Kafka has no order, but names have one: a name must exist before it is used and be free before it is taken. The whole order is searched
# before the first DDL runs, over a catalogue of names only, in which every change leaves a mark: two orders have the same result if
# they leave the same marks. No order, or several with different results, is the operator's decision.


MAX_SEARCHED = 20_000
"""States after which a search stops: far more than one ts of one upstream can have in several topics."""

Mark: TypeAlias = tuple[object, ...]
Names: TypeAlias = Mapping[FoldedName, Mark]
"""Which tables exist (a schema as (schema, '')), each with the marks of what happened to it."""
Queue: TypeAlias = tuple[DdlIdentity, ...]


def groups_by_names(queues: Sequence[Queue], ddls: Mapping[DdlIdentity, DdlEvent]) -> list[list[Queue]]:
    """Divide the topics' queues into groups that share no names: only inside of a group the order matters."""
    groups: list[_Group] = []
    for queue in queues:
        joined = _Group.of(queue, ddls)
        apart = []
        for group in groups:
            if joined.meets(group):
                joined.join(group)
            else:
                apart.append(group)
        groups = [*apart, joined]
    return [group.queues for group in groups]


@dataclass(slots=True)
class _Group:
    """Queues with the names that they touch (``every``: all names), and the schemas of these names."""

    queues: list[Queue]
    names: set[FoldedName]
    schemas: set[FoldedName]
    every: bool

    @classmethod
    def of(cls, queue: Queue, ddls: Mapping[DdlIdentity, DdlEvent]) -> "_Group":
        touched = [frozenset() if ddls[key].left_out else touches(ddls[key]) for key in queue]
        names = {name for some in touched if some is not None for name in some}
        return cls([queue], names, {name.schema_name for name in names}, None in touched)

    def meets(self, other: "_Group") -> bool:
        """Whether a name is in both, itself or through its schema."""
        if self.every or other.every:
            return True
        return not (self.names.isdisjoint(other.names) and self.schemas.isdisjoint(other.names) and other.schemas.isdisjoint(self.names))

    def join(self, other: "_Group") -> None:
        """Add another group's queues and names."""
        self.queues += other.queues
        self.names |= other.names
        self.schemas |= other.schemas
        self.every |= other.every


def tables_to_ask(queues: Iterable[Queue], ddls: Mapping[DdlIdentity, DdlEvent]) -> tuple[TableName, ...]:
    """Name the tables whose existence in the sink decides the order of these DDLs."""
    statements = (_statement(ddls[key]) for queue in queues for key in queue)
    return tuple(dict.fromkeys(name for statement in statements if statement for name in statement.names))


def find_order(queues: Sequence[Queue], ddls: Mapping[DdlIdentity, DdlEvent], existing: frozenset[FoldedName]) -> list[DdlIdentity]:
    """Interleave the queues of several topics in the one order that the names allow; NeedsOperator if it is not certain."""
    statements = {key: _statement(ddls[key]) for queue in queues for key in queue}
    understood = {key: statement for key, statement in statements.items() if statement is not None}
    if len(understood) < len(statements):
        raise _undecidable("one of them cannot be parsed", ddls, statements)
    found = _search(queues, understood, _names_before(understood.values(), existing))
    if not found:
        raise _undecidable("no order is possible with the tables that the sink has", ddls, statements)
    if len(found) > 1:
        raise _undecidable("several orders are possible, with different results", ddls, statements)
    return list(found[0])


def _statement(ddl: DdlEvent) -> DdlStatement | None:
    """Return what a DDL does to names; nothing if the filter excludes it: the sink does not have them."""
    return DdlStatement(kind=DdlKind.ALTER_TABLE) if ddl.left_out else parse_ddl(ddl)


def _names_before(statements: Iterable[DdlStatement], existing: frozenset[FoldedName]) -> dict[FoldedName, Mark]:
    """Give every name that exists its first mark. A schema exists unless one of the statements makes it."""
    names: dict[FoldedName, Mark] = {}
    made = set()
    for statement in statements:
        schema = FoldedName(statement.schema.casefold(), "")
        if statement.kind is DdlKind.CREATE_SCHEMA and not statement.if_not_exists:
            made.add(schema)
        elif statement.schema:
            names[schema] = ("was", schema)
        for table in statement.names:
            owner = FoldedName(table.schema.casefold(), "")
            names[owner] = ("was", owner)
            if table.fold() in existing:
                names[table.fold()] = ("was", table.fold())
    return {name: mark for name, mark in names.items() if name not in made}


def _search(queues: Sequence[Queue], statements: Mapping[DdlIdentity, DdlStatement], before: Names) -> list[Queue]:
    """Walk all interleavings, joining paths that meet in one state; return one path per distinct result."""
    # Two queues of ten DDLs have 184,756 interleavings, but few states: paths that leave the same names and marks are the same.
    states: dict[tuple[tuple[int, ...], frozenset[tuple[FoldedName, Mark]]], Queue] = {((0,) * len(queues), frozenset(before.items())): ()}
    for _ in range(sum(len(queue) for queue in queues)):
        following: dict[tuple[tuple[int, ...], frozenset[tuple[FoldedName, Mark]]], Queue] = {}
        for (heads, names), path in states.items():
            for i, queue in enumerate(queues):
                if heads[i] == len(queue):
                    continue
                key = queue[heads[i]]
                # On a copy, since another path begins at the same names.
                after = perform(statements[key], key, dict(names))
                if after is not None:
                    moved = (*heads[:i], heads[i] + 1, *heads[i + 1 :])
                    following.setdefault((moved, frozenset(after.items())), (*path, key))
        if len(following) > MAX_SEARCHED:
            raise NeedsOperator(
                "too many DDLs of one commit_ts came in several topics: the applier cannot find their order",
                remedy=_REMEDY,
                ddls=len(statements),
            )
        states = following
    return list(states.values())


def perform(statement: DdlStatement, key: DdlIdentity, names: dict[FoldedName, Mark]) -> dict[FoldedName, Mark] | None:
    """Return the names after a statement, or None if a database would refuse it. Changes ``names``."""
    if statement.schema:
        return _perform_on_schema(statement, names)
    needed = [name.fold() for name in statement.needs]
    created = [name.fold() for name in statement.creates]
    if statement.if_not_exists and all(name in names for name in created):
        return names
    if not all(name in names for name in needed):
        return None
    # Upstream accepted the statement: an interleaving in which a database would refuse it did not happen.
    for name in created:
        if (name in names and not statement.or_replace) or name.schema_name not in names:
            return None
    # What a statement makes of a table depends on what the tables that it reads were: CREATE … LIKE before or after an ALTER.
    shapes = tuple(names[name] for name in needed)
    for name in created:
        names[name] = ("made", key, shapes)
    if not created:
        for name in needed:
            names[name] = ("changed", key, shapes, name)
    return _rename(statement, _drop(statement, names))


def _drop(statement: DdlStatement, names: dict[FoldedName, Mark] | None) -> dict[FoldedName, Mark] | None:
    for name in statement.drops:
        if names is not None and names.pop(name.fold(), None) is None and not statement.if_exists:
            names = None
    return names


def _rename(statement: DdlStatement, names: dict[FoldedName, Mark] | None) -> dict[FoldedName, Mark] | None:
    # One pair after the other, as MySQL does: RENAME TABLE a TO t, b TO a, t TO b is legal.
    for old, new in statement.renames:
        if names is None or old.fold() not in names or new.fold() in names or FoldedName(new.schema.casefold(), "") not in names:
            return None
        names[new.fold()] = names.pop(old.fold())
    return names


def _perform_on_schema(statement: DdlStatement, names: dict[FoldedName, Mark]) -> dict[FoldedName, Mark] | None:
    schema = FoldedName(statement.schema.casefold(), "")
    if statement.kind is DdlKind.CREATE_SCHEMA:
        if schema in names and not statement.if_not_exists:
            return None
        return names | {schema: ("made",)}
    if schema not in names and not statement.if_exists:
        return None
    if statement.kind is DdlKind.DROP_SCHEMA:
        return {name: mark for name, mark in names.items() if name.schema != schema.schema}
    return names


_REMEDY = Remedy(
    "coordinator.run-ddls-in-order",
    "Run them on the sink by hand in the right order, then skip each with `applier ddl skip --ts … --table …`. For later ones, let the "
    "changefeed write their tables to one topic",
)


def _undecidable(why: str, ddls: Mapping[DdlIdentity, DdlEvent], keys: Iterable[DdlIdentity]) -> NeedsOperator:
    keys = list(keys)
    return NeedsOperator(
        f"DDLs of one commit_ts came in several topics, and {why}",
        remedy=_REMEDY,
        kind=FailureKind.DDL_ORDER,
        commit_ts=keys[0].ts,
        statements="; ".join(ddls[key].query for key in keys),
    )


# --- barriers --------------------------------------------------------------------------------------------------------


MAX_SPELLINGS: Final = 3
"""Texts of one DDL whose identity is kept: an upgraded producer writes some differently."""
MOST_BEHIND: Final = 100
"""DDLs after the next one that segments know of: as many slices are written, one file each, by each task that divides rows."""
ALWAYS_KEPT: Final = 1_000
"""Identities that are kept however few DDLs wait: copies on other partitions arrive after their DDL has run."""


class _Arrival(NamedTuple):
    """The position of one copy of a DDL; ``index``: among the events of its record."""

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
        """Add a DDL; return its identity, or None if it is part of the dump or the ledger has settled it.

        ``begun_ts`` is the checkpoint, or what it becomes when the open step is confirmed. NeedsOperator if the DDL is below it.
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
        # The least position, not the first report: ranges of one stream report in any order.
        arrived, arrivals = _Arrival(stream, arrival.offset, arrival.index), self._arrivals[stream.topic]
        arrivals[key] = min(arrivals.get(key, arrived), arrived)
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
        """Return the ts of unknown DDLs below the checkpoint: the ledger decides whether they are replays."""
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

    def position_of(self, key: DdlIdentity) -> RecordPosition:
        """Return the record of a pending DDL: its first arrival in its lowest stream."""
        first = min(arrivals[key] for arrivals in self._arrivals.values() if key in arrivals)
        return RecordPosition(first.stream, first.offset)

    @property
    def first_ts(self) -> Ts | None:
        """The ts of the first DDL that waits, whether it may run or not."""
        return self._times[0] if self._times else None

    def next_ts(self, watermark: Ts) -> Ts | None:
        """Return the ts of the next DDL that may run."""
        return self._times[0] if self._times and is_due(self._times[0], watermark) else None

    def behind(self, ts: Ts, watermark: Ts) -> tuple[Ts, ...]:
        """Return the ts of the next DDLs that may run after one at ``ts``, at most ``MOST_BEHIND``; () if none waits at ``ts``."""
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
            here = [key for arrived, key in found if arrived.stream == found[0][0].stream]
            queues[topic] = tuple(key for key in here if key not in taken)
            taken.update(here)
        return [queue for queue in queues.values() if queue]

    def answer_names(self, existing: Collection[FoldedName]) -> None:
        """Record the answer to NeedNames: the names that the sink has."""
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
        """Return the pending DDLs by ts."""
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
