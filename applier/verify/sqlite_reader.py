"""Reads a sink that is an SQLite file. SQLite has no digests, and runs in this process: rows are digested here."""

import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from applier.ddl.column_parser import parse_type
from applier.ddl.tokens import Cursor, DdlSyntaxError
from applier.model.errors import FatalSinkError
from applier.model.events import TableName
from applier.model.position import Ts
from applier.model.remedy import Remedy
from applier.planner.catalogue import ColumnDescription
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite.catalogue import StoredObject, describe, find_objects
from applier.sinks.sqlite.errors import translate
from applier.sinks.sqlite.names import quote
from applier.sinks.sqlite.session import database_path
from applier.verify.reader import DIGEST_BITS, NOTHING, Checksum, Key, Scope, TableChanged, Value
from applier.verify.sqlite_text import StoredTable, summand
from applier.verify.table_pair import Names, ServerKind, SideColumn, SideTable, TablePair

READ_ROWS = 1000


# The lock first: what is read before it may be gone.
SQLITE: Final = ServerKind(name="SQLite", is_wide=True, has_own_types=True, begins=("BEGIN IMMEDIATE",))


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


def open_reader(settings: SinkSettings, *, is_upstream: bool, statement_timeout_s: int) -> SqliteReader:
    """Return the reader of a file, which connects when it is used."""
    del is_upstream, statement_timeout_s
    return SqliteReader(settings)
