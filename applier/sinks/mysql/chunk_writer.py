"""Writes chunks of upstream's tables into a server, each in one transaction with its row of the bookkeeping.

Rows go by bulk loads, or by multi-row statements where the server takes no loads. They REPLACE only where two chunks of different views
may hold one value of a secondary unique key: without REPLACE a duplicate is a warning of a bulk load, and no warning is passed over.
Values take the same way into each column as in a bulk load of a stream: numbers for BIT, ENUM and SET, digits for bytes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from applier.copy.lines import rows_of
from applier.copy.port import ChunkDone, ColumnKind, CopyColumn, CopyFence, CopyTable, KeyRange, RowBlock
from applier.model.errors import ConfigError, FatalSinkError, Remedy
from applier.model.events import TableName
from applier.model.position import Ts
from applier.mysql.catalogue import describe
from applier.mysql.errors import translate
from applier.mysql.names import quote_identifier, quote_table
from applier.mysql.session import discard, limits
from applier.planner.port import ColumnDescription, Phase, Statement, TableDescription
from applier.sinks.bookkeeping.copy_table import CopyBook
from applier.sinks.chunk_transaction import ChunkTransaction
from applier.sinks.mysql.bookkeeping import bookkeeping_of
from applier.sinks.mysql.bulk_load import BYTES, NUMBER, LoadedField, load_statement
from applier.sinks.mysql.bulk_write import takes_loads
from applier.sinks.mysql.server_check import server_of_unshared_locks
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.mysql.writer import MysqlWriteSession, MysqlWriteSessions
from applier.sinks.settings import SinkSettings

STATEMENT_BYTES: Final = 1 << 20
"""Of a multi-row statement."""
_GONE: Final = Remedy("mysql.copy-again-after-drop", "Another program has changed the sink. Begin the copy again: `applier copy --again`")
_TYPE: Final = Remedy(
    "mysql.exclude-table-of-other-type",
    "Exclude the table with source.tables, or change the type of the column upstream to one that both have",
)


@dataclass(frozen=True, slots=True)
class MysqlChunkWriter:
    """Implements ``ChunkWriter``. Picklable; its session lives in the process that writes."""

    settings: SinkSettings

    def require(self) -> None:
        """Refuse servers whose shared locks do not hold: TiDB, and Galera clusters."""
        connection = open_session(self.settings, Purpose.CONTROL)
        try:
            server = server_of_unshared_locks(connection)
        except (SQLAlchemyError, OSError) as error:
            raise translate(error, "asking whether the server's shared locks hold") from None
        finally:
            discard(connection)
        if server is not None:
            message = f"a copy cannot be written into {server}: its shared locks do not stop a late writer"
            raise ConfigError(message, remedy=Remedy("mysql.load-dump-instead-of-copy", "Load a dump: `applier load DUMP`"), server=server)

    def write(
        self, fence: CopyFence, table: CopyTable, target: TableName, chunk: KeyRange, rows: Iterator[RowBlock], finish: Callable[[], Ts]
    ) -> ChunkDone:
        """Write a chunk, and what the bookkeeping says of it."""
        bookkeeping = bookkeeping_of(self.settings)
        sessions = MysqlWriteSessions(self.settings, bookkeeping)
        return ChunkTransaction(CopyBook(bookkeeping), sessions).write(
            fence, table.name, target, chunk.number, lambda session: _written(session, table, target, rows, finish)
        )


def _written(
    session: MysqlWriteSession, table: CopyTable, target: TableName, blocks: Iterator[RowBlock], finish: Callable[[], Ts]
) -> ChunkDone:
    described = describe(session.connection, [target]).get(target.fold())
    if described is None:
        raise FatalSinkError("a table of the copy is not in the sink any more", remedy=_GONE, table=str(target))
    pairs = _pairs(table, described)
    rows = size = 0
    write = (_load if takes_loads(session.connection) else _insert)(session, table, described, pairs)
    for block in blocks:
        write(block)
        rows += block.rows
        size += len(block.lines)
    return ChunkDone(rows, size, finish())


_Pairs = list[tuple[CopyColumn, ColumnDescription]]


def _pairs(table: CopyTable, described: TableDescription) -> _Pairs:
    """Return each column of upstream with the sink's. FatalSinkError: there is none, or it takes other values."""
    by_name = {column.name.casefold(): column for column in described.columns}
    pairs = []
    for column in table.columns:
        there = by_name.get(column.name.casefold())
        if there is None:
            raise FatalSinkError("a column of the copy is not in the sink", remedy=_GONE, table=str(table.name), column=column.name)
        if there.generated:
            continue
        if there.binary and column.kind is ColumnKind.TEXT:
            raise FatalSinkError(
                f"the sink stores a column of the type {column.upstream_type} in another way",
                remedy=_TYPE,
                table=str(table.name),
                column=column.name,
            )
        pairs.append((column, there))
    return pairs


def _load(session: MysqlWriteSession, table: CopyTable, described: TableDescription, pairs: _Pairs) -> Callable[[RowBlock], None]:
    """Return what writes a block by a bulk load."""
    # A column that the sink computes is read and not stored.
    stored = dict(pairs)
    fields = [LoadedField(stored.get(column), _form(column) if column in stored else "") for column in table.columns]
    statement = load_statement(described, fields, replaces=table.has_secondary_key)

    def load(block: RowBlock) -> None:
        session.execute(Statement(Phase.REPLACE, _name(described), statement, block.rows, 0, 0, data=block.lines))

    return load


def _form(column: CopyColumn) -> str:
    """Return what a column is set to; empty if it takes the text as it is."""
    match column.kind:
        case ColumnKind.NUMBER:
            return NUMBER
        case ColumnKind.BYTES:
            return BYTES
        case ColumnKind.CHARSET:
            return f"CONVERT({BYTES} USING {column.charset})"
        case ColumnKind.TEXT:
            return ""


def _insert(session: MysqlWriteSession, table: CopyTable, described: TableDescription, pairs: _Pairs) -> Callable[[RowBlock], None]:
    """Return what writes a block by multi-row statements."""
    verb = "REPLACE" if table.has_secondary_key else "INSERT"
    names = ",".join(quote_identifier(there.name) for _, there in pairs)
    head = f"{verb} INTO {quote_table(described.schema, described.table)} ({names}) VALUES ".encode()
    largest = min(STATEMENT_BYTES, limits(session.connection)[0] // 2)
    stored = {column for column, _ in pairs}

    def send(texts: list[bytes]) -> None:
        session.execute(Statement(Phase.REPLACE, _name(described), head + b",".join(texts), len(texts), 0, 0))

    def insert(block: RowBlock) -> None:
        texts, size = list[bytes](), len(head)
        for row in rows_of(block.lines):
            values = [_literal(column, value) for column, value in zip(table.columns, row, strict=True) if column in stored]
            text = b"(" + b",".join(values) + b")"
            if texts and size + len(text) > largest:
                send(texts)
                texts, size = [], len(head)
            texts.append(text)
            size += len(text) + 1
        send(texts)

    return insert


def _literal(column: CopyColumn, value: bytes | None) -> bytes:
    if value is None:
        return b"NULL"
    match column.kind:
        case ColumnKind.NUMBER:
            return value
        case ColumnKind.BYTES:
            return b"X'" + value + b"'"
        case ColumnKind.CHARSET:
            return f"_{column.charset} X'".encode() + value + b"'"
        case ColumnKind.TEXT:
            return b"_utf8mb4 X'" + value.hex().encode() + b"'"


def _name(described: TableDescription) -> str:
    return f"{described.schema}.{described.table}"
