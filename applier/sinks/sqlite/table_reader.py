"""Reads a sink that is an SQLite file. SQLite has no digests, and runs in this process: rows are digested here."""

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from typing import Any, Final
from zlib import crc32

from applier.ddl.column_type import TypeFamily
from applier.ddl.table_draft import parse_type
from applier.ddl.tokens import Cursor, DdlSyntaxError
from applier.model.errors import FatalSinkError, Remedy
from applier.model.events import TableName
from applier.model.position import Ts
from applier.mysql.float32 import shortest, single_precision
from applier.planner.port import ColumnDescription
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite.catalogue import StoredObject, describe, find_objects
from applier.sinks.sqlite.errors import translate
from applier.sinks.sqlite.literal_value import blob, number, plain, text
from applier.sinks.sqlite.names import quote, stored_name
from applier.sinks.sqlite.session import database_path
from applier.sinks.table_pair import VARIABLE, ColumnPair, Form, Names, ServerKind, SideColumn, SideTable, TablePair
from applier.sinks.table_reader import (
    DIGEST_BITS,
    NOTHING,
    SUMMED_DIGITS,
    Checksum,
    Key,
    Scope,
    TableChanged,
    Value,
    read_float,
    read_text,
    write_float,
)

READ_ROWS = 1000


# The lock first: what is read before it may be gone.
SQLITE: Final = ServerKind(name="SQLite", is_wide=True, has_own_types=True, begins=("BEGIN IMMEDIATE",))


Stored = int | float | str | bytes | None


class StoredTable:
    """Reads and digests the rows of one table of the file. Names and literals as in the SQLite sink."""

    def __init__(self, pair: TablePair) -> None:
        self._pair = pair
        self._key = pair.key_positions()
        self.table = quote(stored_name(pair.sink.name))

    def select(self, condition: str) -> str:
        """Write the query of all columns."""
        names = ", ".join(quote(column.sink.name) for column in self._pair.columns)
        return f"SELECT {names} FROM {self.table} WHERE {condition}"  # noqa: S608 - names are quoted, values rendered

    def bound(self, low: Key | None, rows: int) -> str:
        """Write the query of the end of the next range."""
        order = ", ".join(quote(column.sink.name) for column in self._pair.ranged)
        return f"{self.select(self.condition(Scope(low=low)))} ORDER BY {order} LIMIT 1 OFFSET {rows - 1}"

    def condition(self, scope: Scope) -> str:
        """Write the condition of a range of keys."""
        names = ",".join(quote(column.sink.name) for column in self._pair.ranged)
        limits = [(sign, limit) for sign, limit in ((">", scope.low), ("<=", scope.high)) if limit is not None]
        return " AND ".join(f"({names}) {sign} ({self._literals(limit)})" for sign, limit in limits) or "TRUE"

    def among(self, keys: Sequence[Key]) -> str:
        """Write the condition of some keys."""
        columns = self._pair.key
        each = (" AND ".join(f"{quote(c.sink.name)} = {_literal(c, v)}" for c, v in zip(columns, key, strict=True)) for key in keys)
        return f"(({') OR ('.join(each)}))"

    def values(self, row: Sequence[Stored]) -> tuple[Value, ...]:
        """Return the values of a row in the forms of the comparison."""
        return tuple(None if value is None else _value(column, value) for column, value in zip(self._pair.columns, row, strict=True))

    def key(self, values: Sequence[Value]) -> Key:
        """Return the key of a row."""
        return tuple(values[at] or b"" for at in self._key)

    def key_digest(self, values: Sequence[Value]) -> int:
        """Return the digest of the key."""
        return crc32(_joined(self._pair.key, [values[at] for at in self._key])) if self._key else 0

    def row_digest(self, values: Sequence[Value]) -> str:
        """Return the digest of the whole row."""
        return sha256(_joined(self._pair.columns, values)).hexdigest()

    def _literals(self, key: Key) -> str:
        return ",".join(_literal(column, value) for column, value in zip(self._pair.ranged, key, strict=True))


class SqliteReader:
    """A connection to the file."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._path = database_path(settings.url)
        self._connection: sqlite3.Connection | None = None

    @property
    def kind(self) -> ServerKind:
        """SQLite."""
        return SQLITE

    def names(self, *, without: Collection[str]) -> Names:
        """Return the names of all tables and views."""
        del without  # the bookkeeping's names are no names of upstream's
        objects = self._objects()
        tables, views = (tuple(sorted(each.name for each in objects if each.is_view is is_view)) for is_view in (False, True))
        # All are the replica's: the file has no other tables of such names.
        return Names(tables=tables, views=views, known=frozenset(name.fold() for name in tables))

    def describe(self, tables: Collection[TableName]) -> Sequence[SideTable]:
        """Describe tables."""
        try:
            described = describe(self._opened, tables)
        except sqlite3.Error as error:
            raise translate(error, path=str(self._path)) from error
        return [SideTable(description=found, columns=tuple(map(_column, found.columns))) for found in described.values()]

    def _objects(self) -> list[StoredObject]:
        try:
            return list(find_objects(self._opened).values())
        except sqlite3.Error as error:
            raise translate(error, path=str(self._path)) from error

    def begin(self, snapshot_ts: Ts | None = None) -> None:
        """Begin to see one state of the file."""
        del snapshot_ts
        self.end()
        for statement in ("BEGIN", "SELECT COUNT(*) FROM sqlite_master"):  # the state is fixed by the first read
            list(self._run(statement))

    def end(self) -> None:
        """End the transaction."""
        if self._connection is not None and self._connection.in_transaction:
            self._connection.rollback()

    def checkpoint_ts(self) -> Ts | None:
        """Return the checkpoint of the replica."""
        # Schema and name have letters and digits only: the configuration checks them.
        table, name = f"{self._settings.schema}_progress", self._settings.name
        if not list(self._run(f"SELECT 1 FROM sqlite_master WHERE name = '{table}'")):  # noqa: S608 - see above
            return None
        rows = list(self._run(f"SELECT checkpoint_ts FROM {quote(table)} WHERE name = '{name}'"))  # noqa: S608 - see above
        return Ts(int(rows[0][0])) if rows else None

    def checksum(self, pair: TablePair, scope: Scope) -> Checksum:
        """Return the checksum of some rows."""
        return sum(self.checksums(pair, scope, 0).values(), NOTHING)

    def checksums(self, pair: TablePair, scope: Scope, bits: int) -> Mapping[int, Checksum]:
        """Return the checksum of each part."""
        table = StoredTable(pair)
        found: defaultdict[int, Checksum] = defaultdict(lambda: NOTHING)
        for values in self._within(table, scope):
            part = table.key_digest(values) >> (DIGEST_BITS - bits) if bits else 0
            found[part] += Checksum(1, summand(table.row_digest(values)))
        return found

    def digests(self, pair: TablePair, scope: Scope) -> Sequence[tuple[Key, str]]:
        """Return key and digest of each row."""
        table = StoredTable(pair)
        return [(table.key(values), table.row_digest(values)) for values in self._within(table, scope)]

    def rows(self, pair: TablePair, keys: Sequence[Key]) -> Sequence[tuple[Value, ...]]:
        """Return the values of rows."""
        table = StoredTable(pair)
        return [table.values(row) for row in self._run(table.select(table.among(keys)))]

    def bound(self, pair: TablePair, low: Key | None, rows: int) -> Key | None:
        """Return the end of the next range."""
        table = StoredTable(pair)
        found = list(self._run(table.bound(low, rows)))
        return table.key(table.values(found[0]))[: len(pair.ranged)] if found else None

    def is_above(self, pair: TablePair, key: Key, low: Key) -> bool:
        """Return True: ranges are cut only along columns that the file stores in upstream's order."""
        del pair, key, low
        return True

    def clock_ms(self) -> int:
        """Return the clock of this machine."""
        ((milliseconds,),) = self._run("SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)")
        return int(milliseconds)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _within(self, table: StoredTable, scope: Scope) -> Iterator[tuple[Value, ...]]:
        for row in self._run(table.select(table.condition(scope))):
            values = table.values(row)
            if not scope.bits or table.key_digest(values) >> (DIGEST_BITS - scope.bits) in scope.parts:
                yield values

    def _run(self, query: str) -> Iterator[Any]:
        try:
            cursor = self._opened.execute(query)
            while rows := cursor.fetchmany(READ_ROWS):
                yield from rows
        except sqlite3.Error as error:
            if str(error).startswith("no such"):
                raise TableChanged("a table was changed while it was compared", path=str(self._path)) from error
            raise translate(error, path=str(self._path)) from error

    @property
    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            # To connect would create an empty file, which the next reader takes for a replica without tables.
            if not self._path.exists():
                raise FatalSinkError(
                    "there is no database file yet",
                    remedy=Remedy(
                        "verify.make-file-or-correct-url", "Run `applier catchup` first, which makes the file. Or correct [sink] url"
                    ),
                    path=str(self._path),
                )
            connection = sqlite3.connect(
                self._path, timeout=float(self._settings.lock_wait_timeout_s), isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA query_only = ON")
            connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
            self._connection = connection
        return self._connection


def _column(description: ColumnDescription) -> SideColumn:
    try:
        found = parse_type(Cursor(description.sql_type))
    except DdlSyntaxError:
        found = None
    return SideColumn(description=description, type=found)


def summand(digest: str) -> int:
    """Return the part of a digest that is summed."""
    return int(digest[:SUMMED_DIGITS], 16)


def _joined(columns: Sequence[ColumnPair], values: Sequence[Value]) -> bytes:
    parts = [b"1" if value is None else b"0" for column, value in zip(columns, values, strict=True) if column.is_nullable]
    for column, value in zip(columns, values, strict=True):
        if value is None:
            continue
        if column.is_large:
            parts.append(sha256(value).hexdigest().encode())
        elif column.form in VARIABLE:
            parts += [str(len(value)).encode(), value]
        else:
            parts.append(value)
    return b",".join(parts)


def _value(column: ColumnPair, value: Stored) -> bytes:
    """Write a stored value in its form; one that the column's type cannot have is written so that it equals nothing."""
    try:
        return _form(column, value)
    except (ValueError, ArithmeticError):
        return _unlike(value)


def _form(column: ColumnPair, value: Stored) -> bytes:  # noqa: PLR0911 - one per form
    """Write a stored value in its form; a value of another kind is written so that it equals nothing."""
    match column.form, value:
        case Form.INTEGER, int() | str():
            return str(value).encode()
        case Form.DECIMAL, int() | str():
            return _decimal(column, str(value))
        case Form.DOUBLE, int() | float() | str():
            return write_float(_number(column, float(value)))
        case Form.BYTES, bytes():
            return _padded(column, value)
        case Form.MOMENT, str():
            return _moment(column, value).encode()
        case ((Form.TEXT | Form.LABEL | Form.JSON | Form.VECTOR), str()):
            return value.encode("utf-8", "surrogateescape")
        case _:
            return _unlike(value)


def _unlike(value: Stored) -> bytes:
    return f"stored as {type(value).__name__}: {value!r}".encode("utf-8", "surrogateescape")


def _decimal(column: ColumnPair, value: str) -> bytes:
    exact = Decimal(value)
    shown = f"{exact:.{column.scale}f}"
    # More digits than the column has: as they are, so that they differ.
    return shown.removeprefix("-").encode() if not exact else (shown if Decimal(shown) == exact else value).encode()


def _number(column: ColumnPair, value: float) -> float:
    """Return the 32-bit number that the file's text of a FLOAT represents."""
    kind = column.upstream.type
    return single_precision(value) if kind is not None and kind.family is TypeFamily.FLOAT else value


def _padded(column: ColumnPair, value: bytes) -> bytes:
    kind = column.upstream.type
    return value.ljust(kind.max_characters or 0, b"\0") if kind is not None and kind.base == "binary" else value


def _moment(column: ColumnPair, value: str) -> str:
    is_date = column.upstream.type is not None and column.upstream.type.family is TypeFamily.DATE
    whole, point, fraction = value.partition(".")
    if is_date and not (column.sink.type is None or column.sink.type.family is TypeFamily.DATE):
        whole = whole if " " in whole else f"{whole} 00:00:00"
    return whole + ("." + fraction.ljust(column.scale, "0") if column.scale or point else "")


def _literal(column: ColumnPair, value: bytes) -> str:
    """Write a value of a key as the file stores it."""
    match column.form:
        case Form.INTEGER:
            return plain(int(value))
        case Form.BYTES:
            return blob(value)
        case Form.DOUBLE:
            return number(_as_stored(column, read_float(value)))
        case _:
            return text(read_text(value))


def _as_stored(column: ColumnPair, value: float) -> float:
    """Return the number that the file has for a value of the form: of a FLOAT, that of its shortest text."""
    kind = column.upstream.type
    return shortest(single_precision(value)) if kind is not None and kind.family is TypeFamily.FLOAT else value
