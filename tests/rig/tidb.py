"""An upstream that answers as TiDB does, in this process: a server of the MySQL protocol over recorded versions of rows.

It knows ``SET @@tidb_snapshot``, ``SHOW FULL COLUMNS``, ``SELECT … FROM t [WHERE key IN (…)]`` with plain or cast columns, and the
statements that open a session. Every read sees the snapshot of its session. A read below ``gc_below`` fails with 8055, as in TiDB.
For other queries a test gives ``answers``. What was asked is in ``asked``; ``before_each`` may raise or wait.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, NamedTuple

import sqlglot
from mysql_mimic import IdentityProvider, MysqlServer, NativePasswordAuthPlugin, ResultColumn, ResultSet, Session, User
from mysql_mimic.charset import CharacterSet
from mysql_mimic.errors import MysqlError
from mysql_mimic.types import ColumnType
from sqlglot import expressions as exp

NOW = 2**63
VERSION = "8.0.11-TiDB-v8.5.1"
GC_ERROR = 8055
UNKNOWN_TABLE = 1146
UNKNOWN_VARIABLE = 1193
DENIED = 1142
PARSE_ERROR = 1064

VARIABLES = {
    "autocommit": "ON",
    "character_set_client": "utf8mb4",
    "character_set_connection": "utf8mb4",
    "character_set_results": "utf8mb4",
    "collation_connection": "utf8mb4_bin",
    "foreign_key_checks": "ON",
    "lower_case_table_names": "2",
    "max_allowed_packet": "67108864",
    "max_error_count": "64",
    "sql_mode": "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES",
    "system_time_zone": "UTC",
    "sql_select_limit": "18446744073709551615",
    "tidb_snapshot": "",
    "tidb_txn_mode": "pessimistic",
    "time_zone": "SYSTEM",
    "transaction_isolation": "REPEATABLE-READ",
    "version": VERSION,
    "wait_timeout": "28800",
}

Row = Mapping[str, Any]
Answers = Callable[[str, int], tuple[Sequence[Sequence[Any]], Sequence[str]] | None]
"""A query and the snapshot of its session (``NOW``: none) -> rows and names; None: not known."""


class Asked(NamedTuple):
    """A statement as it came, and the snapshot that its session had."""

    snapshot: int
    sql: str


@dataclass
class TableVersions:
    """One table: its columns since each ts, and each row since each ts (None: deleted)."""

    key: tuple[str, ...]
    unique: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Its other unique indexes."""
    columns: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    rows: dict[tuple[Any, ...], list[tuple[int, Row | None]]] = field(default_factory=dict)

    def columns_at(self, ts: int) -> dict[str, str] | None:
        return next((columns for since, columns in reversed(self.columns) if since <= ts), None)

    def unique_at(self, _ts: int) -> dict[str, tuple[str, ...]]:
        """All unique indexes, the primary key first."""
        return {"PRIMARY": self.key, **self.unique}

    def rows_at(self, ts: int) -> list[Row]:
        at = (next((row for since, row in reversed(versions) if since <= ts), None) for versions in self.rows.values())
        return [row for row in at if row is not None]


class Tidb:
    """The server, and the versions that it has. Statements come one at a time, in the server's own thread."""

    def __init__(self, password: str = "") -> None:
        self.tables: dict[tuple[str, str], TableVersions] = {}
        self.asked: list[Asked] = []
        self.gc_below = 0
        self.is_shared = False
        """Whether a proxy gives each statement to any session: what one sets, another one reads."""
        self.denied: set[tuple[str, str]] = set()
        self.grants = ["GRANT SELECT ON *.* TO 'reader'@'%'"]
        self.variables = dict(VARIABLES)
        self.answers: Answers = lambda _sql, _snapshot: None
        self.before_each: Callable[[str], None] = lambda _sql: None
        self.port = 0
        self.password = password
        self.sessions: list[TidbSession] = []

    def create(self, ts: int, schema: str, table: str, columns: Mapping[str, str], key: Sequence[str]) -> None:
        """Create a table, or give it other columns; ``columns``: name -> type of SHOW COLUMNS, '|virtual' or '|stored' behind it."""
        known = self.tables.setdefault((schema, table), TableVersions(tuple(key)))
        known.columns.append((ts, dict(columns)))

    def write(self, ts: int, schema: str, table: str, **row: Any) -> None:
        """Insert or update a row. ENUM, SET and BIT as numbers, texts as str, binary values as bytes."""
        known = self.tables[schema, table]
        known.rows.setdefault(tuple(row[name] for name in known.key), []).append((ts, row))

    def delete(self, ts: int, schema: str, table: str, *key: Any) -> None:
        """Delete a row."""
        self.tables[schema, table].rows.setdefault(key, []).append((ts, None))

    @property
    def url(self) -> str:
        """Where it is, for a user without a password in the URL."""
        return f"mysql+pymysql://reader@127.0.0.1:{self.port}/"

    def queries(self) -> list[Asked]:
        """What was read from tables."""
        return [asked for asked in self.asked if " FROM `" in asked.sql and asked.sql.startswith("SELECT")]

    def drop_connections(self) -> None:
        """Cut the connection of every session. Call it from ``before_each``."""
        for session in self.sessions:
            session.cut()


@contextmanager
def tidb_server(password: str = "") -> Iterator[Tidb]:
    """Run the server on a port of the loopback interface."""
    upstream = Tidb(password)
    loop = asyncio.new_event_loop()
    server = MysqlServer(session_factory=lambda: TidbSession(upstream), identity_provider=_Reader(password))

    async def start() -> None:
        await server.start_server(host="127.0.0.1", port=0)
        upstream.port = server._server.sockets[0].getsockname()[1]

    async def stop() -> None:
        server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    thread = Thread(target=loop.run_forever, name="tidb", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(start(), loop).result(10)
        yield upstream
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


class _Reader(IdentityProvider):
    def __init__(self, password: str) -> None:
        self._password = password

    def get_plugins(self) -> list[Any]:
        return [NativePasswordAuthPlugin()]

    async def get_user(self, username: str) -> User | None:
        if username != "reader":
            return None
        string = NativePasswordAuthPlugin.create_auth_string(self._password) if self._password else ""
        return User(name=username, auth_string=string, auth_plugin=NativePasswordAuthPlugin.name)


_SET = re.compile(r"SET\s+(?:SESSION\s+|@@)?(?:SESSION\.)?`?(\w+)`?\s*=\s*(.*?);?\s*", re.IGNORECASE | re.DOTALL)
_SHOW_VARIABLES = re.compile(r"SHOW\s+(?:SESSION\s+|GLOBAL\s+)?VARIABLES\b(.*)", re.IGNORECASE | re.DOTALL)
_SHOW_COLUMNS = re.compile(r"SHOW\s+FULL\s+COLUMNS\s+FROM\s+`((?:[^`]|``)+)`\.`((?:[^`]|``)+)`\s*;?", re.IGNORECASE)
_SHOW_INDEX = re.compile(r"SHOW\s+INDEX\s+FROM\s+`((?:[^`]|``)+)`\.`((?:[^`]|``)+)`\s*;?", re.IGNORECASE)
_VARIABLE = re.compile(r"@@(session\.|global\.)?(\w+)(?:\s+AS\s+\S+)?", re.IGNORECASE)
_FUNCTION = re.compile(r"SELECT\s+(\w+)\(\);?", re.IGNORECASE)
_WORD = re.compile(r"'([^']*)'")
_ENDS = frozenset({"commit", "rollback", "start transaction", "begin"})


class TidbSession(Session):
    """One connection."""

    def __init__(self, upstream: Tidb) -> None:
        super().__init__()
        self._upstream = upstream
        self._set = dict(upstream.variables)
        upstream.sessions.append(self)

    def cut(self) -> None:
        if self._connection is not None:
            self._connection.stream.writer.transport.abort()

    @property
    def snapshot(self) -> int:
        return int(self._set.get("tidb_snapshot") or NOW)

    async def handle_query(self, sql: str, attrs: dict[str, str]) -> Any:
        self._upstream.asked.append(Asked(self.snapshot, sql))
        self._upstream.before_each(sql)
        for answer in (
            self._to_session,
            self._to_show,
            self._to_catalogue,
            lambda text: self._upstream.answers(text, self.snapshot),
            self._to_select,
        ):
            if (found := answer(sql.strip())) is not None:
                return found
        raise MysqlError(f"the test's TiDB has no answer to {sql}", PARSE_ERROR)

    def _to_session(self, sql: str) -> Any:
        if sql.rstrip(";").casefold() in _ENDS:
            return [], []
        if match := _SET.fullmatch(sql):
            self._assign(match[1].casefold(), match[2].strip())
            return [], []
        if sql.casefold().startswith("set names"):
            return [], []
        if match := _FUNCTION.fullmatch(sql):
            name = match[1].casefold()
            known = {"tidb_version": f"Release Version: {VERSION}", "version": VERSION, "database": None}
            known["connection_id"] = str(self.connection.connection_id)
            return ([(known[name],)], [f"{name}()"]) if name in known else None
        return self._variables_of(sql)

    def _variables_of(self, sql: str) -> Any:
        names = _VARIABLE.findall(sql)
        if not names or " from " in sql.casefold() or not sql.casefold().startswith("select"):
            return None
        return [[self._value(name, scope) for scope, name in names]], [f"@@{name}" for _, name in names]

    def _value(self, name: str, scope: str = "") -> str:
        values = self._upstream.variables if scope.casefold() == "global." else self._set
        if name.casefold() not in values:
            raise MysqlError(f"Unknown system variable '{name}'", UNKNOWN_VARIABLE)
        return values[name.casefold()]

    def _assign(self, name: str, value: str) -> None:
        self._value(name)
        text = value.strip("'\"")
        if name == "tidb_snapshot" and text:
            self._check_gc(int(text))
        if not self._upstream.is_shared:
            self._set[name] = text

    def _check_gc(self, ts: int) -> None:
        if ts < self._upstream.gc_below:
            raise MysqlError(f"snapshot is older than GC safe point {self._upstream.gc_below}", GC_ERROR)

    def _to_show(self, sql: str) -> Any:
        if match := _SHOW_VARIABLES.fullmatch(sql):
            names = [name.casefold() for name in _WORD.findall(match[1])]
            return [(name, self._set[name]) for name in names if name in self._set], ["Variable_name", "Value"]
        if sql.casefold().startswith("show warnings"):
            return [], ["Level", "Code", "Message"]
        if match := _SHOW_COLUMNS.fullmatch(sql):
            table = self._table(match[1].replace("``", "`"), match[2].replace("``", "`"))
            columns = table.columns_at(self.snapshot) or {}
            key = next(iter(table.unique_at(self.snapshot).values()))
            return [_shown(name, described, key) for name, described in columns.items()], _SHOWN
        if match := _SHOW_INDEX.fullmatch(sql):
            table = self._table(match[1].replace("``", "`"), match[2].replace("``", "`"))
            unique = table.unique_at(self.snapshot)
            return [("0", name, str(place), column) for name, columns in unique.items() for place, column in enumerate(columns, 1)], _INDEX
        return None

    def _to_catalogue(self, sql: str) -> Any:
        """Answer for the tables of the snapshot, unless the test does."""
        if self._upstream.answers(sql, self.snapshot) is not None:
            return None
        there = {name: table for name, table in self._upstream.tables.items() if table.columns_at(self.snapshot) is not None}
        if sql == "SHOW GRANTS":
            return [(grant,) for grant in self._upstream.grants], ["Grants for reader@%"]
        if " FROM information_schema.TABLES " in sql:
            return [name for name in there if name not in self._upstream.denied], ["TABLE_SCHEMA", "TABLE_NAME"]
        if " FROM information_schema.STATISTICS " not in sql:
            return None
        keys = [(name, index, columns) for name, table in there.items() for index, columns in table.unique_at(self.snapshot).items()]
        names = ["TABLE_SCHEMA", "TABLE_NAME", "INDEX_NAME", "NULLABLE"]
        return [(*name, index, "" if index == "PRIMARY" else "YES") for name, index, columns in keys for _ in columns], names

    def _table(self, schema: str, name: str) -> TableVersions:
        if (schema, name) in self._upstream.denied:
            raise MysqlError(f"SELECT command denied to user 'reader'@'%' for table '{name}'", DENIED)
        table = self._upstream.tables.get((schema, name))
        if table is None or table.columns_at(self.snapshot) is None:
            raise MysqlError(f"Table '{schema}.{name}' doesn't exist", UNKNOWN_TABLE)
        return table

    def _to_select(self, sql: str) -> Any:
        if " FROM `" not in sql or not sql.startswith("SELECT"):
            return None
        statement = sqlglot.parse_one(sql, dialect="mysql")
        found = statement.find(exp.Table)
        if found is None or (found.db, found.name) not in self._upstream.tables:
            self._table(*((found.db, found.name) if found is not None else ("", "")))
        self._check_gc(self.snapshot)
        table = self._table(found.db, found.name)
        columns = table.columns_at(self.snapshot) or {}
        wanted = [_Wanted.of(one, columns) for one in statement.expressions]
        if None in wanted:
            return None  # an aggregate, say: for ``answers``
        rows = [row for row in table.rows_at(self.snapshot) if _is_in(row, statement.args.get("where"), columns)]
        return ResultSet(rows=[[one.of_row(row) for one in wanted] for row in rows], columns=[one.result for one in wanted])


_SHOWN = ["Field", "Type", "Collation", "Null", "Key", "Default", "Extra", "Privileges", "Comment"]


_INDEX = ["Non_unique", "Key_name", "Seq_in_index", "Column_name"]


def _shown(name: str, described: str, key: Sequence[str]) -> tuple[Any, ...]:
    sql_type, _, generated = described.partition("|")
    is_text = any(word in sql_type for word in ("char", "text", "enum", "set(")) and "binary" not in sql_type
    extra = f"{generated.upper()} GENERATED" if generated else ""
    return (
        name,
        sql_type,
        "utf8mb4_bin" if is_text else None,
        "NO" if name in key else "YES",
        "PRI" if name in key else "",
        None,
        extra,
        "",
        "",
    )


class _Wanted(NamedTuple):
    """One column of a result."""

    name: str
    cast: str
    sql_type: str
    result: ResultColumn

    @classmethod
    def of(cls, one: exp.Expression, columns: Mapping[str, str]) -> "_Wanted | None":
        inner = one.unalias()
        cast = ""
        if isinstance(inner, exp.Cast):
            cast, inner = inner.to.sql("mysql").upper(), inner.this
        if not isinstance(inner, exp.Column) or inner.name not in columns:
            return None
        sql_type = columns[inner.name].partition("|")[0]
        is_bytes = not cast and (sql_type.startswith(("binary", "varbinary", "bit")) or "blob" in sql_type)
        kind = ColumnType.BLOB if is_bytes else ColumnType.VAR_STRING
        charset = CharacterSet.binary if is_bytes else CharacterSet.utf8mb4
        return cls(inner.name, cast, sql_type, ResultColumn(one.alias_or_name, kind, character_set=charset))

    def of_row(self, row: Row) -> Any:
        value = row.get(self.name)
        if value is None or isinstance(value, bytes):
            return value
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        if self.sql_type.startswith("bit") and not self.cast:
            return value.to_bytes(8, "big")
        if self.sql_type.startswith(("enum", "set(")) and "UNSIGNED" not in self.cast:
            return b"label"  # what a reader that forgot the cast would get
        return repr(value).encode()


def _is_in(row: Row, where: exp.Expression | None, columns: Mapping[str, str]) -> bool:
    """Evaluate ``a IN (…)``, ``(a, b) IN ((…), …)``, ``a = …`` and their OR and AND."""
    if where is None:
        return True
    return _holds(row, where.this, columns)


def _holds(row: Row, condition: exp.Expression, columns: Mapping[str, str]) -> bool:
    match condition:
        case exp.Paren():
            return _holds(row, condition.this, columns)
        case exp.Or():
            return _holds(row, condition.left, columns) or _holds(row, condition.right, columns)
        case exp.And():
            return _holds(row, condition.left, columns) and _holds(row, condition.right, columns)
        case exp.EQ() | exp.NullSafeEQ():
            return _value_of(condition.left, row) == _value_of(condition.right, row)
        case exp.In():
            left = _value_of(condition.this, row)
            return any(_value_of(one, row) == left for one in condition.expressions)
    raise MysqlError(f"the test's TiDB cannot evaluate {condition.sql('mysql')}", PARSE_ERROR)


def _value_of(one: exp.Expression, row: Row) -> Any:
    match one:
        case exp.Tuple():
            return tuple(_value_of(part, row) for part in one.expressions)
        case exp.Paren():
            return _value_of(one.this, row)
        case exp.Column():
            value = row.get(one.name)
            return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        case exp.Literal():
            return _literal_of(one)
        case exp.HexString():
            return bytes.fromhex(one.this)
        case exp.Neg():
            value = _value_of(one.this, row)
            return b"-" + value if isinstance(value, bytes) else -value
    raise MysqlError(f"the test's TiDB cannot read {one.sql('mysql')}", PARSE_ERROR)


def _literal_of(one: exp.Literal) -> Any:
    if one.is_string:
        return one.this.encode("utf-8", "surrogateescape")
    if "e" in one.this.casefold():
        return float(one.this)
    # A DECIMAL is a text in the rows, as on the wire.
    return one.this.encode() if "." in one.this else int(one.this)
