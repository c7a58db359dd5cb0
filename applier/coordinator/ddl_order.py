"""The order of DDLs that share one commit_ts.

Within a topic: by first arrival in the topic's lowest partition (it existed before all others, so it holds every DDL). Between topics
Kafka has no order, but names have one: a name must exist before it is used and be free before it is taken. The whole order is searched
before the first DDL runs, over a catalogue of names only, in which every change leaves a mark: two orders have the same result if
they leave the same marks. No order, or several with different results, is the operator's decision.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from applier.ddl import DdlKind, DdlStatement, parse_ddl, touches
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent, DdlIdentity, FoldedName, TableName
from applier.model.failure import FailureKind
from applier.model.remedy import Remedy

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
        """Take another group's queues and names."""
        self.queues += other.queues
        self.names |= other.names
        self.schemas |= other.schemas
        self.every |= other.every


def tables_to_ask(queues: Iterable[Queue], ddls: Mapping[DdlIdentity, DdlEvent]) -> tuple[TableName, ...]:
    """Name the tables whose existence in the sink decides the order of these DDLs."""
    statements = (_statement(ddls[key]) for queue in queues for key in queue)
    return tuple(dict.fromkeys(name for statement in statements if statement for name in statement.names))


def find_order(queues: Sequence[Queue], ddls: Mapping[DdlIdentity, DdlEvent], existing: frozenset[FoldedName]) -> list[DdlIdentity]:
    """Interleave the queues of groups_by_names topics in the one way that the names allow; NeedsOperator if there is not one."""
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
    """Return what a DDL does to names; nothing if the filter leaves it out: the sink has none of them."""
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
    # Two queues of ten DDLs have 184,756 interleavings, but few states: paths that leave the same names and marks are one.
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
    """Return the names after a statement, or None where a database would refuse it. ``names`` is used up."""
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
