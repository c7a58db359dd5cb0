"""The table that an ALTER changes, as it is before: the types of its columns, and whether it holds rows."""

from dataclasses import dataclass
from functools import cached_property

from sqlalchemy import Connection, exists, literal, quoted_name, select
from sqlalchemy import column as sql_column

from applier.ddl import parse_ddl
from applier.ddl.column_parser import parse_type, with_charset
from applier.ddl.column_type import ColumnType
from applier.ddl.cursor import Cursor
from applier.ddl.tokens import DdlSyntaxError
from applier.model.events import DdlEvent, TableName
from applier.mysql.names import spellings, sql_name
from applier.mysql.quoting import quote_identifier, quote_table
from applier.mysql.session import read_bytes
from applier.sinks.mysql.structure.model import ColumnStructure
from applier.sinks.mysql.structure.reader import read_structures


@dataclass
class OldTable:
    """The first table that a DDL needs; ``name`` is None if there is none. What is not asked for costs no statement."""

    connection: Connection
    ddl: DdlEvent

    @cached_property
    def name(self) -> TableName | None:
        """Its name as the server spells it. NeedsOperator: the server has several tables of one folded name."""
        statement = parse_ddl(self.ddl)
        needs = () if statement is None else statement.needs[:1]
        return spellings(self.connection, needs).get(needs[0].fold()) if needs else None

    @cached_property
    def columns(self) -> dict[str, ColumnStructure]:
        """Its columns by casefolded name."""
        if self.name is None:
            return {}
        return {column.name.casefold(): column for column in read_structures(self.connection, [self.name])[self.name.fold()].columns}

    @cached_property
    def types(self) -> dict[str, ColumnType]:
        """The types of its columns by casefolded name."""
        return {name: _type_of(column) for name, column in self.columns.items()}

    def has(self, column: str, condition: str) -> bool:
        """Return whether a row meets a condition, a text of ours, in which ``{column}`` stands for the column."""
        if self.name is None:
            return False
        name = quote_identifier(column)
        query = f"SELECT EXISTS (SELECT 1 FROM {quote_table(*self.name)} WHERE {condition.replace('{column}', name)})"  # noqa: S608
        return bool(int(read_bytes(self.connection, query)[0][0]))

    def holds(self, column: str = "") -> bool:
        """Return whether it holds a row, or with ``column`` a row that has a value there."""
        if self.name is None:
            return False
        has_value = [sql_column(quoted_name(column, quote=True)).is_not(None)] if column else []
        return bool(self.connection.scalar(select(exists(select(literal(1)).select_from(sql_name(self.name)).where(*has_value)))))


def _type_of(column: ColumnStructure) -> ColumnType:
    try:
        return with_charset(parse_type(Cursor(column.type)), column.character_set)
    except DdlSyntaxError:
        # A type of the server's own, of which nothing is known: like one that converts into nothing else.
        return ColumnType(base="vector")
