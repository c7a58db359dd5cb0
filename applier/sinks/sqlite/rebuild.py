"""Changes a table's columns: by ALTER TABLE ADD COLUMN where SQLite can, else by building the table again.

The steps are those of sqlite.org/lang_altertable.html, section 7. Rows are kept exactly: values of a column whose type changes pass
through ``conversion.py``; new columns take what MySQL gives existing rows. All of it happens in the caller's transaction.
"""

import sqlite3
from typing import Final

from applier.ddl.charset import NARROW, holder
from applier.ddl.column_type import ColumnType, TypeFamily
from applier.ddl.edit import with_new_names
from applier.ddl.portable_expression import named_columns
from applier.ddl.remedy import BY_HAND, PLAIN_COLUMN
from applier.ddl.table import ColumnDefinition, DefaultKind, TableDefinition
from applier.ddl.table_draft import DraftColumn
from applier.model.errors import NeedsOperator
from applier.sinks.sqlite.conversion import Conversion, conversion_of_rows, same
from applier.sinks.sqlite.create_statement import column_clause, create_indexes, create_table, is_computed
from applier.sinks.sqlite.ddl_time import DdlTime
from applier.sinks.sqlite.literal_value import fill_value
from applier.sinks.sqlite.literals import blob, plain
from applier.sinks.sqlite.names import Sql, compose, quote, quote_all, stored_name
from applier.sinks.sqlite.stored_value import Inexact, Stored, as_text

_SCRATCH: Final = "applier_rebuild"


def change_columns(
    connection: sqlite3.Connection, old: TableDefinition, new: TableDefinition, columns: list[DraftColumn], ddl_time: DdlTime
) -> bool:
    """Bring the table from ``old`` to ``new``; return whether its indexes were created again.

    ``columns`` are the new ones with their sources.
    """
    is_narrowed = any(column.charset in NARROW for column in columns)
    if old.columns == new.columns and old.primary_key == new.primary_key and not is_narrowed:
        return False
    if _can_append(old, new) and not is_narrowed:
        for column in new.columns[len(old.columns) :]:
            _append(connection, new, column, ddl_time)
        return False
    _rebuild(connection, old, new, columns, ddl_time)
    return True


def _can_append(old: TableDefinition, new: TableDefinition) -> bool:
    """SQLite appends nullable columns with a constant default in no time; others make a rebuild."""
    return (
        new.columns[: len(old.columns)] == old.columns
        and old.primary_key == new.primary_key
        and all(
            # ADD COLUMN of NOT NULL wants a DEFAULT, which our columns do not carry (create_statement.py).
            column.nullable and not column.generated and (column.default is None or column.default.kind is DefaultKind.LITERAL)
            for column in new.columns[len(old.columns) :]
        )
    )


def _append(connection: sqlite3.Connection, table: TableDefinition, column: ColumnDefinition, ddl_time: DdlTime) -> None:
    fill = fill_value(column, ddl_time)
    statement = compose(
        "ALTER TABLE {table} ADD COLUMN {clause}", table=quote(stored_name(table.name)), clause=column_clause(table, column)
    )
    if isinstance(fill, float):  # SQLite takes no exact spelling of a fraction as a default of an appended column
        connection.execute(statement)
        update = compose("UPDATE {table} SET {column} = ?", table=quote(stored_name(table.name)), column=quote(column.name))
        connection.execute(update, (fill,))
        return
    if fill is not None:
        statement = compose(
            "{statement} DEFAULT {value}", statement=statement, value=Sql(blob(fill) if isinstance(fill, bytes) else plain(fill))
        )
    connection.execute(statement)


def _rebuild(
    connection: sqlite3.Connection, old: TableDefinition, new: TableDefinition, columns: list[DraftColumn], ddl_time: DdlTime
) -> None:
    stored = stored_name(old.name)
    # No index yet: SQLite fills a table without indexes faster, and their names are still taken by the old table's.
    connection.execute(create_table(new, _SCRATCH))
    written = [column for column in columns if not is_computed(new, column.definition)]
    _copy(connection, old, written, ddl_time)
    connection.execute(compose("DROP TABLE {table}", table=quote(stored)))
    connection.execute(compose("ALTER TABLE {scratch} RENAME TO {table}", scratch=quote(_SCRATCH), table=quote(stored)))
    for statement in create_indexes(new):
        connection.execute(statement)


def _copy(connection: sqlite3.Connection, old: TableDefinition, columns: list[DraftColumn], ddl_time: DdlTime) -> None:
    # An empty table has nothing to convert: then types without an exact conversion change too.
    if not connection.execute(compose("SELECT EXISTS (SELECT 1 FROM {table})", table=quote(stored_name(old.name)))).fetchone()[0]:
        return
    _refuse_unknown_values(old, columns)
    reasons: list[str] = []
    sources = [_source(connection, old, column, ddl_time, reasons) for column in columns]
    statement = compose(
        "INSERT INTO {scratch} ({columns}) SELECT {sources} FROM {table}",
        scratch=quote(_SCRATCH),
        columns=quote_all([column.definition.name for column in columns]),
        sources=Sql(",".join(text for text, _ in sources)),
        table=quote(stored_name(old.name)),
    )
    try:
        connection.execute(statement, [fill for text, fill in sources if text == "?"])
    except (sqlite3.OperationalError, sqlite3.IntegrityError) as error:
        # IntegrityError: the STRICT table refused a value, or two values of a key became one.
        if not reasons and not isinstance(error, sqlite3.IntegrityError):
            raise
        raise _inexact(old, reasons[0] if reasons else str(error)) from error


def _refuse_unknown_values(old: TableDefinition, columns: list[DraftColumn]) -> None:
    """Raise NeedsOperator if a STORED column that comes with the rows gets new values: upstream computes those of old rows."""
    names = {column.source.casefold(): column.definition.name for column in columns if column.source}
    changed = {column.source.casefold() for column in columns if column.source and _type_of(old, column.source) != column.definition.type}
    for column in columns:
        if not column.definition.generated:
            continue
        before = old.column(column.source) if column.source else None
        named = None if before is None else named_columns(before.generated)
        if (
            before is None
            or named is None
            or named & changed
            or before.type != column.definition.type
            or with_new_names(before.generated, names) != column.definition.generated
        ):
            raise NeedsOperator(
                "the DDL gives old rows values of a STORED column, which only upstream can compute",
                remedy=PLAIN_COLUMN,
                table=str(old.name),
                column=column.definition.name,
            )


def _type_of(table: TableDefinition, name: str) -> ColumnType | None:
    column = table.column(name)
    return None if column is None else column.type


def _source(
    connection: sqlite3.Connection, old: TableDefinition, column: DraftColumn, ddl_time: DdlTime, reasons: list[str]
) -> tuple[str, Stored]:
    """Return the expression that gives a new column its values, and the value to bind if the expression is ``?``."""
    before = old.column(column.source) if column.source else None
    if before is None:
        return "?", fill_value(column.definition, ddl_time)
    convert = _within_charset(conversion_of_rows(before.type, column.definition.type, ddl_time), before, column)
    if convert is same:
        return quote(before.name), None
    # Named by number: a column's own name may hold what no function's name may.
    name = f"applier_convert_{len(old.columns)}_{old.columns.index(before)}"
    connection.create_function(name, 1, _guarded(convert, before.name, reasons), deterministic=True)
    return compose("{function}({column})", function=Sql(name), column=quote(before.name)), None


def _within_charset(convert: Conversion, before: ColumnDefinition, column: DraftColumn) -> Conversion:
    """Refuse texts that the new character set does not certainly hold: upstream has question marks in their place, or none of them."""
    families = {before.type.family, column.definition.type.family}
    charset = column.charset if column.charset in NARROW else column.definition.type.charset
    if families != {TypeFamily.CHARACTER} or charset in {"", before.type.charset}:
        return convert
    holds = holder(charset)

    def checked(value: Stored) -> Stored:
        if not holds(as_text(value)):
            raise Inexact(f"it is not certain that {charset} holds the text")
        return convert(value)

    return checked


def _guarded(convert: Conversion, column: str, reasons: list[str]) -> Conversion:
    def run(value: Stored) -> Stored:
        try:
            return None if value is None else convert(value)
        except (Inexact, ValueError) as error:
            # SQLite passes on that a function failed, and not why.
            reasons.append(f"column {column}: {error}")
            raise

    return run


def _inexact(table: TableDefinition, reason: str) -> NeedsOperator:
    return NeedsOperator(
        "existing rows cannot be converted exactly as upstream converted them",
        remedy=BY_HAND,
        table=str(table.name),
        reason=reason,
    )
