"""The oracle in SQLite: a database in which the upstream's transactions are really executed, by statements of our own.

Tables are named as the SQLite sink names them (``shop.orders``), but nothing is taken from the sink: types, bindings and the ways
to alter a table are chosen here, so that a mistake of one is not a mistake of both. A sink's file is read as an oracle's, to compare them.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

from applier.demo.simulator.alteration import altered, convert, fill_of
from applier.demo.simulator.column_type import TypeClass, UpstreamType
from applier.demo.simulator.compare import ColumnFacts, DatabaseFacts, IndexFacts, TableFacts
from applier.demo.simulator.mysql_text import label_text
from applier.demo.simulator.operation import (
    AlterTable,
    CreateSchema,
    CreateTable,
    CreateTableLike,
    CreateView,
    Ddl,
    DropSchema,
    DropTable,
    DropView,
    RenameTable,
    Row,
    RowChange,
    TruncateTable,
    UpstreamStep,
)
from applier.demo.simulator.schema import Table, UpstreamColumn
from applier.demo.simulator.table_family import ACCOUNTS, WALLETS
from applier.model.events import TableName, Value
from applier.model.position import Ts

_BOOKKEEPING = "applier_"


def quote(name: str) -> str:
    """Quote an identifier of SQLite."""
    return '"' + name.replace('"', '""') + '"'


def money_total(connection: sqlite3.Connection) -> int | None:
    """Return the sum of all balances in an SQLite database (oracle or sink); None before the accounts exist."""
    present = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    names = [str(ACCOUNTS), str(WALLETS)]
    if not present.issuperset(names):
        return None
    sums = " UNION ALL ".join(f"SELECT balance FROM {quote(name)}" for name in names)
    return int(connection.execute(f"SELECT COALESCE(SUM(balance), 0) FROM ({sums})").fetchone()[0])


def read_facts(connection: sqlite3.Connection) -> DatabaseFacts:
    """Describe an SQLite database for comparison; the sink's own bookkeeping is skipped."""
    connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
    found = connection.execute("SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    names = [(name, kind) for name, kind in found if "." in name and not name.startswith((_BOOKKEEPING, "sqlite_"))]
    tables = {_table_name(name): _table_facts(connection, name) for name, kind in names if kind == "table"}
    return DatabaseFacts(tables=tables, views=frozenset(_table_name(name) for name, kind in names if kind == "view"))


def _table_name(stored: str) -> TableName:
    """Split ``shop.orders``; dots and percent signs inside a part are written %2E and %25."""
    schema, table = stored.split(".", 1)
    return TableName(unquote(schema), unquote(table))


def read_file_facts(path: Path | str) -> DatabaseFacts:
    """Describe the SQLite database in a file."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return read_facts(connection)


def _table_facts(connection: sqlite3.Connection, name: str) -> TableFacts:
    described = connection.execute('SELECT name, "notnull", pk FROM pragma_table_xinfo(?) ORDER BY cid', (name,)).fetchall()
    columns = tuple(ColumnFacts(name=column, nullable=not notnull and not pk) for column, notnull, pk in described)
    listed = ",".join(quote(column.name) for column in columns)
    rows = connection.execute(f"SELECT {listed} FROM {quote(name)}").fetchall()
    keys = tuple(column for column, _, pk in sorted(described, key=lambda row: row[2]) if pk)
    return TableFacts(columns=columns, indexes=_index_facts(connection, name, keys), rows=rows)


def _index_facts(connection: sqlite3.Connection, name: str, keys: tuple[str, ...]) -> frozenset[IndexFacts]:
    facts = {IndexFacts(name="PRIMARY", columns=keys, unique=True, primary=True)} if keys else set()
    listed = connection.execute('SELECT name, "unique", origin, partial FROM pragma_index_list(?)', (name,)).fetchall()
    for index, is_unique, origin, partial in listed:
        if origin == "pk":
            continue
        columns = tuple(row[0] for row in connection.execute("SELECT name FROM pragma_index_info(?) ORDER BY seqno", (index,)))
        if partial or None in columns:  # an index of an expression, or the name of one: not every database has it
            continue
        short = "" if index.startswith("sqlite_autoindex_") else unquote(index.removeprefix(name + "."))
        facts.add(IndexFacts(name=short, columns=columns, unique=bool(is_unique), primary=False))
    return frozenset(facts)


_LARGEST = 2**63 - 1
_AFFINITY = {TypeClass.FLOAT: "REAL", TypeClass.DOUBLE: "REAL"}


def bound(kind: UpstreamType, value: Value) -> Any:
    """Return what is bound for ``value``: labels for ENUM and SET, text for integers that SQLite cannot hold."""
    if value is None:
        return None
    if kind.kind in (TypeClass.ENUM, TypeClass.SET):
        return label_text(UpstreamColumn(name="", type=kind), int(value))
    if isinstance(value, int) and value > _LARGEST:
        return str(value)
    if isinstance(value, str) and any("\udc80" <= char <= "\udcff" for char in value):
        return value.encode("utf-8", "surrogateescape")
    return value


def stored_name(name: TableName) -> str:
    """Return the quoted name of a table in the file."""
    return quote(f"{name.schema}.{name.table}")


def write_rows(connection: sqlite3.Connection, changes: Sequence[RowChange], *, with_virtual: bool = True) -> None:
    """Write the row changes of one commit: what leaves goes first, so that no unique index is violated on the way.

    ``with_virtual`` False: the database computes VIRTUAL columns. ValueError if a row that leaves is not there.
    """
    for change in changes:
        if change.before is not None:
            _delete(connection, change.table, change.before)
    for change in changes:
        if change.after is not None:
            places = range(len(change.after)) if with_virtual else change.table.sent_places
            bound_values = bound_row(change.table, change.after)
            names = ",".join(quote(change.table.columns[place].name) for place in places)
            statement = f"INSERT INTO {stored_name(change.table.name)} ({names}) VALUES ({','.join('?' * len(places))})"
            connection.execute(statement, [bound_values[place] for place in places])


def _delete(connection: sqlite3.Connection, table: Table, row: Row) -> None:
    """Delete one row: by its handle key, or one of several equal rows."""
    places = table.handle_places or range(len(table.columns))
    where = " AND ".join(f"{quote(table.columns[place].name)} IS ?" for place in places)
    values = [bound(table.columns[place].type, row[place]) for place in places]
    name = stored_name(table.name)
    one = f"SELECT rowid FROM {name} WHERE {where} LIMIT 1"
    if connection.execute(f"DELETE FROM {name} WHERE rowid = ({one})", values).rowcount != 1:
        # A history that deletes a missing row is a defect of the generator: everything after it would prove nothing.
        message = f"the oracle has no row of {table.name} with the key {values!r}"
        raise ValueError(message)


def bound_row(table: Table, row: Row) -> list[Any]:
    """Return what is bound for a whole row."""
    return [bound(column.type, value) for column, value in zip(table.columns, row, strict=True)]


class SqliteOracle:
    """One SQLite file. Executes steps, each in one transaction; not safe for threads."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._connection = sqlite3.connect(self.path, isolation_level=None)
        # Nothing needs to survive a crash: an oracle is rebuilt, never recovered.
        self._connection.execute("PRAGMA journal_mode = MEMORY")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("PRAGMA legacy_alter_table = ON")  # views are not looked at when a table is rebuilt
        self._tables: dict[TableName, Table] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def apply(self, history: Iterable[UpstreamStep], upto_ts: Ts | None = None) -> None:
        """Execute all steps with ts <= ``upto_ts`` (None: all), rows before DDLs, one transaction per step."""
        for step in history:
            if upto_ts is not None and step.ts > upto_ts:
                return
            self.execute(step)

    def execute(self, step: UpstreamStep) -> None:
        """Execute one step in one transaction."""
        self._connection.execute("BEGIN")
        write_rows(self._connection, step.rows)
        for ddl in step.ddls:
            self._run(ddl)
        self._connection.execute("COMMIT")

    def tables(self) -> dict[TableName, Table]:
        """Return the present definitions."""
        return dict(self._tables)

    def facts(self) -> DatabaseFacts:
        """Describe the oracle for comparison."""
        return read_facts(self._connection)

    def money_total(self) -> int | None:
        """Return the sum of all balances; None before the accounts exist."""
        return money_total(self._connection)

    # DDL

    def _run(self, ddl: Ddl) -> None:  # noqa: C901 - one case per kind of DDL
        match ddl:
            case CreateSchema(_):
                pass
            case DropSchema(schema):
                for name in [name for name in self._tables if name.schema == schema]:
                    self._drop(name)
            case CreateTable(table):
                self._create(table)
            case CreateTableLike(name, model):
                self._create(self._tables[model].renamed(name))
            case DropTable(name):
                self._drop(name)
            case TruncateTable(name):
                self._connection.execute(f"DELETE FROM {stored_name(name)}")
            case RenameTable(old, new):
                self._rebuild(old, self._tables[old].renamed(new), [column.name for column in self._tables[old].columns])
            case CreateView(name, source, columns):
                listed = ",".join(map(quote, columns))
                self._connection.execute(f"CREATE VIEW {stored_name(name)} ({listed}) AS SELECT {listed} FROM {stored_name(source)}")
            case DropView(name):
                self._connection.execute(f"DROP VIEW {stored_name(name)}")
            case AlterTable(before, clauses):
                self._rebuild(before.name, *altered(before, clauses))

    def _create(self, table: Table) -> None:
        parts = [f"{quote(column.name)}{self._declared(column)}{'' if column.nullable else ' NOT NULL'}" for column in table.columns]
        parts += [f"PRIMARY KEY ({','.join(map(quote, index.columns))})" for index in table.indexes if index.primary]
        self._connection.execute(f"CREATE TABLE {stored_name(table.name)} ({','.join(parts)})")
        for index in table.indexes:
            if not index.primary and not index.expression:
                name = quote(f"{table.name.schema}.{table.name.table}.{index.name}")
                columns = ",".join(map(quote, index.columns))
                self._connection.execute(f"CREATE {'UNIQUE ' if index.unique else ''}INDEX {name} ON {stored_name(table.name)} ({columns})")
        self._tables[table.name] = table

    @staticmethod
    def _declared(column: UpstreamColumn) -> str:
        """Only floating point has a type: without one, SQLite stores each value as it was bound."""
        affinity = _AFFINITY.get(column.type.kind, "")
        collation = " COLLATE NOCASE" if column.type.collation.endswith("_ci") else ""
        return (f" {affinity}" if affinity else "") + collation

    def _drop(self, name: TableName) -> None:
        self._connection.execute(f"DROP TABLE {stored_name(name)}")
        del self._tables[name]

    def _rebuild(self, name: TableName, table: Table, origin: Sequence[str | None]) -> None:
        """Create the table again with its rows; new columns get their default."""
        old = self._tables[name]
        rows = self._connection.execute(f"SELECT * FROM {stored_name(name)}").fetchall()
        self._drop(name)
        self._create(table)
        marks = ",".join("?" * len(table.columns))
        carried = [list(self._carried(old, row, table, origin)) for row in rows]
        self._connection.executemany(f"INSERT INTO {stored_name(table.name)} VALUES ({marks})", carried)

    @staticmethod
    def _carried(old: Table, row: Sequence[Any], table: Table, origin: Sequence[str | None]) -> Iterator[Any]:
        for column, source in zip(table.columns, origin, strict=True):
            if source is None:
                yield bound(column.type, fill_of(column))
            else:
                yield convert(row[old.position[source]], old.column(source).type, column.type)
