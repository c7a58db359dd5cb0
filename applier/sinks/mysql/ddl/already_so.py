"""Whether the sink already has what a DDL makes. Only then does an "already so" of the server ("table exists", …) count as done.

"Table exists" may mean that somebody made the table by hand, or that a different table has the name. So the statement runs on a scratch
table, and the structures are compared, all of them. Before an ALTER runs, a copy of the table loses what the ALTER adds.
Rows count too: a column that somebody added by hand must hold in every row what the statement's own column holds in a row of the scratch
table. What cannot be compared is not there: the operator decides.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnClause, LargeBinary, cast, exists, literal, select
from sqlalchemy import column as sql_column

from applier.ddl import DdlKind, parse_ddl
from applier.ddl.conditions import Postcondition, postconditions_of
from applier.model.events import DdlEvent, TableName
from applier.mysql.names import spellings, sql_name
from applier.mysql.quoting import quote_identifier
from applier.sinks.mysql.catalogue import holds_row
from applier.sinks.mysql.ddl.existence import DROPS, SCHEMAS, has_existence
from applier.sinks.mysql.ddl.scratch import Scratch, ScratchRefused, own_structure
from applier.sinks.mysql.ddl.snapshot import snapshot, states_of
from applier.sinks.mysql.structure.difference import difference
from applier.sinks.mysql.structure.model import TableStructure

_CREATES: Final = frozenset({DdlKind.CREATE_TABLE, DdlKind.CREATE_TABLE_LIKE})
_ALTERS: Final = frozenset({DdlKind.ALTER_TABLE, DdlKind.CREATE_INDEX, DdlKind.DROP_INDEX})
_UNKNOWN: Final = "the catalogue does not show whether the statement has run"
_HAS_ROWS: Final = "the table holds rows, but the statement makes an empty one"
_UNKNOWN_VALUES: Final = "the table holds rows, and the values that the statement gives them are not known"


class _Existing(NamedTuple):
    """A statement, and the table that it found, as the server spells its name."""

    ddl: DdlEvent
    table: TableName
    structure: TableStructure
    scratch: Scratch

    @property
    def holds_row(self) -> bool:
        return holds_row(self.scratch.connection, self.table)


def missing_result(scratch: Scratch, ddl: DdlEvent, own: Collection[str] = ()) -> str | None:
    """Say what the sink lacks of the DDL's result; None: nothing. Makes the scratch table: no transaction may be open.

    ``own``: casefolded names of columns that upstream's table had before; the statement found them there too.
    """
    connection = scratch.connection
    statement = parse_ddl(ddl)
    # That some table has the new name of a RENAME does not show that it is the old table: the operator decides.
    if statement is None or statement.renames:
        return _UNKNOWN
    if statement.kind in DROPS | SCHEMAS:
        return None if has_existence(connection, statement) else _UNKNOWN
    if statement.kind not in _CREATES | _ALTERS:
        return _UNKNOWN
    name = (statement.creates if statement.kind in _CREATES else statement.needs)[0]
    actual = spellings(connection, [name]).get(name.fold())
    if actual is None:
        return "the table does not exist"
    existing = _Existing(ddl, actual, own_structure(connection, actual), scratch)
    try:
        return _missing_of_create(existing) if statement.kind in _CREATES else _missing_of_alter(existing, own)
    except ScratchRefused as error:
        return error.reason


def _missing_of_create(existing: _Existing) -> str | None:
    with existing.scratch.of_statement(existing.ddl):
        differs = difference(existing.structure, existing.scratch.structure(existing.table))
    if differs is None and existing.holds_row:
        return _HAS_ROWS
    return differs


def _missing_of_alter(existing: _Existing, own: Collection[str]) -> str | None:
    every = postconditions_of(existing.scratch.as_sent(existing.ddl))
    if every is None:
        return _UNKNOWN
    conditions = [condition for condition in every if condition.what != "column" or condition.name.casefold() not in own]
    for condition in sorted(conditions, key=lambda one: one.is_present):
        if _has(existing.structure, condition) != condition.is_present:
            return f"{condition.what} {condition.name} {'is missing' if condition.is_present else 'still exists'}"
    added = [condition for condition in conditions if condition.is_present]
    # Only DROPs, and all of it is gone: rows keep nothing of a dropped column or index.
    if conditions and not added:
        return None
    # DROP and ADD in one statement: the ADD found its column, but whether it was added after the DROP nothing shows.
    if len(added) != len(conditions):
        return _UNKNOWN
    return _missing_of_additions(existing, added)


def _missing_of_additions(existing: _Existing, added: Sequence[Postcondition]) -> str | None:
    """Take away from a copy of the table what the ALTER adds, run the ALTER on it, and compare."""
    scratch = existing.scratch
    definition = states_of(snapshot(scratch.connection, [existing.table])).definition(existing.table)
    with scratch.of_definition(definition):
        for condition in added:
            scratch.alter(_undoing(condition))
        # Filled before the statement runs: the server itself then puts into the row what belongs into old rows.
        is_filled = scratch.fill()
        scratch.run(existing.ddl)
        differs = difference(existing.structure, scratch.structure(existing.table))
        return differs if differs is not None else _missing_in_rows(existing, added, is_filled=is_filled)


def _has(structure: TableStructure, condition: Postcondition) -> bool:
    match condition.what:
        case "column":
            return structure.column(condition.name) is not None
        case "index":
            return structure.index(condition.name) is not None
        case _:
            partitions = structure.partitioning.partitions if structure.partitioning else ()
            return condition.name.casefold() in {partition.name.casefold() for partition in partitions}


def _undoing(condition: Postcondition) -> str:
    """Return the clause that takes away what a statement adds."""
    name = quote_identifier(condition.name)
    if condition.formerly:
        return f"RENAME COLUMN {name} TO {quote_identifier(condition.formerly)}"
    if (condition.what, condition.name) == ("index", "PRIMARY"):
        return "DROP PRIMARY KEY"
    return f"DROP {condition.what.upper()} {name}"


def _missing_in_rows(existing: _Existing, added: Sequence[Postcondition], *, is_filled: bool) -> str | None:
    """Compare what old rows hold in new columns with the row of the scratch table."""
    columns = list(_written_columns(added, existing.structure))
    if not columns or not existing.holds_row:
        return None
    # CHANGE a b: the old rows' values come from a column that no longer exists.
    if not is_filled or any(condition.formerly for condition in added):
        return _UNKNOWN_VALUES
    for column in columns:
        if _holds_other(existing, column):
            return f"column {column}: old rows hold other values than the statement gives them"
    return None


def _written_columns(added: Sequence[Postcondition], present: TableStructure) -> Iterator[str]:
    for condition in added:
        column = present.column(condition.name) if condition.what == "column" else None
        # The server computes generated columns.
        if column is not None and column.generation is None:
            yield column.name


def _holds_other(existing: _Existing, name: str) -> bool:
    """Return whether a row holds something else than the scratch table's. As bytes: some collations take 'a' for 'A'."""
    column: ColumnClause[Any] = sql_column(name)
    made = select(cast(column, LargeBinary)).select_from(sql_name(existing.scratch.name)).limit(1).scalar_subquery()
    others = select(literal(1)).select_from(sql_name(existing.table)).where(cast(column, LargeBinary).is_distinct_from(made))
    return bool(existing.scratch.connection.scalar(select(exists(others))))
