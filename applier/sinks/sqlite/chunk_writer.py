"""Writes chunks of upstream's tables into a file of SQLite, each in one transaction with its row of the bookkeeping.

A value becomes what the stream would bring for it: it is read by its column's type and written by the dialect's own literals.
"""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from applier.copy.lines import rows_of
from applier.copy.port import ChunkDone, ColumnKind, CopyColumn, CopyFence, CopyTable, KeyRange, RowBlock
from applier.ddl.column_type import ColumnType, TypeFamily
from applier.model.errors import FatalSinkError, Remedy
from applier.model.events import TableName
from applier.model.position import Ts
from applier.mysql.insert_values import LiteralKind
from applier.planner.port import Literal as Render
from applier.planner.port import TableDescription
from applier.sinks.bookkeeping.copy_table import CopyBook
from applier.sinks.chunk_transaction import ChunkTransaction
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite.bookkeeping import bookkeeping_of
from applier.sinks.sqlite.catalogue import describe, find_objects, read_definition
from applier.sinks.sqlite.dialect import SqliteDialect
from applier.sinks.sqlite.session import database_path
from applier.sinks.sqlite.stored_value import FileText, Stored, ValueRead, value_read
from applier.sinks.sqlite.writer import SqliteWriteSession, SqliteWriteSessions

_TYPE_CODES: Final = {TypeFamily.ENUM: 247, TypeFamily.SET: 248, TypeFamily.DECIMAL: 246}
"""The conversions that the dialect asks for."""
_ANY_TYPE: Final = 3
_DIALECT: Final = SqliteDialect()
_NAMED: Final = frozenset({"uuid", "inet4", "inet6"})
_GONE: Final = Remedy("sqlite.copy-again-after-drop", "Another program has changed the sink. Begin the copy again: `applier copy --again`")
_EXCLUDE: Final = Remedy("sqlite.exclude-table-with-unreadable-rows", "Exclude the table by source.tables, or copy into MariaDB or MySQL")


@dataclass(frozen=True, slots=True)
class _Target:
    """A column of the sink: how its values are read from lines, and written into statements. None: the sink computes it."""

    name: str
    read: Callable[[bytes], Stored]
    render: Render
    is_nullable: bool

    def text(self, value: bytes | None) -> str:
        """Return a value as SQL. ValueError: it is none of the column's type."""
        if value is None:
            # SQLite would take the next number for a key.
            if not self.is_nullable:
                raise ValueError(f"NULL in column {self.name}, which holds none")
            return "NULL"
        try:
            return self.render(self.read(value))
        except (ValueError, ArithmeticError, LookupError) as error:
            raise ValueError(f"a value of column {self.name} is not one of its type: {type(error).__name__}") from None


@dataclass(frozen=True, slots=True)
class SqliteChunkWriter:
    """Implements ``ChunkWriter``. Picklable; opens the file for each chunk."""

    settings: SinkSettings

    def require(self) -> None:
        """Nothing: one writer at a time holds the file."""

    def write(
        self, fence: CopyFence, table: CopyTable, target: TableName, chunk: KeyRange, rows: Iterator[RowBlock], finish: Callable[[], Ts]
    ) -> ChunkDone:
        """Write a chunk, and what the bookkeeping says of it."""
        sessions = SqliteWriteSessions(database_path(self.settings.url), self.settings.lock_wait_timeout_s)
        return ChunkTransaction(CopyBook(bookkeeping_of(self.settings)), sessions).write(
            fence, table.name, target, chunk.number, lambda session: self._written(session, table, target, rows, finish)
        )

    def _written(
        self, session: SqliteWriteSession, table: CopyTable, target: TableName, blocks: Iterator[RowBlock], finish: Callable[[], Ts]
    ) -> ChunkDone:
        described, columns = self._columns(session.driver, table, target)
        names = [column.name for column in columns if column is not None]
        rows = size = 0
        for block in blocks:
            try:
                texts = [_row(row, columns) for row in rows_of(block.lines)]
            except ValueError as error:
                raise FatalSinkError(f"a row cannot be copied exactly: {error}", remedy=_EXCLUDE, table=str(table.name)) from None
            for text, _ in _DIALECT.replaces(described, names, texts):
                session.driver.execute(text)
            rows += block.rows
            size += len(block.lines)
        return ChunkDone(rows, size, finish())

    def _columns(self, driver: sqlite3.Connection, table: CopyTable, target: TableName) -> tuple[TableDescription, list[_Target | None]]:
        entry = find_objects(driver).get(target.fold())
        definition = None if entry is None else read_definition(driver, entry)
        described = describe(driver, [target]).get(target.fold())
        if described is None or definition is None:
            raise FatalSinkError("a table of the copy is not in the sink any more", remedy=_GONE, table=str(target))
        types = {column.name: column.type for column in definition.columns}
        by_name = {column.name.casefold(): column for column in described.columns}
        text = FileText(charset="utf8mb4", zone="UTC", wire_zone=self.settings.time_zone, is_of_log=True)
        found = list[_Target | None]()
        for column in table.columns:
            there = by_name.get(column.name.casefold())
            if there is None:
                raise FatalSinkError("a column of the copy is not in the sink", remedy=_GONE, table=str(table.name), column=column.name)
            sql_type = types[there.name]
            named = column.upstream_type if column.upstream_type in _NAMED else ""
            read = _read_of(column, sql_type, value_read(sql_type, named, text))
            render = _DIALECT.literal(there, _TYPE_CODES.get(sql_type.family, _ANY_TYPE))
            found.append(None if there.generated else _Target(there.name, read, render, there.nullable))
        return described, found


def _read_of(column: CopyColumn, sql_type: ColumnType, read: ValueRead) -> Callable[[bytes], Stored]:
    """Return what reads a value of a line."""
    match column.kind:
        case ColumnKind.BYTES | ColumnKind.CHARSET:
            return lambda value: read(LiteralKind.BYTES, bytes.fromhex(value.decode()))
        case ColumnKind.TEXT:
            return lambda value: read(LiteralKind.TEXT, value)
        case ColumnKind.NUMBER if sql_type.family is TypeFamily.ENUM:
            return lambda value: sql_type.labels[int(value) - 1] if int(value) else ""
        case ColumnKind.NUMBER if sql_type.family is TypeFamily.SET:
            return lambda value: ",".join(label for at, label in enumerate(sql_type.labels) if int(value) >> at & 1)
        case _:
            return lambda value: read(LiteralKind.NUMBER, value)


def _row(row: list[bytes | None], columns: list[_Target | None]) -> str:
    return f"({','.join(column.text(value) for value, column in zip(row, columns, strict=True) if column is not None)})"
