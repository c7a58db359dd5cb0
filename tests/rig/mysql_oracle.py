"""The oracle on a server of the MySQL family: the upstream's transactions are really executed there, in its own schemas.

Schemas are mapped by a prefix (``oracle_shop``), so that oracle and sink can be on one server and are compared in one place.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

import pymysql
from sqlalchemy import make_url

from applier.demo.simulator.alteration import explicit, is_compared
from applier.demo.simulator.catalogue import Catalogue
from applier.demo.simulator.compare import ColumnFacts, DatabaseFacts, IndexFacts, TableFacts
from applier.demo.simulator.mysql_text import DdlWriter, DmlWriter, SchemaMap, quote_name
from applier.demo.simulator.operation import CreateSchema, DropSchema, UpstreamStep, event_name
from applier.demo.simulator.schema import Table
from applier.demo.simulator.session_zone import SESSION_ZONE
from applier.demo.simulator.table_family import ACCOUNTS, WALLETS
from applier.model.events import TableName
from applier.model.position import Ts

DEFAULT_PREFIX = "oracle_"
STATE_SCHEMA = "live_upstream"
"""Where a simulated upstream that lives keeps its own state: no schema of upstream."""
# Permissive on purpose: zero dates and 1971-02-31 are upstream's business; literals are exact, so nothing needs to be refused.
_SQL_MODE = "ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION"
_AS_TEXT = frozenset({"date", "datetime", "timestamp", "time"})
_SYSTEM_SCHEMAS = frozenset({"mysql", "information_schema", "performance_schema", "sys", "applier", "test", STATE_SCHEMA})


def connect(url: str) -> "pymysql.connections.Connection[Any]":
    """Open a session in UTC, in which rows are written; ``url`` is an SQLAlchemy URL, its database is ignored."""
    where = make_url(url)
    return pymysql.connect(
        host=where.host or "127.0.0.1",
        port=where.port or 3306,
        user=where.username,
        password=where.password or "",
        charset="utf8mb4",
        autocommit=False,
        init_command=f"SET SESSION sql_mode = '{_SQL_MODE}', time_zone = '+00:00', foreign_key_checks = 0",
    )


class MysqlOracle:
    """Oracle schemas on one server. ``prefix`` "" executes into the very schemas of upstream: that loads a dump."""

    def __init__(self, url: str, prefix: str = DEFAULT_PREFIX) -> None:
        self.url = url
        self.prefix = prefix
        self._connection = connect(url)
        self._ddl = DdlWriter(schema_map=self._map)
        self._dml = DmlWriter(self._map)
        self._catalogue = Catalogue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _map(self, schema: str) -> str:
        return self.prefix + schema

    def close(self) -> None:
        """Close the session; the schemas stay."""
        self._connection.close()

    def clear(self) -> None:
        """Drop all schemas of this oracle (with the empty prefix: of none)."""
        for schema in read_schemas(self._connection, self.prefix) if self.prefix else []:
            self._run(f"DROP DATABASE {quote_name(self.prefix + schema)}")

    def apply(self, history: Iterable[UpstreamStep], upto_ts: Ts | None = None) -> None:
        """Execute all steps with ts <= ``upto_ts`` (None: all), rows before DDLs, one transaction per step."""
        for step in history:
            if upto_ts is not None and step.ts > upto_ts:
                return
            self.execute(step)

    def execute(self, step: UpstreamStep) -> None:
        """Execute one step: its rows in one transaction, then its DDLs."""
        for statement in self._dml.write(step.rows):
            self._run(statement)
        self._connection.commit()
        if step.ddls:
            self._run(f"SET SESSION time_zone = '{SESSION_ZONE}'")
        for ddl in step.ddls:
            if not isinstance(ddl, CreateSchema | DropSchema):
                self._connection.select_db(self._map(event_name(ddl).schema))
            if is_compared(ddl):
                self._run(self._ddl.write(explicit(ddl)))
            self._catalogue.execute(ddl)
        if step.ddls:
            self._run("SET SESSION time_zone = '+00:00'")

    def _run(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)

    def tables(self) -> dict[TableName, Table]:
        """Return the present definitions."""
        return {state.table.name: state.table for state in self._catalogue}

    def facts(self) -> DatabaseFacts:
        """Describe the oracle for comparison."""
        return read_facts(self._connection, self.prefix)

    def money_total(self) -> int | None:
        """Return the sum of all balances; None before the accounts exist."""
        return money_total(self._connection, self._map)


def money_total(connection: "pymysql.connections.Connection[Any]", schema_map: SchemaMap | None = None) -> int | None:
    """Return the sum of all balances in one consistent snapshot; None before the accounts exist."""
    mapped: SchemaMap = schema_map or str
    names = [f"{quote_name(mapped(name.schema))}.{quote_name(name.table)}" for name in (ACCOUNTS, WALLETS)]
    sums = " UNION ALL ".join(f"SELECT balance FROM {name}" for name in names)
    try:
        ((total,),) = _rows(connection, f"SELECT COALESCE(SUM(balance), 0) FROM ({sums}) AS balances")
    except pymysql.err.MySQLError as error:
        if error.args[0] in (pymysql.constants.ER.NO_SUCH_TABLE, pymysql.constants.ER.BAD_DB_ERROR):
            return None
        raise
    finally:
        connection.rollback()
    return int(total)


def read_schemas(connection: "pymysql.connections.Connection[Any]", prefix: str) -> list[str]:
    """Return the upstream names of all schemas with ``prefix``; "" means all that are neither the system's nor an oracle's."""
    schemas = [name for (name,) in _rows(connection, "SHOW DATABASES")]
    if prefix:
        return [name.removeprefix(prefix) for name in schemas if name.startswith(prefix)]
    return [name for name in schemas if name not in _SYSTEM_SCHEMAS and not name.startswith(DEFAULT_PREFIX)]


def read_facts(connection: "pymysql.connections.Connection[Any]", prefix: str = "") -> DatabaseFacts:
    """Describe all schemas with ``prefix`` for comparison, in one consistent snapshot."""
    with _snapshot(connection):
        tables: dict[TableName, TableFacts] = {}
        views: set[TableName] = set()
        for schema in read_schemas(connection, prefix):
            listed = _rows(connection, f"SHOW FULL TABLES FROM {quote_name(prefix + schema)}")
            views |= {TableName(schema, name) for name, kind in listed if kind == "VIEW"}
            for name, kind in listed:
                if kind != "VIEW":
                    tables[TableName(schema, name)] = _table_facts(connection, prefix + schema, name)
    return DatabaseFacts(tables=tables, views=frozenset(views))


@contextmanager
def _snapshot(connection: "pymysql.connections.Connection[Any]") -> Iterator[None]:
    connection.rollback()
    _rows(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
    try:
        yield
    finally:
        connection.rollback()


def _rows(connection: "pymysql.connections.Connection[Any]", query: str, values: Sequence[Any] = ()) -> Sequence[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, values or None)
        return list(cursor.fetchall())


def _table_facts(connection: "pymysql.connections.Connection[Any]", schema: str, name: str) -> TableFacts:
    described = _rows(
        connection,
        # MariaDB shows binary defaults as they are, which is no text. MySQL shows that of a TIMESTAMP in the zone of the last ALTER.
        "SELECT column_name, is_nullable, column_type, collation_name,"
        " IF(data_type = 'timestamp' AND VERSION() NOT LIKE '%%MariaDB%%', 'not shown', CAST(column_default AS BINARY)), data_type"
        " FROM information_schema.columns"
        " WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
        (schema, name),
    )
    columns = tuple(
        ColumnFacts(name=column, nullable=nullable == "YES", type_text=f"{kind} {collation} default {default}")
        for column, nullable, kind, collation, default, _ in described
    )
    listed = ",".join(_readable(column, data_type) for column, _, _, _, _, data_type in described)
    rows = _rows(connection, f"SELECT {listed} FROM {quote_name(schema)}.{quote_name(name)}")
    return TableFacts(columns=columns, indexes=_index_facts(connection, schema, name), rows=rows)


def _readable(column: str, data_type: str) -> str:
    """Write the expression that reads a column exactly: times as text, FLOAT with all its digits."""
    quoted = quote_name(column)
    if data_type in _AS_TEXT:
        return f"CAST({quoted} AS CHAR)"
    return f"CAST({quoted} AS DOUBLE)" if data_type == "float" else quoted


def _index_facts(connection: "pymysql.connections.Connection[Any]", schema: str, name: str) -> frozenset[IndexFacts]:
    found: dict[tuple[str, int], list[str]] = {}
    for index, non_unique, column in _rows(
        connection,
        "SELECT index_name, non_unique, column_name FROM information_schema.statistics"
        # Indexes of expressions have no column: not every server has them.
        " WHERE table_schema = %s AND table_name = %s AND column_name IS NOT NULL ORDER BY index_name, seq_in_index",
        (schema, name),
    ):
        found.setdefault((index, non_unique), []).append(column)
    return frozenset(
        IndexFacts(name=index, columns=tuple(columns), unique=not non_unique, primary=index == "PRIMARY")
        for (index, non_unique), columns in found.items()
    )
