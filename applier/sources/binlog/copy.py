"""Upstream's side of the initial copy on MySQL and MariaDB: what there is, where a copy starts, and the rows of chunks.

Each view is a transaction WITH CONSISTENT SNAPSHOT. On MariaDB it knows its position in the binlog. On MySQL it does not, and the end
of the log runs ahead of what a view sees: as a start, only ``gtid_executed`` before the view will do, or ``log_status``, which waits for
transactions that commit. The end of the log behind the view is always behind everything that it has seen.

A key is compared with literals in its own character set, by upstream alone. Values come as the bytes that upstream has
(``character_set_results = NULL``); FLOAT as a DOUBLE, because a server prints six digits of it.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Self

import pymysql
from pymysql.constants import ER
from pymysql.cursors import SSCursor
from sqlalchemy.exc import SQLAlchemyError

from applier.copy.lines import lines_of
from applier.copy.port import (
    Bound,
    ColumnKind,
    CopyColumn,
    CopyStart,
    CopyTable,
    KeyRange,
    RowBlock,
    UpstreamObjects,
)
from applier.ddl.parser import parse_or_none
from applier.ddl.tree import AlterTableStatement, ClauseKind, SchemaStatement
from applier.model.errors import DefinitionChanged, NeedsOperator, Remedy, SourceError
from applier.model.events import TableName
from applier.model.failure import FailureKind
from applier.model.position import Ts
from applier.mysql.catalogue import COLUMNS, INDEX_PARTS, Row, read_view
from applier.mysql.errors import DENIED, NoSession, code_of
from applier.mysql.names import SYSTEM_SCHEMAS, quote_identifier, quote_table
from applier.mysql.session import (
    ServerAddress,
    ServerSession,
    discard,
    driven,
    execute_text,
    open_reader,
    read_rows,
)
from applier.selection import TableSelection
from applier.sources.binlog.decoder import BinlogDecoder
from applier.sources.binlog.event_stream import EventStream
from applier.sources.binlog.position import BinlogPosition, split_file_name
from applier.sources.binlog.server import END_OF_MARIADB, END_OF_MYSQL, Server, failed, require
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.source import BinlogSource
from applier.sources.binlog.walk import SchemaChanges, changes_until

STATEMENT_S: Final = 86_400
"""A table without a key is read by one statement."""
WRITE_TIMEOUT_S: Final = 600
"""The server ends a session whose rows are not taken for so long: the sink may be slow."""
BLOCK_BYTES: Final = 4 << 20
BLOCK_ROWS: Final = 2_000
EXACT_TRIES: Final = 100
LOCK_WAIT_S: Final = 2
_STAYING: Final = frozenset(
    {
        ClauseKind.ADD, ClauseKind.ADD_PARTITION, ClauseKind.DROP_COLUMN, ClauseKind.DROP_INDEX, ClauseKind.DROP_PRIMARY_KEY,
        ClauseKind.DROP_FOREIGN_KEY, ClauseKind.DROP_CONSTRAINT, ClauseKind.DROP_PARTITION, ClauseKind.ALTER_COLUMN,
        ClauseKind.ALTER_INDEX, ClauseKind.ALTER_CONSTRAINT,
    }
)  # fmt: skip
"""The clauses of ALTER TABLE that leave each row in its table, and each value in its column and form."""
_GONE: Final = frozenset({ER.NO_SUCH_TABLE, ER.BAD_FIELD_ERROR, ER.BAD_DB_ERROR})
_TABLE_DEF_CHANGED: Final = 1412
_COUNTER: Final = re.compile(r" AUTO_INCREMENT=\d+")
_UNICODE: Final = frozenset({"utf8mb4", "utf8mb3", "utf8"})
_BYTES: Final = frozenset(
    {
        "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "vector", "geometry", "point", "linestring", "polygon",
        "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection",
    }
)  # fmt: skip
_NUMBERS: Final = frozenset({"bit", "enum", "set"})
_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year"})
_QUOTED: Final = frozenset({"date", "datetime", "timestamp", "time"})
_TEXTS: Final = frozenset({"char", "varchar"})
_BINARIES: Final = frozenset({"binary", "varbinary"})
_SCHEMAS: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, COALESCE(ENGINE, ''), COALESCE(TABLE_ROWS, 0), COALESCE(DATA_LENGTH, 0)"
    " FROM information_schema.TABLES"
)
_LEFT_OUT: Final[Mapping[str, str]] = {
    "trigger": "SELECT TRIGGER_SCHEMA, COUNT(*) FROM information_schema.TRIGGERS GROUP BY TRIGGER_SCHEMA",
    "event": "SELECT EVENT_SCHEMA, COUNT(*) FROM information_schema.EVENTS GROUP BY EVENT_SCHEMA",
    "routine": "SELECT ROUTINE_SCHEMA, COUNT(*) FROM information_schema.ROUTINES GROUP BY ROUTINE_SCHEMA",
}
_ENGINE: Final = Remedy(
    "binlog.copy-innodb-tables",
    "Change it to InnoDB (ALTER TABLE … ENGINE = InnoDB), or exclude it with source.tables, or begin with a dump: `applier load`",
)
_IMAGE: Final = Remedy(
    "binlog.copy-full-row-image",
    "SET GLOBAL binlog_row_image = FULL, also in its configuration, and let sessions that are open connect again. Or begin with a dump",
)
_BACKUP_ADMIN: Final = Remedy(
    "binlog.grant-backup-admin",
    "GRANT BACKUP_ADMIN ON *.* and GRANT SELECT ON performance_schema.log_status to the user of source.url, or set gtid_mode = ON",
)
_EXACT: Final = Remedy(
    "binlog.give-keyless-table-key",
    "Give the tables a primary key, or GRANT BACKUP_ADMIN ON *.* and SELECT ON performance_schema.log_status to the user of source.url, "
    "or GRANT LOCK TABLES, or exclude them with source.tables",
)
_XA: Final = Remedy("binlog.end-prepared-transactions", "Commit them or roll them back (XA RECOVER shows them), and start again")


class CopySession:
    """A ``ChunkSession``: reads chunks, each in a view of its own."""

    def __init__(self, settings: BinlogSettings) -> None:
        self._settings = settings
        address = ServerAddress(url=settings.url, tls=settings.tls, name=settings.name)
        try:
            self.session: ServerSession = open_reader(address, "UTC", STATEMENT_S)
        except NoSession as failure:
            cause = failure.__cause__ or failure
            raise failed(settings, failure.doing, cause) from cause
        try:
            with self.errors("preparing a session"):
                self.is_mariadb = "mariadb" in str(read_rows(self.session, "SELECT VERSION()")[0][0]).casefold()
                self.run(f"SET SESSION net_write_timeout = {WRITE_TIMEOUT_S}")
                self.run("SET SESSION character_set_results = NULL")
        except BaseException:
            self.close()
            raise

    @contextmanager
    def errors(self, what: str, table: CopyTable | None = None) -> Iterator[None]:
        """Raise errors of the server as ours. DefinitionChanged: the table is not the planned one."""
        try:
            yield
        except (SQLAlchemyError, OSError, pymysql.err.MySQLError) as error:
            if table is not None and code_of(error) in _GONE:
                raise DefinitionChanged("upstream has changed a table while it is copied", table=str(table.name)) from error
            if table is not None and code_of(error) == _TABLE_DEF_CHANGED:
                # A TRUNCATE, or an index: the next view sees it. Another definition is found there.
                message = "a DDL has ended the view of a chunk"
                raise SourceError(message, kind=FailureKind.UNREACHABLE, table=str(table.name)) from error
            raise failed(self._settings, what, error) from error

    def run(self, statement: str) -> None:
        """Run a statement without an answer."""
        execute_text(self.session, statement)

    def begin(self) -> None:
        """Open a view."""
        self.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")

    def place(self) -> Ts:
        """Return the position of the view that is open. MariaDB alone knows it."""
        shown = {_text(name).casefold(): _text(value) for name, value in read_rows(self.session, "SHOW STATUS LIKE 'binlog_snapshot_%'")}
        return _ts(shown.get("binlog_snapshot_file", ""), shown.get("binlog_snapshot_position", ""))

    def end_of_log(self) -> Ts:
        """Return where the server writes now."""
        try:
            rows = read_rows(self.session, END_OF_MARIADB if self.is_mariadb else END_OF_MYSQL)
        except SQLAlchemyError as error:
            if code_of(error) != ER.PARSE_ERROR:
                raise
            rows = read_rows(self.session, END_OF_MARIADB)
        return _ts(_text(rows[0][0]), _text(rows[0][1])) if rows else _ts("", "")

    @contextmanager
    def read(self, table: CopyTable, chunk: KeyRange) -> Iterator["ViewRows"]:
        """Open a view, and give the rows of a chunk."""
        with self.errors("opening a view", table):
            self.begin()
        try:
            yield ViewRows(self, table, chunk)
        finally:
            self.end()

    def end(self) -> None:
        """End the view. A session that cannot is lost, and the next statement fails."""
        try:
            self.session.rollback()
            self.run("ROLLBACK")
        except (SQLAlchemyError, OSError, pymysql.err.MySQLError):
            self.session.invalidate()

    def close(self) -> None:
        """Close the session; the server ends the view."""
        discard(self.session)

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


@dataclass(frozen=True, slots=True)
class ViewRows:
    """The rows of one chunk in the view that the session has open."""

    session: CopySession
    table: CopyTable
    chunk: KeyRange

    def blocks(self) -> Iterator[RowBlock]:
        """Yield the rows in blocks; the answer is read as it comes."""
        with self.session.errors("reading rows", self.table), driven(self.session.session) as driver:
            decoders, driver.decoders, driver.use_unicode = driver.decoders, {}, False
            try:
                with closing(driver.cursor(SSCursor)) as cursor:
                    cursor.execute(rows_query(self.table, self.chunk))
                    yield from _blocks(cursor)
            finally:
                driver.decoders, driver.use_unicode = decoders, True

    def finish(self) -> Ts:
        """Compare the definition, which the transaction pins; return the end of the log, behind every DDL that was before the rows."""
        with self.session.errors("reading a definition", self.table):
            definition = show_create(self.session.session, self.table.name)
            end = self.session.end_of_log()
        if digest_of(definition) != self.table.digest:
            raise DefinitionChanged("upstream has changed a table while it is copied", table=str(self.table.name))
        return end


def _blocks(cursor: Any) -> Iterator[RowBlock]:
    rows, size = list[Sequence[bytes | None]](), 0
    for row in cursor:
        rows.append(row)
        size += sum(map(len, filter(None, row)))
        if size >= BLOCK_BYTES or len(rows) >= BLOCK_ROWS:
            yield RowBlock(lines_of(rows), len(rows))
            rows, size = [], 0
    if rows:
        yield RowBlock(lines_of(rows), len(rows))


def rows_query(table: CopyTable, chunk: KeyRange) -> str:
    """Return the statement that reads a chunk."""
    columns = ", ".join(_expression(column) for column in table.columns)
    conditions = [_beyond(table.key, chunk.lower, ">")] if chunk.lower is not None else []
    conditions += [_within(table.key, chunk.upper)] if chunk.upper is not None else []
    index = f" FORCE INDEX ({quote_identifier(table.key_index)})" if table.key_index else ""
    where = f" WHERE {' AND '.join(f'({condition})' for condition in conditions)}" if conditions else ""
    return f"SELECT {columns} FROM {quote_table(table.name.schema, table.name.table)}{index}{where}"  # noqa: S608 - names and literals


def bound_query(table: CopyTable, types: Mapping[str, Row], lower: Bound | None, rows: int) -> str:
    """Return the statement that finds the key ``rows`` rows behind ``lower``."""
    literals = ", ".join(_literal_of(types[name], quote_identifier(name)) for name in table.key)
    where = f" WHERE {_beyond(table.key, lower, '>')}" if lower is not None else ""
    order = ", ".join(map(quote_identifier, table.key))
    name, index = quote_table(table.name.schema, table.name.table), quote_identifier(table.key_index)
    return f"SELECT {literals} FROM {name} FORCE INDEX ({index}){where} ORDER BY {order} LIMIT 1 OFFSET {rows - 1}"  # noqa: S608 - as above


def _beyond(key: Sequence[str], bound: Bound, sign: str) -> str:
    """Return the condition in the form that both servers read as a range of the index: no row constructors."""
    alternatives = []
    for at, (name, literal) in enumerate(zip(key, bound, strict=True)):
        equal = [f"{quote_identifier(one)} = {value}" for one, value in zip(key[:at], bound[:at], strict=True)]
        alternatives.append("(" + " AND ".join([*equal, f"{quote_identifier(name)} {sign} {literal}"]) + ")")
    return " OR ".join(alternatives)


def _within(key: Sequence[str], bound: Bound) -> str:
    whole = " AND ".join(f"{quote_identifier(name)} = {literal}" for name, literal in zip(key, bound, strict=True))
    return f"{_beyond(key, bound, '<')} OR ({whole})"


def _expression(column: CopyColumn) -> str:
    name = quote_identifier(column.name)
    match column.kind:
        case ColumnKind.NUMBER:
            return f"CAST({name} AS UNSIGNED)"
        case ColumnKind.BYTES | ColumnKind.CHARSET:
            return f"HEX({name})"
        case ColumnKind.TEXT:
            # A product keeps the sign of -0.
            return f"{name} * 1e0" if column.upstream_type == "float" else name


def _literal_of(row: Row, name: str) -> str:
    """Return the expression by which upstream spells a value of a key as a literal."""
    kind = str(row["DATA_TYPE"]).casefold()
    if kind in _INTEGERS:
        return f"CAST({name} AS CHAR)"
    if kind in _QUOTED:
        return f"CONCAT('''', {name}, '''')"
    charset = "" if kind in _BINARIES else f"_{row['CHARACTER_SET_NAME']} "
    return f"CONCAT('{charset}X''', HEX({name}), '''')"


def show_create(session: ServerSession, name: TableName, kind: str = "TABLE") -> str:
    """Return the definition of a table, a view or a database (``kind``)."""
    what = quote_identifier(name.schema) if kind == "DATABASE" else quote_table(name.schema, name.table)
    return _text(read_rows(session, f"SHOW CREATE {kind} {what}")[0][1])


def digest_of(definition: str) -> str:
    """Return what changes with every DDL that matters to rows."""
    return sha256(_COUNTER.sub("", definition, count=1).encode(errors="surrogateescape")).hexdigest()


def _text(value: object) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _ts(file: str, position: str) -> Ts:
    if not file or not position.isdecimal():
        raise SourceError("the server does not say its position in the binlog", kind=FailureKind.REFUSED)
    return Ts(BinlogPosition(0, split_file_name(file)[1], int(position)).number)


@dataclass(frozen=True, slots=True)
class BinlogChunkReader:
    """Implements ``ChunkReader``."""

    settings: BinlogSettings = field(repr=False)

    def open(self) -> CopySession:
        """Open a session."""
        return CopySession(self.settings)


class BinlogStartView:
    """Implements ``StartView``."""

    def __init__(self, session: CopySession, start: CopyStart) -> None:
        self._session, self._start = session, start

    @property
    def start(self) -> CopyStart:
        """Where replay begins."""
        return self._start

    @contextmanager
    def read(self, table: CopyTable) -> Iterator[ViewRows]:
        """Give all rows of a table, in this view."""
        yield ViewRows(self._session, table, KeyRange(0, None, None))

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the view."""
        self._session.close()


class BinlogCopyUpstream:
    """Implements ``CopyUpstream``. It connects when it is first asked."""

    def __init__(self, settings: BinlogSettings, selection: TableSelection) -> None:
        self._settings, self._selection = settings, selection
        self._server = Server(settings)
        self._keys: dict[TableName, dict[str, Row]] = {}

    @property
    def reader(self) -> BinlogChunkReader:
        """The reading part."""
        return BinlogChunkReader(self._settings)

    def require(self) -> None:
        """Refuse a log that does not hold whole rows, and transactions that are prepared: their rows come when they are committed."""
        require(self._server)
        image = str(self._server.value("row images", "SELECT @@GLOBAL.binlog_row_image")).upper()
        if image not in {"FULL", "FULL_NODUP"}:
            raise NeedsOperator(
                f"a copy needs whole rows in the binlog, and binlog_row_image is {image}",
                remedy=_IMAGE,
                kind=FailureKind.REQUIREMENT,
                address=self._server.address,
            )
        if prepared := self._server.rows("prepared transactions", "XA RECOVER"):
            raise NeedsOperator(
                f"upstream has {len(prepared)} prepared XA transactions: a copy cannot tell whether it has their rows",
                remedy=_XA,
                kind=FailureKind.XA,
                address=self._server.address,
            )

    # --- what there is ---------------------------------------------------------------------------------------------

    def objects(self) -> UpstreamObjects:
        """Read the chosen schemas as they are now."""
        return self._server.ask("reading the catalogue", self._objects)

    def _objects(self, session: ServerSession) -> UpstreamObjects:
        shown = [tuple(_text(value) for value in row) for row in read_rows(session, _SCHEMAS)]
        chosen = [row for row in shown if row[0].casefold() not in SYSTEM_SCHEMAS and self._selection.has(TableName(row[0], row[1]))]
        tables = {TableName(row[0], row[1]): row for row in chosen if row[2] in {"BASE TABLE", "SYSTEM VERSIONED"}}
        for name, row in tables.items():
            if row[3].casefold() != "innodb":
                raise NeedsOperator(
                    f"a table of the engine {row[3]} cannot be copied: no view holds its rows", remedy=_ENGINE, table=str(name)
                )
        columns, parts = read_view(session, COLUMNS, tables), read_view(session, INDEX_PARTS, tables)
        # As the sessions of chunks: a TIMESTAMP default is shown in the session's zone.
        execute_text(session, "SET SESSION sql_quote_show_create = 1, time_zone = '+00:00'")
        made = [_table(name, show_create(session, name), columns[name], parts[name], tables[name]) for name in sorted(tables)]
        self._keys = {name: {str(row["COLUMN_NAME"]): row for row in columns[name]} for name in tables}
        views = sorted(TableName(row[0], row[1]) for row in chosen if row[2] == "VIEW")
        schemas = sorted({name.schema for name in [*tables, *views]})
        left_out = {kind: self._left_out(session, query, schemas) for kind, query in _LEFT_OUT.items()}
        left_out["sequence"] = sum(row[2] == "SEQUENCE" for row in chosen)
        return UpstreamObjects(
            schemas={schema: show_create(session, TableName(schema, ""), "DATABASE") for schema in schemas},
            tables=made,
            views={name: show_create(session, name, "VIEW") for name in views},
            left_out=left_out,
        )

    @staticmethod
    def _left_out(session: ServerSession, query: str, schemas: Sequence[str]) -> int:
        return sum(int(number) for schema, number in read_rows(session, query) if _text(schema) in schemas)

    # --- where it starts -------------------------------------------------------------------------------------------

    def open_view(self, keyless: Sequence[TableName] = ()) -> BinlogStartView:
        """Open the view of a start, with the least lock that makes it what is asked for: none, if that can be."""
        session = CopySession(self._settings)
        try:
            with session.errors("opening a view"):
                if session.is_mariadb:
                    session.begin()
                    return BinlogStartView(session, CopyStart(session.place(), "", is_exact=True))
                return BinlogStartView(session, self._mysql_start(session, keyless))
        except BaseException:
            session.close()
            raise

    def _mysql_start(self, session: CopySession, keyless: Sequence[TableName]) -> CopyStart:
        has_gtids = str(self._server.value("GTIDs", "SELECT @@GLOBAL.gtid_mode")).upper() == "ON"
        if has_gtids and not keyless:
            executed = self._executed()
            session.begin()
            return self._behind(executed, is_exact=False)
        try:
            return self._by_log_status(session, exact=bool(keyless))
        except SourceError as error:
            if error.facts.get("code") not in DENIED:
                raise
            if not has_gtids:
                raise NeedsOperator(
                    "the server gives no GTIDs, and the user may not ask where its log is",
                    remedy=_BACKUP_ADMIN,
                    address=self._server.address,
                ) from error
        return self._under_locks(session, keyless)

    def _by_log_status(self, session: CopySession, *, exact: bool) -> CopyStart:
        """Ask for the position that waits for transactions that commit. If it is the same before and after, the view is exactly there."""
        for _ in range(EXACT_TRIES):
            before = self._log_status()
            session.begin()
            if not exact or self._log_status() == before:
                return CopyStart(before, "", is_exact=exact)
            session.end()
        raise NeedsOperator(
            "upstream commits too often for an exact view, which tables without a key need", remedy=_EXACT, address=self._server.address
        )

    def _log_status(self) -> Ts:
        local = json.loads(_text(self._server.value("the state of the log", "SELECT LOCAL FROM performance_schema.log_status")))
        return _ts(str(local["binary_log_file"]), str(local["binary_log_position"]))

    def _under_locks(self, session: CopySession, keyless: Sequence[TableName]) -> CopyStart:
        """Lock the tables without a key while the view opens: what they hold is executed, and they do not change."""
        with CopySession(self._settings) as locking:
            try:
                locking.run(f"SET SESSION lock_wait_timeout = {LOCK_WAIT_S}")
                locking.run("LOCK TABLES " + ", ".join(f"{quote_table(name.schema, name.table)} READ" for name in keyless))
            except SQLAlchemyError as error:
                raise NeedsOperator(
                    "tables without a key need an exact view, and they cannot be locked while it opens",
                    remedy=_EXACT,
                    table=str(keyless[0]),
                    cause=str(code_of(error)),
                ) from error
            executed = self._executed()
            session.begin()
        return self._behind(executed, is_exact=True)

    def _executed(self) -> str:
        return "".join(str(self._server.value("executed GTIDs", "SELECT @@GLOBAL.gtid_executed")).split())

    def _behind(self, executed: str, *, is_exact: bool) -> CopyStart:
        told = f"gtid:{executed}"
        with BinlogSource(self._settings, BinlogDecoder()) as source:
            return CopyStart(source.position.start_point(declared=told).start_ts, told, is_exact)

    def moved(self, tables: Collection[TableName], start_ts: Ts, upto_ts: Ts) -> Sequence[TableName]:
        """Walk the log for statements that may move rows."""
        end = self._server.end()
        if end is None:
            raise SourceError("the server writes no binlog", kind=FailureKind.REFUSED)
        if upto_ts <= start_ts:
            return []
        with closing(EventStream(self._settings, end.base_name, start_ts, bodies=False)) as feed:
            changes = changes_until(feed, upto_ts, SchemaChanges(counts=may_move_rows))
        if changes is None:
            raise SourceError("the log does not show its DDLs up to the end of the copy", kind=FailureKind.UNREACHABLE)
        return [table for table in tables if changes.may_name(table)]

    # --- the walk --------------------------------------------------------------------------------------------------

    def next_bound(self, table: CopyTable, lower: Bound | None, rows: int) -> Bound | None:
        """Ask for the next boundary; the index is read once in total."""
        if not table.walkable:
            return None
        found = self._server.rows("finding a boundary", bound_query(table, self._keys[table.name], lower, rows))
        return tuple(_text(value) for value in found[0]) if found else None

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the session."""
        self._server.close()


def may_move_rows(query: str) -> bool:
    """Whether rows may move to another table, or values to another column or form, where the definition may be the same afterwards.

    Not so if the statement makes or removes tables or rows, or if all of its clauses are known: to run it again over rows that are later
    than it is right.
    """
    # The reader of DDLs does not know triggers, routines and events.
    if query.lstrip().partition(" ")[0].upper() in {"CREATE", "DROP"}:
        return False
    tree = parse_or_none(query)
    if tree is not None and isinstance(tree.node, AlterTableStatement):
        return any(clause.kind not in _STAYING for clause in tree.node.clauses)
    return tree is None or not isinstance(tree.node, SchemaStatement)


def _table(name: TableName, definition: str, columns: Sequence[Row], parts: Sequence[Row], shown: Sequence[str]) -> CopyTable:
    by_name = {str(row["COLUMN_NAME"]): row for row in columns}
    unique = _unique_indexes(parts)
    index = next((each for each in unique if _is_key(unique[each], by_name)), "")
    key = tuple(str(part["COLUMN_NAME"]) for part in unique[index]) if index else ()
    return CopyTable(
        name=name,
        definition=definition,
        digest=digest_of(definition),
        key=key,
        key_index=index,
        walkable=all(_is_walkable(by_name[column]) for column in key),
        columns=tuple(_column(row) for row in sorted(columns, key=lambda row: int(row["ORDINAL_POSITION"])) if not _is_generated(row)),
        has_secondary_key=len(unique) > 1 or (bool(unique) and not index),
        rows=int(shown[4]),
        size_bytes=int(shown[5]),
    )


def _unique_indexes(parts: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the parts of each unique index, the primary key first."""
    found = dict[str, list[Row]]()
    for part in sorted(parts, key=lambda part: (part["INDEX_NAME"] != "PRIMARY", str(part["INDEX_NAME"]), int(part["SEQ_IN_INDEX"]))):
        if not int(part["NON_UNIQUE"]):
            found.setdefault(str(part["INDEX_NAME"]), []).append(part)
    return found


def _is_key(parts: Sequence[Row], columns: Mapping[str, Row]) -> bool:
    """Return whether every row has the key, and no two rows have the same: no NULL, no prefix, no expression."""
    return all(
        part["COLUMN_NAME"] is not None and part["SUB_PART"] is None and columns[str(part["COLUMN_NAME"])]["IS_NULLABLE"] == "NO"
        for part in parts
    )


def _is_walkable(row: Row) -> bool:
    return str(row["DATA_TYPE"]).casefold() in _INTEGERS | _QUOTED | _TEXTS | _BINARIES


def _is_generated(row: Row) -> bool:
    return bool(row["GENERATION_EXPRESSION"])


def _column(row: Row) -> CopyColumn:
    name, kind, charset = str(row["COLUMN_NAME"]), str(row["DATA_TYPE"]).casefold(), str(row["CHARACTER_SET_NAME"] or "").casefold()
    if kind in _NUMBERS:
        return CopyColumn(name, ColumnKind.NUMBER, upstream_type=kind)
    if kind in _BYTES:
        return CopyColumn(name, ColumnKind.BYTES, upstream_type=kind)
    if charset and charset not in _UNICODE:
        return CopyColumn(name, ColumnKind.CHARSET, charset, kind)
    return CopyColumn(name, ColumnKind.TEXT, upstream_type=kind)
