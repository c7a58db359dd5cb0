"""Whether the sink already has what a DDL makes: the only way in which an "already so" of the server counts as done.

"Table exists" may mean that somebody made the table by hand, or that somebody else's table is in the way. So the statement runs on a
scratch table, and the structures are compared: all of it counts. Of an ALTER what it adds is taken away from a copy of the table first.
What the statement would have put into rows counts too: a column that was added by hand must hold in every row what the statement's
own column holds in a row of the scratch table. What cannot be compared is not in place: the operator decides.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnClause, Connection, LargeBinary, cast, exists, literal, select
from sqlalchemy import column as sql_column

from applier.ddl import DdlKind, DdlStatement, parse_ddl
from applier.ddl.postcondition import Postcondition, postconditions_of
from applier.model.events import DdlEvent, TableName
from applier.sinks.mysql.catalogue import holds_row
from applier.sinks.mysql.ddl.scratch import Scratch, ScratchRefused, own_structure
from applier.sinks.mysql.ddl.snapshot import snapshot, states_of
from applier.sinks.mysql.dialect import quote_identifier
from applier.sinks.mysql.names import schema_spelling, spellings, sql_name
from applier.sinks.mysql.structure.difference import difference
from applier.sinks.mysql.structure.model import TableStructure

DROPS = frozenset({DdlKind.DROP_TABLE, DdlKind.DROP_VIEW, DdlKind.DROP_SCHEMA})
_SCHEMAS = frozenset({DdlKind.CREATE_SCHEMA, DdlKind.DROP_SCHEMA})
_CREATES = frozenset({DdlKind.CREATE_TABLE, DdlKind.CREATE_TABLE_LIKE})
_ALTERS = frozenset({DdlKind.ALTER_TABLE, DdlKind.CREATE_INDEX, DdlKind.DROP_INDEX})
_UNKNOWN = "the catalogue does not show whether the statement has run"
_HAS_ROWS = "the table holds rows, and the statement makes an empty one"


class _Trial(NamedTuple):
    """A statement on a table that is there, and the scratch table of the replica."""

    connection: Connection
    ddl: DdlEvent
    actual: TableName
    scratch: Scratch


def why_not_in_place(scratch: Scratch, ddl: DdlEvent) -> str | None:
    """Say what the sink lacks of what the DDL makes; None: all of it is there. Makes the scratch table: no transaction may be open."""
    connection = scratch.connection
    statement = parse_ddl(ddl)
    if statement is None or statement.renames:
        return _UNKNOWN
    if statement.kind in DROPS | _SCHEMAS:
        return None if has_existence(connection, statement) else _UNKNOWN
    if statement.kind not in _CREATES | _ALTERS:
        return _UNKNOWN
    name = (statement.creates if statement.kind in _CREATES else statement.needs)[0]
    actual = spellings(connection, [name]).get(name.fold())
    if actual is None:
        return "the table is not there"
    trial = _Trial(connection, ddl, actual, scratch)
    try:
        return _why_not_created(trial) if statement.kind in _CREATES else _why_not_altered(trial)
    except ScratchRefused as error:
        return error.reason


def has_existence(connection: Connection, statement: DdlStatement) -> bool:
    """Tell whether what a CREATE SCHEMA makes is there, or what a DROP drops is gone."""
    if statement.kind in DROPS and not statement.schema:
        return not spellings(connection, statement.drops)
    return (schema_spelling(connection, statement.schema) is None) == (statement.kind is DdlKind.DROP_SCHEMA)


def _why_not_created(trial: _Trial) -> str | None:
    present = own_structure(trial.connection, trial.actual)
    with trial.scratch.of_statement(trial.ddl):
        differs = difference(present, trial.scratch.structure(trial.actual))
    if differs is None and holds_row(trial.connection, trial.actual):
        return _HAS_ROWS
    return differs


def _why_not_altered(trial: _Trial) -> str | None:
    wanted_all = postconditions_of(trial.ddl.query)
    if wanted_all is None:
        return _UNKNOWN
    present = own_structure(trial.connection, trial.actual)
    added = [wanted for wanted in wanted_all if wanted.is_present]
    left = [wanted for wanted in wanted_all if not wanted.is_present and _has(present, wanted)]
    missing = [wanted for wanted in added if not _has(present, wanted)]
    for wanted in (*left, *missing):
        return f"{wanted.what} {wanted.name} is {'missing' if wanted.is_present else 'still there'}"
    if wanted_all and not added:
        return None
    if len(added) != len(wanted_all):
        return _UNKNOWN
    definition = states_of(snapshot(trial.connection, [trial.actual])).definition(trial.actual)
    with trial.scratch.of_definition(definition):
        for wanted in added:
            trial.scratch.alter(_undoing(wanted))
        is_filled = trial.scratch.fill()
        trial.scratch.run(trial.ddl)
        differs = difference(present, trial.scratch.structure(trial.actual))
        return differs if differs is not None else _why_not_filled(trial, added, present, is_filled=is_filled)


def _has(structure: TableStructure, wanted: Postcondition) -> bool:
    match wanted.what:
        case "column":
            return structure.column(wanted.name) is not None
        case "index":
            return structure.index(wanted.name) is not None
        case _:
            parts = structure.partitioning.partitions if structure.partitioning else ()
            return wanted.name.casefold() in {part.name.casefold() for part in parts}


def _undoing(wanted: Postcondition) -> str:
    """Return the clause that takes away what a statement adds."""
    name = quote_identifier(wanted.name)
    if wanted.formerly:
        return f"RENAME COLUMN {name} TO {quote_identifier(wanted.formerly)}"
    if (wanted.what, wanted.name) == ("index", "PRIMARY"):
        return "DROP PRIMARY KEY"
    return f"DROP {wanted.what.upper()} {name}"


def _why_not_filled(trial: _Trial, added: Sequence[Postcondition], present: TableStructure, *, is_filled: bool) -> str | None:
    """Compare what old rows hold in new columns with the scratch table's row, in which the server itself has put what belongs there."""
    columns = list(_written_columns(added, present))
    if not columns or not holds_row(trial.connection, trial.actual):
        return None
    if not is_filled or any(wanted.formerly for wanted in added):
        return "the table holds rows, and what the statement puts into them cannot be told"
    for column in columns:
        if _holds_other(trial, column):
            return f"column {column} holds values in old rows that the statement does not put there"
    return None


def _written_columns(added: Sequence[Postcondition], present: TableStructure) -> Iterator[str]:
    for wanted in added:
        column = present.column(wanted.name) if wanted.what == "column" else None
        if column is not None and column.generation is None:
            yield column.name


def _holds_other(trial: _Trial, name: str) -> bool:
    """Tell whether a row holds something else than the scratch table's. As bytes: some collations take 'a' for 'A'."""
    column: ColumnClause[Any] = sql_column(name)
    made = select(cast(column, LargeBinary)).select_from(sql_name(trial.scratch.name)).limit(1).scalar_subquery()
    others = select(literal(1)).select_from(sql_name(trial.actual)).where(cast(column, LargeBinary).is_distinct_from(made))
    return bool(trial.connection.scalar(select(exists(others))))
