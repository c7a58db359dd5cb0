"""Whether a DDL has run whose outcome is not known: a crash or a lost connection lay between the statement and its answer.

The tables are compared with what they were when the statement was sent (``snapshot``), as structures. What can be repeated without a
difference is repeated: nothing is compared then. A table that is neither as before nor as the statement would have made it was changed
by somebody else: that is told to the operator, not guessed. A statement that the server refused is never judged here.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from sqlalchemy import Connection

from applier.ddl import DdlKind, DdlStatement, parse_ddl
from applier.model.events import DdlEvent, TableName
from applier.sinks.mysql.catalogue import holds_row
from applier.sinks.mysql.ddl.in_place import has_existence
from applier.sinks.mysql.ddl.scratch import Scratch, ScratchRefused, own_structure
from applier.sinks.mysql.ddl.snapshot import States, has_moved, snapshot, states_of
from applier.sinks.mysql.errors import UNKNOWN, ErrorVerdict, meaning_of_code
from applier.sinks.mysql.names import spellings
from applier.sinks.mysql.structure.model import TableStructure


class Outcome(Enum):
    """Whether a DDL that was begun has run."""

    RAN = "ran"
    NOT_RAN = "not ran"
    UNDECIDED = "undecided"


class Judgement(NamedTuple):
    """An outcome; ``reason`` says why it cannot be decided."""

    outcome: Outcome
    reason: str = ""


RAN, NOT_RAN = Judgement(Outcome.RAN), Judgement(Outcome.NOT_RAN)
_NEITHER = "the table is neither as it was before the statement nor as the statement makes it"
_NO_IDS = "only storage ids show whether tables have changed places, and the server does not tell them, or they are others than before"


def outcome_of(scratch: Scratch, ddl: DdlEvent, before: str) -> Judgement:
    """Tell whether the DDL has run since ``before`` was described. May make the scratch table: no transaction may be open."""
    statement = parse_ddl(ddl)
    if statement is None:
        return _undecided("the applier cannot read the statement")
    judge = _JUDGES.get(statement.kind)
    if judge is None:
        return _undecided("the statement leaves no trace that can be compared")
    now = states_of(snapshot(scratch.connection, describable(ddl)))
    return judge(_Trial(scratch.connection, ddl, statement, states_of(before), now, scratch))


def describable(ddl: DdlEvent) -> list[TableName]:
    """Return the tables (and the schema, as table '') that show whether the DDL has run."""
    statement = parse_ddl(ddl)
    names = [ddl.name] if ddl.table else []
    if statement is not None:
        renamed = [name for pair in statement.renames for name in pair]
        names += [*statement.needs, *statement.creates, *statement.drops, *renamed]
        names += [TableName(statement.schema, "")] if statement.schema else []
    return list({name.fold(): name for name in names}.values())


class _Trial(NamedTuple):
    """A statement, its tables as they were and as they are, and the means to look closer."""

    connection: Connection
    ddl: DdlEvent
    statement: DdlStatement
    were: States
    now: States
    scratch: Scratch

    def actual(self, name: TableName) -> TableName:
        """Return the name of a table that is there as the server spells it."""
        return spellings(self.connection, [name])[name.fold()]

    def structure(self, name: TableName) -> TableStructure:
        """Return the structure of a table that is there."""
        return own_structure(self.connection, self.actual(name))

    def was(self, name: TableName) -> TableStructure:
        """Return the structure that a table had, by making it again. ScratchRefused."""
        with self.scratch.of_definition(self.were.definition(name)):
            return self.scratch.structure(name)

    def is_as_was(self, name: TableName, other: TableName) -> bool:
        """Tell whether ``other`` is now as ``name`` was. ScratchRefused."""
        if self.were.body(name) == self.now.body(other):
            return True
        return not self.were.is_view(name) and self.was(name) == self.structure(other)


def _undecided(reason: str) -> Judgement:
    return Judgement(Outcome.UNDECIDED, reason)


def _dropped(trial: _Trial) -> Judgement:
    """Half of it may be gone: what counts is that nothing is left."""
    return RAN if has_existence(trial.connection, trial.statement) else NOT_RAN


def _repeatable(_: _Trial) -> Judgement:
    return NOT_RAN


def _made_without_comparison(trial: _Trial) -> Judgement:
    """A schema or a view: it is there, and was not. One that may be replaced is made again."""
    statement = trial.statement
    name = TableName(statement.schema, "") if statement.schema else statement.creates[0]
    if statement.or_replace or name not in trial.now or name in trial.were:
        return NOT_RAN
    return RAN


def _truncated(trial: _Trial) -> Judgement:
    """Only upstream writes rows, and none came since: to empty the table again does no harm."""
    (table,) = trial.statement.needs
    return RAN if trial.were.has_rows(table) and table in trial.now and not trial.now.has_rows(table) else NOT_RAN


def _created(trial: _Trial) -> Judgement:
    (table,) = trial.statement.creates
    if table not in trial.now or table in trial.were:
        return NOT_RAN
    try:
        with trial.scratch.of_statement(trial.ddl):
            is_so = trial.scratch.structure(table) == trial.structure(table)
    except ScratchRefused as error:
        return _undecided(error.reason)
    return RAN if is_so and not holds_row(trial.connection, trial.actual(table)) else _undecided(_NEITHER)


def _altered(trial: _Trial) -> Judgement:
    if trial.statement.renames:
        return _renamed(trial)
    table = trial.statement.needs[0]
    if table not in trial.were or table not in trial.now or trial.were.body(table) == trial.now.body(table):
        return NOT_RAN
    present = trial.structure(table)
    try:
        with trial.scratch.of_definition(trial.were.definition(table)):
            was = trial.scratch.structure(table)
            try:
                trial.scratch.run(trial.ddl)
            except ScratchRefused as error:
                # What the server refuses on the table as it was, it has refused there too.
                return NOT_RAN if was == present or _is_of_structure(error) else _undecided(error.reason)
            if was == present:
                return NOT_RAN
            return RAN if trial.scratch.structure(table) == present else _undecided(_NEITHER)
    except ScratchRefused as error:
        return _undecided(error.reason)


def _is_of_structure(error: ScratchRefused) -> bool:
    """Tell whether the statement does not fit the table: not a question of privileges, room, or what this server can do."""
    meaning = None if error.code is None else meaning_of_code(error.code)
    return meaning is not None and (meaning is UNKNOWN or meaning.verdict is ErrorVerdict.ALREADY_SO)


def _renamed(trial: _Trial) -> Judgement:
    olds, news = zip(*trial.statement.renames, strict=True)
    if {old.fold() for old in olds} & {new.fold() for new in news}:
        return _rotated(trial)
    present = [old in trial.now for old in olds]
    if all(present) or any(old not in trial.were for old in olds):
        return NOT_RAN
    try:
        is_so = not any(present) and all(_is_taken_over(trial, old, new) for old, new in trial.statement.renames)
    except ScratchRefused as error:
        return _undecided(error.reason)
    return RAN if is_so else _undecided("the old name is gone, and the new one is not what the old one was")


def _is_taken_over(trial: _Trial, old: TableName, new: TableName) -> bool:
    """Tell whether the new name is what the old one was; behind other clauses of an ALTER, whether it is there."""
    if new not in trial.now:
        return False
    return trial.statement.kind is DdlKind.ALTER_TABLE or trial.is_as_was(old, new)


def _rotated(trial: _Trial) -> Judgement:
    """Names that are taken and given in one statement: the storage ids tell, or definitions that differ."""
    moved = has_moved(trial.were, trial.now)
    if moved is not None:
        return RAN if moved else NOT_RAN
    origins = {name: name for name in describable(trial.ddl) if name in trial.were}
    for old, new in trial.statement.renames:
        if old not in origins:
            return NOT_RAN
        origins[new] = origins.pop(old)
    try:
        as_made = origins.keys() == set(_present(trial)) and all(trial.is_as_was(was, name) for name, was in origins.items())
        as_before = set(_present(trial)) == {name for name in describable(trial.ddl) if name in trial.were} and all(
            trial.is_as_was(name, name) for name in _present(trial)
        )
    except ScratchRefused as error:
        return _undecided(error.reason)
    if as_made == as_before:
        return _undecided(_NO_IDS)
    return RAN if as_made else NOT_RAN


def _present(trial: _Trial) -> list[TableName]:
    return [name for name in describable(trial.ddl) if name in trial.now]


def _exchanged(trial: _Trial) -> Judgement:
    """The table has the storage of a partition now, or the partitioned table still has all of its own."""
    partitioned, table = trial.statement.needs
    if partitioned not in trial.now or table not in trial.now or partitioned not in trial.were or table not in trial.were:
        return NOT_RAN
    were, now = trial.were.storage(partitioned), trial.now.storage(partitioned)
    was, present = trial.were.storage(table), trial.now.storage(table)
    if were is None or now is None or was is None or present is None or were.server != now.server:
        return _undecided(_NO_IDS)
    if present.ids[""] in were.ids.values() or was.ids[""] in now.ids.values():
        return RAN
    return NOT_RAN if now.ids == were.ids or was.ids == present.ids else _undecided(_NO_IDS)


_JUDGES: Final[Mapping[DdlKind, Callable[[_Trial], Judgement]]] = {
    DdlKind.CREATE_SCHEMA: _made_without_comparison,
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
    DdlKind.CREATE_VIEW: _made_without_comparison,
    DdlKind.DROP_VIEW: _dropped,
}
