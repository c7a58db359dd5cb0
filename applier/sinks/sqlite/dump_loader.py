"""Takes the rows of a dump into a file of SQLite: they are stored as rows of the stream are, by the dialect's own literals.

The statements of a dump are MySQL's, so their values are read and written again. What cannot be read exactly stops the load.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Self

from sqlalchemy import RootTransaction
from sqlalchemy.exc import DBAPIError

from applier.ddl.column_type import TypeFamily
from applier.model.errors import ApplierError, ConfigError, Remedy
from applier.model.events import TableName
from applier.mysql.insert_values import Literal, columns_of, rows_of
from applier.planner.port import Literal as Render
from applier.planner.port import TableDescription
from applier.sinks.dump_loader import DumpForm
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite.catalogue import describe, find_objects, read_definition
from applier.sinks.sqlite.dialect import SqliteDialect
from applier.sinks.sqlite.errors import translate
from applier.sinks.sqlite.names import compose, quote
from applier.sinks.sqlite.session import FileSession, database_path, open_engine, raw, snapshot, transaction
from applier.sinks.sqlite.stored_value import FileText, ValueRead, is_known_charset, value_read

COMMIT_BYTES: Final = 16 << 20
_TYPE_CODES: Final = {TypeFamily.ENUM: 247, TypeFamily.SET: 248, TypeFamily.DECIMAL: 246}
"""The conversions that the dialect asks for."""
_ANY_TYPE: Final = 3
_DIALECT: Final = SqliteDialect()


@dataclass(frozen=True, slots=True)
class _TargetColumn:
    name: str
    read: ValueRead
    render: Render
    is_nullable: bool


class FileRows:
    """One session on the file, for one file of the dump. Errors name the table and the file, and no value."""

    def __init__(self, settings: SinkSettings, form: DumpForm, **facts: Any) -> None:
        self._facts, self._named, self._waiting_bytes = facts, form.named_bytes, 0
        self._text = FileText(charset="utf8mb4", zone=form.zone, wire_zone=settings.time_zone, is_of_log=form.is_of_log)
        self._tables: dict[TableName, tuple[TableDescription, dict[str, _TargetColumn | None]]] = {}
        self._connection = FileSession(open_engine(database_path(settings.url), settings.lock_wait_timeout_s))
        self._transaction: RootTransaction | None = None

    def set_zone(self, zone: str) -> None:
        """Take TIMESTAMP values as times of this zone."""
        self._change(replace(self._text, zone=zone))

    def set_charset(self, name: str) -> None:
        """Take texts in this character set. ConfigError: they cannot be read."""
        if not is_known_charset(name.casefold()):
            raise ConfigError(
                "the texts of a file of the dump are in a character set that the applier does not read",
                remedy=Remedy("dump.dump-as-utf8mb4", "Dump with --default-character-set=utf8mb4"),
                charset=name,
            )
        self._change(replace(self._text, charset=name.casefold()))

    def _change(self, text: FileText) -> None:
        if text != self._text:
            self._text = text
            self._tables.clear()

    def write(self, statement: bytes, end: int, table: TableName) -> int:
        """Write the rows of a statement into a table of the sink; return their number."""
        with _errors(self._facts | {"table": str(table)}):
            if self._transaction is None:
                self._transaction = self._connection.begin()
            described, columns = self._table(table)
            listed, at = columns_of(statement, end)
            chosen = _chosen(columns, listed)
            names = [column.name for column in chosen if column is not None]
            count = 0
            for text, rows in _DIALECT.replaces(described, names, _rendered(rows_of(statement, at), chosen)):
                raw(self._connection).execute(text)
                count += rows
        self._waiting_bytes += len(statement)
        if self._waiting_bytes >= COMMIT_BYTES:
            self.commit()
        return count

    def commit(self) -> None:
        """Commit what has been written."""
        transaction, self._transaction, self._waiting_bytes = self._transaction, None, 0
        if transaction is not None:
            with _errors(self._facts):
                transaction.commit()

    def _table(self, name: TableName) -> tuple[TableDescription, dict[str, _TargetColumn | None]]:
        """Return the description of a table, and its columns by name, in their order; None: the sink computes it."""
        if name not in self._tables:
            driver = raw(self._connection)
            entry = find_objects(driver).get(name.fold())
            definition = None if entry is None else read_definition(driver, entry)
            table = describe(driver, [name]).get(name.fold())
            if table is None or definition is None:
                raise ValueError("no definition of the dump has made the table")
            named = self._named.get(name.fold(), {})
            types = {column.name: column.type for column in definition.columns}
            columns = {}
            for column in table.columns:
                sql_type, folded = types[column.name], column.name.casefold()
                render = _DIALECT.literal(column, _TYPE_CODES.get(sql_type.family, _ANY_TYPE))
                read = value_read(sql_type, named.get(folded, ""), self._text)
                columns[folded] = None if column.generated else _TargetColumn(column.name, read, render, column.nullable)
            self._tables[name] = table, columns
        return self._tables[name]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self._connection.close()


@contextmanager
def _errors(facts: Mapping[str, Any]) -> Iterator[None]:
    """Run a block whose errors come out as ours, with facts."""
    try:
        yield
    except ApplierError as error:
        error.facts |= facts
        raise
    except (DBAPIError, sqlite3.Error) as error:
        raise translate(error, **facts) from None
    except ValueError as error:
        message, remedy = (
            f"rows of the dump cannot be read: {error}",
            Remedy("dump.exclude-table-with-unreadable-rows", "Exclude the table by source.tables, or load into MariaDB or MySQL"),
        )
        raise ConfigError(message, remedy=remedy, **facts) from None


def _chosen(columns: Mapping[str, _TargetColumn | None], listed: Sequence[str]) -> list[_TargetColumn | None]:
    """Return the columns of the values of a row, in their order."""
    if not listed:
        return list(columns.values())
    missing = [name for name in listed if name.casefold() not in columns]
    if missing:
        raise ValueError(f"the table has no column {missing[0]}")
    return [columns[name.casefold()] for name in listed]


def _rendered(rows: Iterator[list[Literal]], columns: Sequence[_TargetColumn | None]) -> Iterator[str]:
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"a row has {len(row)} values, and the table {len(columns)} columns")
        yield f"({','.join(_values(row, columns))})"


def _values(row: Sequence[Literal], columns: Sequence[_TargetColumn | None]) -> Iterator[str]:
    for literal, column in zip(row, columns, strict=True):
        if column is None:
            continue
        if literal is None:
            # SQLite would take the next number for a key.
            if not column.is_nullable:
                raise ValueError(f"NULL in column {column.name}, which holds none")
            yield "NULL"
            continue
        try:
            yield column.render(column.read(*literal))
        except (ValueError, ArithmeticError) as error:
            raise ValueError(f"a value of column {column.name} is not one of its type: {type(error).__name__}") from None


@dataclass(frozen=True, slots=True)
class FileLoader:
    """Loads dumps into a file, which is there: the bookkeeping is in it. ``settings``: of the sink."""

    settings: SinkSettings

    def present(self, names: Sequence[TableName]) -> Sequence[TableName]:
        """Return which of these tables and views are there."""
        with self._snapshot() as driver:
            found = find_objects(driver)
        return [name for name in names if name.fold() in found]

    def drop(self, tables: Sequence[TableName], views: Sequence[TableName]) -> None:
        """Drop tables and views, if they are there."""
        with transaction(open_engine(database_path(self.settings.url), self.settings.lock_wait_timeout_s)) as connection:
            driver = raw(connection)
            found = find_objects(driver)
            for entry in (found[name.fold()] for name in (*views, *tables) if name.fold() in found):
                driver.execute(compose("DROP VIEW {name}" if entry.is_view else "DROP TABLE {name}", name=quote(entry.stored)))

    def count(self, tables: Sequence[TableName]) -> Mapping[TableName, int]:
        """Return how many rows each of these tables has."""
        with self._snapshot() as driver:
            found = find_objects(driver)
            counting = {name: compose("SELECT COUNT(*) FROM {table}", table=quote(found[name.fold()].stored)) for name in tables}
            return {name: driver.execute(query).fetchone()[0] for name, query in counting.items()}

    def open_rows(self, form: DumpForm, file: str) -> FileRows:
        """Return a session for the rows of a file."""
        return FileRows(self.settings, form, file=file)

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        path = database_path(self.settings.url)
        with snapshot(open_engine(path, self.settings.lock_wait_timeout_s), path) as connection:
            yield raw(connection)
