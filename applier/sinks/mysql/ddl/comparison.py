"""Compares the sink's tables with the result that a DDL should have.

**An unknown outcome**: a crash or a lost connection came between the statement and its answer. The tables are compared, as structures,
with what they were when the statement was sent (``snapshot``). A statement that changes nothing when it runs twice is not compared: it runs
again. A table that is neither as before nor as the statement makes it was changed by someone else: the operator decides. A statement that
the server refused never comes here.

**The scratch table** is in the schema of the bookkeeping tables and holds no row of upstream. A replica has one at most. Both sides of a
comparison come from the server as it is now, so that no version's wording is compared with another's. A run that dies does not drop the
table; the next one drops it before anything else.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from hashlib import sha256
from typing import Final, NamedTuple

from sqlalchemy import Connection

from applier.ddl import DdlKind, DdlStatement, parse_ddl
from applier.ddl.parser import parse, parse_or_none
from applier.ddl.tree import AlterTableStatement, CreateTableStatement, Edit, IndexStatement, WrittenName, edited
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent, TableName
from applier.mysql.catalogue import given_name, holds_row, read_structures
from applier.mysql.errors import UNKNOWN, ErrorVerdict, code_of, is_database_error, meaning_of, meaning_of_code, server_text
from applier.mysql.names import quote_table, schema_spelling, spellings
from applier.mysql.session import execute_text
from applier.mysql.structure import TableStructure
from applier.sinks.failpoint import reach
from applier.sinks.mysql.ddl.intents import Intent, OwnerSession
from applier.sinks.mysql.ddl.schema_default import read_schema_default
from applier.sinks.mysql.ddl.snapshot import States, described_tables, has_moved, snapshot, states_of
from applier.sinks.mysql.ddl.statement import as_in_sink, send
from applier.sinks.settings import Collations, SinkSettings

_CHARSET_WORDS: Final = frozenset({"CHARSET", "CHARACTER", "CHAR", "COLLATE"})


def retargeted(statement: str, name: TableName) -> str | None:
    """Replace the table of a CREATE TABLE, ALTER TABLE, CREATE INDEX or DROP INDEX by ``name``; None for another statement."""
    tree = parse_or_none(statement)
    if tree is None:
        return None
    match tree.node:
        case (
            CreateTableStatement(table=WrittenName(schema=schema, table=table))
            | AlterTableStatement(table=WrittenName(schema=schema, table=table))
            | IndexStatement(table=WrittenName(schema=schema, table=table))
        ) if table is not None:
            return edited(statement, [Edit((schema or table).start, table.end, quote_table(*name))])
        case _:
            return None


def with_default(statement: str, default: str) -> str:
    """Put ``default`` after the columns of a CREATE TABLE that names neither a character set nor a collation for the table."""
    tree = parse(statement)
    node = tree.node
    # LIKE takes the other table's collation and allows no options: it has no elements here.
    if not isinstance(node, CreateTableStatement) or not node.elements:
        return statement
    first, last = node.options
    if any(token.keyword in _CHARSET_WORDS for token in tree.tokens[first : last + 1]):
        return statement
    closing = tree.tokens[node.elements[-1].span[1] + 1]
    return edited(statement, [Edit(closing.end, closing.end, default)])


_PREFIX: Final = "scratch_"


class ScratchRefused(Exception):
    """The server refused a statement on the scratch table, or the statement cannot be directed at it. Stays in this package."""

    def __init__(self, reason: str, code: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.code = reason, code


@dataclass(frozen=True, slots=True)
class Scratch:
    """The scratch table of the replica ``replica``, in ``schema``. Its statements commit implicitly: no transaction may be open."""

    connection: Connection
    schema: str
    replica: str
    collations: Collations = ()

    @property
    def name(self) -> TableName:
        """Its location."""
        # A hash: names of replicas may differ in case only, names of tables may not on every server.
        return TableName(self.schema, _PREFIX + sha256(self.replica.encode()).hexdigest()[:16])

    def drop_leftover(self) -> None:
        """Drop what a dead run left. Without a leftover no statement runs, so the user needs no privilege for it."""
        # DROP TABLE IF EXISTS needs the privilege DROP even if nothing exists.
        if spellings(self.connection, [self.name]):
            self._drop()

    @contextmanager
    def of_definition(self, definition: str) -> Iterator[None]:
        """Make it from the text of SHOW CREATE TABLE, for the time of the block. ScratchRefused."""
        self._drop()
        try:
            with _refusals():
                execute_text(self.connection, self._own(definition))
            reach("ddl.scratch")
            yield
        finally:
            self._drop()

    @contextmanager
    def of_statement(self, ddl: DdlEvent) -> Iterator[None]:
        """Make it by a CREATE TABLE of upstream, for the time of the block. ScratchRefused."""
        self._drop()
        # A table takes its collation from its schema, and the scratch table lies in the bookkeeping's.
        there = as_in_sink(self.connection, ddl, self.collations)
        statement = with_default(self._own(there.query), self._default_of(there.schema))
        try:
            with _refusals():
                send(self.connection, there, statement)
            reach("ddl.scratch")
            yield
        finally:
            self._drop()

    def run(self, ddl: DdlEvent) -> None:
        """Run upstream's statement on it. ScratchRefused."""
        there = as_in_sink(self.connection, ddl, self.collations, table=self.name)
        with _refusals():
            if there.query:
                send(self.connection, there, self._own(there.query))

    def structure(self, actual: TableName) -> TableStructure:
        """Return its structure as that of ``actual`` would be."""
        found = read_structures(self.connection, [self.name])[self.name.fold()]
        return _as_of(found, self.name, actual)

    def _own(self, statement: str) -> str:
        """Return the statement with this table instead of its table. ScratchRefused."""
        found = retargeted(statement, self.name)
        if found is None:
            reason = "the applier cannot find the table in the statement"
            raise ScratchRefused(reason)
        return found

    def _default_of(self, schema: str) -> str:
        """Return the options that a table takes over from its schema."""
        name = schema_spelling(self.connection, schema)
        if name is None:
            return ""
        character_set, collation = read_schema_default(self.connection, name)
        return f" DEFAULT CHARACTER SET {character_set} COLLATE {collation}"

    def _drop(self) -> None:
        execute_text(self.connection, "DROP TABLE IF EXISTS " + quote_table(*self.name))


def own_structure(connection: Connection, actual: TableName) -> TableStructure:
    """Return the structure of a table as ``Scratch.structure`` returns it."""
    return _as_of(read_structures(connection, [actual])[actual.fold()], actual, actual)


def _as_of(found: TableStructure, name: TableName, actual: TableName) -> TableStructure:
    """Exclude what depends on a table's name or schema: triggers, generated names, and the schema of unqualified foreign keys."""
    # A foreign key to the table itself names the scratch table, and an unqualified one the scratch table's schema.
    keys = [
        replace(
            key,
            name=given_name(key.name, actual),
            referenced_schema=actual.schema if key.referenced_schema == name.schema else key.referenced_schema,
            referenced_table=actual.table if (key.referenced_schema, key.referenced_table) == name else key.referenced_table,
        )
        for key in found.foreign_keys
    ]
    checks = [replace(check, name=given_name(check.name, actual)) for check in found.checks]
    return replace(
        found,
        # CREATE TABLE … and ALTER TABLE make no trigger; the table check looks at them.
        triggers=(),
        foreign_keys=tuple(sorted(keys, key=lambda key: (key.name, key.columns, key.referenced_table))),
        checks=tuple(sorted(checks, key=lambda check: (check.name, check.clause.text))),
    )


@contextmanager
def _refusals() -> Iterator[None]:
    """Turn a definite refusal into ScratchRefused. A lost connection and transient errors come through."""
    try:
        yield
    except Exception as error:
        if not is_database_error(error) or meaning_of(error).verdict in {ErrorVerdict.LOST, ErrorVerdict.RETRY}:
            raise
        # A message of several lines would break the log line and the ledger's list.
        words = re.sub(r"\s+", " ", server_text(error))
        raise ScratchRefused(f"the server refused the statement on a scratch table: {words}", code_of(error)) from error


DROPS: Final = frozenset({DdlKind.DROP_TABLE, DdlKind.DROP_VIEW, DdlKind.DROP_SCHEMA})


def has_existence(connection: Connection, statement: DdlStatement) -> bool:
    """Return whether the schema of a CREATE exists, or everything that a DROP names is gone."""
    if statement.kind in DROPS and not statement.schema:
        return not spellings(connection, statement.drops)
    return (schema_spelling(connection, statement.schema) is None) == (statement.kind is DdlKind.DROP_SCHEMA)


class Outcome(Enum):
    """Whether a DDL that has begun has run."""

    RAN = "ran"
    NOT_RAN = "not ran"
    UNDECIDED = "undecided"


class Finding(NamedTuple):
    """An outcome. ``reason`` says why it cannot be decided."""

    outcome: Outcome
    reason: str = ""


RAN, NOT_RAN = Finding(Outcome.RAN), Finding(Outcome.NOT_RAN)
_NEITHER: Final = "the table equals neither its definition before the statement nor the statement's result"
_OTHER_TABLE: Final = "the old name is gone, and the table of the new name is not the table of the old one"
_NO_IDS: Final = "only storage ids show whether tables were exchanged; they are missing, or another server gave them"


def outcome_of(scratch: Scratch, ddl: DdlEvent, before: str) -> Finding:
    """Find out whether the DDL has run since ``before`` was described. May make the scratch table: no transaction may be open."""
    statement = parse_ddl(ddl)
    if statement is None:
        return _undecided("the applier does not understand the statement")
    find = _FINDERS.get(statement.kind)
    if find is None:
        return _undecided("the catalogue does not show whether a statement of this kind has run")
    now = states_of(snapshot(scratch.connection, described_tables(ddl)))
    return find(_Case(ddl, statement, states_of(before), now, scratch))


class _Case(NamedTuple):
    """A statement, its tables as they were and as they are, and the scratch table for details."""

    ddl: DdlEvent
    statement: DdlStatement
    were: States
    now: States
    scratch: Scratch

    @property
    def connection(self) -> Connection:
        return self.scratch.connection

    def actual(self, name: TableName) -> TableName:
        """Return the name of an existing table as the server spells it."""
        return spellings(self.connection, [name])[name.fold()]

    def structure(self, name: TableName) -> TableStructure:
        """Return the structure of an existing table."""
        return own_structure(self.connection, self.actual(name))

    def former_structure(self, name: TableName) -> TableStructure:
        """Return the structure that a table had: its old definition makes the scratch table. ScratchRefused."""
        with self.scratch.of_definition(self.were.definition(name)):
            return self.scratch.structure(name)

    def is_as_was(self, name: TableName, other: TableName) -> bool:
        """Return whether ``other`` is now as ``name`` was. ScratchRefused."""
        if self.were.body(name) == self.now.body(other):
            return True
        return not self.were.is_view(name) and self.former_structure(name) == self.structure(other)

    def existing(self) -> list[TableName]:
        """Return which of the statement's tables exist now."""
        return [name for name in described_tables(self.ddl) if name in self.now]

    def former(self) -> list[TableName]:
        """Return which of the statement's tables existed before."""
        return [name for name in described_tables(self.ddl) if name in self.were]


def _undecided(reason: str) -> Finding:
    return Finding(Outcome.UNDECIDED, reason)


def _dropped(case: _Case) -> Finding:
    """A DROP that was half done runs again: it has run only if nothing is left."""
    return RAN if has_existence(case.connection, case.statement) else NOT_RAN


def _repeatable(_: _Case) -> Finding:
    return NOT_RAN


def _created_whole(case: _Case) -> Finding:
    """A schema or a view: it exists, and did not before. With OR REPLACE the statement runs again."""
    statement = case.statement
    name = TableName(statement.schema, "") if statement.schema else statement.creates[0]
    # SHOW CREATE does not show whether a view was replaced by an equal one; to replace it twice does no harm.
    if statement.or_replace or name not in case.now or name in case.were:
        return NOT_RAN
    return RAN


def _truncated(case: _Case) -> Finding:
    """Only the applier writes rows, and it wrote none since: a second TRUNCATE does no harm."""
    (table,) = case.statement.needs
    return RAN if case.were.has_rows(table) and table in case.now and not case.now.has_rows(table) else NOT_RAN


def _created(case: _Case) -> Finding:
    (table,) = case.statement.creates
    if table not in case.now or table in case.were:
        return NOT_RAN
    try:
        with case.scratch.of_statement(case.ddl):
            is_so = case.scratch.structure(table) == case.structure(table)
    except ScratchRefused as error:
        return _undecided(error.reason)
    # A table that upstream made is empty until its first row, which waits for this DDL. One with rows is someone else's.
    return RAN if is_so and not holds_row(case.connection, case.actual(table)) else _undecided(_NEITHER)


def _altered(case: _Case) -> Finding:
    if case.statement.renames:
        return _renamed(case)
    table = case.statement.needs[0]
    # Equal texts of one server are equal tables, and cost no scratch table. Different texts prove nothing.
    if table not in case.were or table not in case.now or case.were.body(table) == case.now.body(table):
        return NOT_RAN
    present = case.structure(table)
    try:
        with case.scratch.of_definition(case.were.definition(table)):
            was = case.scratch.structure(table)
            try:
                case.scratch.run(case.ddl)
            except ScratchRefused as error:
                # What the server refuses on the table as it was, it has refused on the table itself.
                return NOT_RAN if was == present or _is_about_structure(error) else _undecided(error.reason)
            if was == present:
                return NOT_RAN
            return RAN if case.scratch.structure(table) == present else _undecided(_NEITHER)
    except ScratchRefused as error:
        return _undecided(error.reason)


def _is_about_structure(error: ScratchRefused) -> bool:
    """Return whether the statement does not fit the table. Else it is about privileges, room, or what this server can do."""
    meaning = None if error.code is None else meaning_of_code(error.code)
    return meaning is not None and (meaning is UNKNOWN or meaning.verdict is ErrorVerdict.ALREADY_SO)


def _renamed(case: _Case) -> Finding:
    olds, news = zip(*case.statement.renames, strict=True)
    # A list that frees names and takes them again leaves the same names behind, whether it ran or not.
    if {old.fold() for old in olds} & {new.fold() for new in news}:
        return _rotated(case)
    present = [old in case.now for old in olds]
    if all(present) or any(old not in case.were for old in olds):
        return NOT_RAN
    try:
        is_so = not any(present) and all(_is_taken_over(case, old, new) for old, new in case.statement.renames)
    except ScratchRefused as error:
        return _undecided(error.reason)
    return RAN if is_so else _undecided(_OTHER_TABLE)


def _is_taken_over(case: _Case, old: TableName, new: TableName) -> bool:
    """Return whether the new name's table is the old name's. An ALTER may change it too: then it only has to exist."""
    if new not in case.now:
        return False
    return case.statement.kind is DdlKind.ALTER_TABLE or case.is_as_was(old, new)


def _rotated(case: _Case) -> Finding:
    """RENAME a TO x, b TO a, x TO b: storage ids show it, or definitions that differ."""
    # Ids first: two tables of one definition look alike before and after.
    moved = has_moved(case.were, case.now)
    if moved is not None:
        return RAN if moved else NOT_RAN
    former, existing = case.former(), case.existing()
    origins = {name: name for name in former}
    for old, new in case.statement.renames:
        if old not in origins:
            return NOT_RAN
        origins[new] = origins.pop(old)
    try:
        is_as_made = origins.keys() == set(existing) and all(case.is_as_was(was, name) for name, was in origins.items())
        is_as_before = set(existing) == set(former) and all(case.is_as_was(name, name) for name in existing)
    except ScratchRefused as error:
        return _undecided(error.reason)
    # Both or neither: nothing but ids could show it. A second RENAME would undo the first, so it is not repeated.
    if is_as_made == is_as_before:
        return _undecided(_NO_IDS)
    return RAN if is_as_made else NOT_RAN


def _exchanged(case: _Case) -> Finding:
    """It has run if the table has the storage of a partition now; it has not if the partitioned table still has all of its own."""
    partitioned, table = case.statement.needs
    if any(name not in states for states in (case.were, case.now) for name in (partitioned, table)):
        return NOT_RAN
    were, now = case.were.storage(partitioned), case.now.storage(partitioned)
    was, present = case.were.storage(table), case.now.storage(table)
    if were is None or now is None or was is None or present is None or were.server != now.server:
        return _undecided(_NO_IDS)
    # Storage ids only: an EXCHANGE changes no definition, and a second one would undo the first.
    if present.ids[""] in were.ids.values() or was.ids[""] in now.ids.values():
        return RAN
    return NOT_RAN if now.ids == were.ids or was.ids == present.ids else _undecided(_NO_IDS)


_FINDERS: Final[Mapping[DdlKind, Callable[[_Case], Finding]]] = {
    DdlKind.CREATE_SCHEMA: _created_whole,
    # It sets a default of the schema, and sets it again.
    DdlKind.ALTER_SCHEMA: _repeatable,
    DdlKind.DROP_SCHEMA: _dropped,
    DdlKind.CREATE_TABLE: _created,
    DdlKind.CREATE_TABLE_LIKE: _created,
    DdlKind.DROP_TABLE: _dropped,
    DdlKind.TRUNCATE_TABLE: _truncated,
    DdlKind.RENAME_TABLE: _renamed,
    DdlKind.EXCHANGE_PARTITION: _exchanged,
    DdlKind.ALTER_TABLE: _altered,
    DdlKind.CREATE_INDEX: _altered,
    DdlKind.DROP_INDEX: _altered,
    DdlKind.CREATE_VIEW: _created_whole,
    DdlKind.DROP_VIEW: _dropped,
}


class Comparison:
    """The questions that the run of a DDL asks about its tables."""

    def __init__(self, settings: SinkSettings, session: OwnerSession) -> None:
        self._settings, self._session = settings, session

    def has_run(self, intent: Intent, cause: str) -> bool:
        """Return whether a DDL with an unknown outcome has run. NeedsOperator if that cannot be decided; ``cause`` made it unknown."""
        # No snapshot: the statement was never sent, was refused, or the operator decided that it runs.
        if not intent.before:
            return False
        found = self._session.commit(
            lambda connection: outcome_of(self._scratch(connection), intent.ddl, intent.before),
            "comparing the tables of a DDL",
            **intent.facts,
        )
        if found.outcome is Outcome.UNDECIDED:
            message = f"the outcome of the DDL is unknown after {cause}: {found.reason}"
            remedy = Remedy(
                "mysql.decide-ddl-outcome",
                "Look at the table in the sink. Run `applier ddl done --ts … --table …` if the statement ran, "
                "`applier ddl retry --ts … --table …` if it did not",
            )
            raise NeedsOperator(message, remedy=remedy, **intent.facts)
        return found.outcome is Outcome.RAN

    def is_there(self, intent: Intent) -> bool:
        """Return whether the schema of a CREATE exists, or everything that a DROP names is gone. False for other statements."""
        statement = parse_ddl(intent.ddl)
        if statement is None or statement.kind not in DROPS | {DdlKind.CREATE_SCHEMA}:
            return False
        return self._session.commit(lambda connection: has_existence(connection, statement), "looking for what a DDL names", **intent.facts)

    def has_changed(self, intent: Intent) -> bool:
        """Return whether the tables have other definitions than when the statement was sent."""
        names = described_tables(intent.ddl)

        def work(connection: Connection) -> str:
            return snapshot(connection, names)

        now = self._session.commit(work, "reading the tables of a DDL", **intent.facts)
        return not states_of(intent.before).has_same_definitions(states_of(now), names)

    def drop_leftover(self) -> None:
        """Drop the scratch table that a dead run left."""
        self._session.commit(lambda connection: self._scratch(connection).drop_leftover(), "dropping the scratch table of an earlier run")

    def _scratch(self, connection: Connection) -> Scratch:
        return Scratch(connection, self._settings.schema, self._settings.name, self._settings.collations)
