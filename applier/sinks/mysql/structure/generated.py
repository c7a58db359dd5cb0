"""The columns of the sink's tables as ``applier.ddl.generated`` asks for them. Errors of the database come out as SQLAlchemy's."""

from collections.abc import Collection

from sqlalchemy import Connection

from applier.ddl.column_parser import parse_type, with_charset
from applier.ddl.column_type import ColumnType
from applier.ddl.cursor import Cursor
from applier.ddl.generated import Known, KnownColumn, computed_otherwise, computes_number
from applier.ddl.table import PRIMARY
from applier.ddl.tokens import DdlSyntaxError
from applier.model.events import FoldedName, TableName
from applier.mysql.information_schema import CatalogueView, Row, read_view
from applier.sinks.mysql.structure.column import column_of
from applier.sinks.mysql.structure.model import ColumnStructure, TableStructure

_COLUMNS = CatalogueView("information_schema.COLUMNS")
_PARTS = CatalogueView("information_schema.STATISTICS")


def known_columns(connection: Connection, tables: Collection[TableName]) -> dict[FoldedName, Known]:
    """Read the columns of tables, named as the server spells them."""
    columns, parts = (read_view(connection, view, tables) for view in (_COLUMNS, _PARTS))
    return {
        table.fold(): known([column_of(row, ()) for row in columns[table]], {str(part["COLUMN_NAME"]).casefold() for part in parts[table]})
        for table in tables
    }


def known_of(structure: TableStructure) -> Known:
    """Return the columns of a table that was read."""
    indexed = {part.column.casefold() for index in structure.indexes for part in index.parts if part.column is not None}
    return known(structure.columns, indexed)


def unportable_unique_indexes(structure: TableStructure) -> list[str]:
    """List the unique indexes of expressions that the table may compute otherwise than upstream."""
    unique = [index for index in structure.indexes if index.unique and any(part.expression for part in index.parts)]
    # Few tables have any, and the check asks for thousands of tables.
    columns = known_of(structure) if unique else {}
    primary = {part.column for index in structure.indexes if index.name == PRIMARY for part in index.parts}
    return [
        index.name
        for index in unique
        # Two rows that differ in the primary key differ in such an index too.
        if not (primary and primary <= {part.column for part in index.parts if part.prefix is None})
        if not all(computes_number(_plain(part.expression.text), columns) for part in index.parts if part.expression is not None)
    ]


def names_computed_otherwise(rows: Collection[Row]) -> list[str]:
    """Return the generated columns of one table of which the sink may compute other values than upstream, casefolded."""
    # Few tables have any, and the planner asks for thousands of tables.
    if not any(row["GENERATION_EXPRESSION"] for row in rows):
        return []
    return computed_otherwise(known([column_of(row, ()) for row in rows], ()))


def known(columns: Collection[ColumnStructure], indexed: Collection[str]) -> Known:
    """Return the columns; ``indexed``: casefolded names."""
    return {
        column.name.casefold(): KnownColumn(
            type=_type(column),
            # Servers give literals a character set, which no expression of upstream has.
            expression="" if column.generation is None else _plain(column.generation.text),
            is_stored=column.is_stored,
            is_indexed=column.name.casefold() in indexed,
            comment=column.comment,
        )
        for column in columns
    }


def _plain(expression: str) -> str:
    try:
        return Cursor(expression).source()
    except DdlSyntaxError:
        return expression


def _type(column: ColumnStructure) -> ColumnType | None:
    try:
        return with_charset(parse_type(Cursor(column.type)), column.character_set)
    except DdlSyntaxError:
        return None
