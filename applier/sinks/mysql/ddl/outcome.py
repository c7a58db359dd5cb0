"""Whether a DDL with an unknown outcome has run: a crash or a lost connection came between the statement and its answer.

The tables are compared, as structures, with what they were when the statement was sent (``snapshot``). A statement that changes nothing
when it runs twice is not compared: it runs again. A table that is neither as before nor as the statement makes it was changed by somebody
else: the operator decides. A statement that the server refused never comes here.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from sqlalchemy import Connection

from applier.ddl import DdlKind, DdlStatement, parse_ddl
from applier.model.events import DdlEvent, TableName
from applier.mysql.errors import UNKNOWN, ErrorVerdict, meaning_of_code
from applier.mysql.names import spellings
from applier.sinks.mysql.catalogue import holds_row
from applier.sinks.mysql.ddl.existence import has_existence
from applier.sinks.mysql.ddl.scratch import Scratch, ScratchRefused, own_structure
from applier.sinks.mysql.ddl.snapshot import States, described_tables, has_moved, snapshot, states_of
from applier.sinks.mysql.structure.model import TableStructure


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
    """A statement, its tables as they were and as they are, and the scratch table to look closer."""

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
        """Return those of the statement's tables that exist now."""
        return [name for name in described_tables(self.ddl) if name in self.now]

    def former(self) -> list[TableName]:
        """Return those of the statement's tables that existed before."""
        return [name for name in described_tables(self.ddl) if name in self.were]


def _undecided(reason: str) -> Finding:
    return Finding(Outcome.UNDECIDED, reason)


def _dropped(case: _Case) -> Finding:
    """A half-done DROP runs again: it has run only if nothing is left."""
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
    # A table that upstream made is empty until its first row, which waits for this DDL. One with rows is somebody else's.
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
