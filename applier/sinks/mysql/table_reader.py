"""Reads upstream or the sink from a server of the MySQL family: each query returns few rows, the server does the work."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from applier.ddl.column_type import ColumnType
from applier.ddl.table_draft import parse_type
from applier.ddl.tokens import Cursor, DdlSyntaxError
from applier.model.errors import ApplierError, FatalSinkError, NeedsOperator, Remedy
from applier.model.events import FoldedName, TableName
from applier.model.position import Ts
from applier.mysql.catalogue import NAMES_WITH_TYPES, TABLE_TYPES, TABLES, Row, describe_with_rows, read_view
from applier.mysql.errors import BELOW_GC, NOT_THERE, code_of, translate
from applier.mysql.names import SYSTEM_SCHEMAS
from applier.mysql.session import ServerSession, discard, read_checked
from applier.planner.port import ColumnDescription
from applier.sinks.mysql.bookkeeping import bookkeeping_of
from applier.sinks.mysql.session import open_comparison
from applier.sinks.mysql.table_text import TableText, kind_of_version
from applier.sinks.settings import SinkSettings
from applier.sinks.table_pair import Names, ServerKind, SideColumn, SideTable, TablePair
from applier.sinks.table_reader import Checksum, Key, Scope, TableChanged, Value

T = TypeVar("T")

_ESTIMATES: Final = TABLES._replace(columns="TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS")
_VERSION: Final = text("SELECT VERSION()")
_BEGIN: Final = text("START TRANSACTION WITH CONSISTENT SNAPSHOT")
_SNAPSHOT: Final = text("SET SESSION tidb_snapshot = :ts")
_CLOCK: Final = text("SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)")
_TIMED_OUT: Final = frozenset({1317, 1969, 3024})
"""The codes of a statement that ran for too long: of TiDB, MariaDB and MySQL."""
_QUOTED: Final = re.compile(r"'.*'", re.DOTALL)
_HIDDEN: Final = NOT_THERE | {1142}
_CHANGED: Final = NOT_THERE | {1054}
"""The codes of a schema, a column and a table that were there when the catalogue was read."""
_REACH_UPSTREAM: Final = Remedy(
    "verify.check-upstream",
    "Check --upstream (or source.upstream), its password (APPLIER_UPSTREAM_PASSWORD), TLS, and whether the server runs",
)
_GC_REMEDY: Final = Remedy(
    "verify.catch-up-before-gc",
    "Upstream's garbage collection has removed the state of the sink's checkpoint. Let the applier catch up, or raise "
    "tidb_gc_life_time upstream before it falls behind further, and run this command again",
)


class MysqlReader:
    """A session on one side. ``replica``: the name whose bookkeeping is read, on the sink."""

    def __init__(self, settings: SinkSettings, *, is_upstream: bool, statement_timeout_s: int) -> None:
        self._settings = settings
        self._is_upstream = is_upstream
        self._timeout_s = statement_timeout_s
        self._bookkeeping = bookkeeping_of(settings)
        self._open: tuple[ServerSession, ServerKind] | None = None
        self._texts: dict[int, tuple[TablePair, TableText]] = {}

    @property
    def kind(self) -> ServerKind:
        """Which server it is."""
        return self._session[1]

    def names(self, *, without: Collection[str]) -> Names:
        """Return the names of all tables and views."""
        found = self._run(lambda connection: read_names(connection, without), "reading the catalogue")
        return found if self._is_upstream or self.checkpoint_ts() is None else replace(found, known=self._run(self._known, "reading"))

    def describe(self, tables: Collection[TableName]) -> Sequence[SideTable]:
        """Describe tables."""
        return self._run(lambda connection: read_tables(connection, tables), "reading the catalogue")

    def _known(self, connection: Connection) -> frozenset[FoldedName]:
        rows = self._bookkeeping.run(connection, "known_table_read")
        return frozenset(FoldedName(row.schema_name, row.table_name) for row in rows)

    def begin(self, snapshot_ts: Ts | None = None) -> None:
        """Begin to see one state of the server."""
        connection, kind = self._session
        try:
            connection.rollback()
            if self._is_upstream and kind.has_history:
                # As text: TiDB takes digits for a TSO. Empty, or the session would stay at its last snapshot.
                connection.execute(_SNAPSHOT, {"ts": "" if snapshot_ts is None else str(int(snapshot_ts))})
            if not self._is_upstream or not kind.has_history or snapshot_ts is None:
                connection.execute(_BEGIN)
        except SQLAlchemyError as error:
            raise self._failed(error, "beginning a snapshot", snapshot_ts=snapshot_ts) from error

    def end(self) -> None:
        """End the transaction."""
        if self._open is None:
            return
        try:
            self._open[0].rollback()
        except (SQLAlchemyError, OSError):
            self.close()

    def checkpoint_ts(self) -> Ts | None:
        """Return the checkpoint of the replica."""
        connection, _ = self._session
        try:
            row = self._bookkeeping.run(connection, "progress_read").one_or_none()
        except SQLAlchemyError as error:
            if code_of(error) in _HIDDEN:
                return None
            raise self._failed(error, "reading the progress") from error
        return None if row is None else Ts(int(row.checkpoint_ts))

    def checksum(self, pair: TablePair, scope: Scope) -> Checksum:
        """Return the checksum of some rows."""
        rows, total = self._query(pair, self._text(pair).checksum(scope))[0]
        return Checksum(int(rows), int(total))

    def checksums(self, pair: TablePair, scope: Scope, bits: int) -> Mapping[int, Checksum]:
        """Return the checksum of each part."""
        found = self._query(pair, self._text(pair).checksums(scope, bits))
        return {int(part): Checksum(int(rows), int(total)) for part, rows, total in found}

    def digests(self, pair: TablePair, scope: Scope) -> Sequence[tuple[Key, str]]:
        """Return key and digest of each row."""
        return [(row[:-1], row[-1].decode()) for row in self._query(pair, self._text(pair).digests(scope))]

    def rows(self, pair: TablePair, keys: Sequence[Key]) -> Sequence[tuple[Value, ...]]:
        """Return the values of rows."""
        return self._query(pair, self._text(pair).rows(keys))

    def bound(self, pair: TablePair, low: Key | None, rows: int) -> Key | None:
        """Return the end of the next range."""
        found = self._query(pair, self._text(pair).bound(low, rows))
        return found[0] if found else None

    def is_above(self, pair: TablePair, key: Key, low: Key) -> bool:
        """Return whether this server orders ``key`` after ``low``."""
        return bool(self._query(pair, self._text(pair).is_above(key, low))[0][0])

    def clock_ms(self) -> int:
        """Return the server's clock."""
        return self._run(lambda connection: int(connection.execute(_CLOCK).scalar_one()), "reading the clock")

    def close(self) -> None:
        """Close the session; the next use opens another one."""
        opened, self._open = self._open, None
        if opened is not None:
            discard(opened[0])

    @property
    def _session(self) -> tuple[ServerSession, ServerKind]:
        if self._open is None:
            try:
                connection = open_comparison(self._settings, self._timeout_s)
            except ApplierError as error:
                error.facts |= {"database": self._side}
                if self._is_upstream:
                    error.remedy = _REACH_UPSTREAM
                raise
            try:
                version = str(connection.execute(_VERSION).scalar_one())
            except SQLAlchemyError as error:
                discard(connection)
                raise self._failed(error, "reading the version") from error
            self._open = (connection, kind_of_version(version))
        return self._open

    @property
    def _side(self) -> str:
        return "upstream" if self._is_upstream else "sink"

    def _text(self, pair: TablePair) -> TableText:
        # By identity: a pair is compared many times, and is large to hash.
        known = self._texts.get(id(pair))
        if known is None:
            known = self._texts[id(pair)] = (pair, TableText(pair, self.kind, is_upstream=self._is_upstream))
        return known[1]

    def _query(self, pair: TablePair, query: str) -> list[tuple[Any, ...]]:
        connection, _ = self._session
        try:
            rows, warnings = read_checked(connection, query)
        except (SQLAlchemyError, OSError) as error:
            raise self._failed(error, "comparing a table", table=str(pair.name)) from error
        for code, message in warnings:
            # A warning says that an expression did not give the value: a checksum of it would prove nothing.
            raise FatalSinkError(
                "a comparison raised a warning of the server, so its result is not certain",
                remedy=Remedy("verify.raise-max-allowed-packet", "If the code is 1301, raise max_allowed_packet of this server"),
                database=self._side,
                table=str(pair.name),
                code=code,
                # A warning may quote a value.
                warning=_QUOTED.sub("'…'", message),
            )
        return rows

    def _run(self, work: Callable[[Connection], T], doing: str) -> T:
        try:
            return work(self._session[0])
        except SQLAlchemyError as error:
            raise self._failed(error, doing) from error

    def _failed(self, error: BaseException, doing: str, **facts: Any) -> ApplierError:
        code = code_of(error)
        facts = {"database": self._side, **facts}
        if code == BELOW_GC:
            return NeedsOperator("upstream does not have the state of the sink's checkpoint any more", remedy=_GC_REMEDY, **facts)
        if code in _CHANGED and "table" in facts:
            return TableChanged("a table was changed while it was compared", code=code, **facts)
        if code in _TIMED_OUT:
            remedy = Remedy("verify.set-smaller-chunks", "Set a smaller --chunk-rows, or a longer --statement-timeout")
            return FatalSinkError(f"a statement ran for too long while {doing}", remedy=remedy, code=code, **facts)
        return translate(error, doing, **facts)


def read_names(connection: Connection, without: Collection[str]) -> Names:
    """Read the names of the tables and views that the user may see. Errors of the database come out as SQLAlchemy's."""
    hidden = SYSTEM_SCHEMAS.union(without)
    listed = [(TableName(schema, name), str(kind).upper()) for schema, name, kind in connection.execute(NAMES_WITH_TYPES)]
    tables, views = (
        tuple(sorted(name for name, kind in listed if kind in wanted and name.schema.casefold() not in hidden))
        for wanted in (TABLE_TYPES, ("VIEW",))
    )
    return Names(tables=tables, views=views)


def read_tables(connection: Connection, names: Collection[TableName]) -> list[SideTable]:
    """Describe tables, named as ``read_names`` lists them. Errors of the database come out as SQLAlchemy's."""
    described = {name: found for name, found in describe_with_rows(connection, names).items() if found[1]}
    estimates = read_view(connection, _ESTIMATES, described.keys())
    return [
        SideTable(
            description=found,
            columns=_columns(found.columns, columns),
            rows=sum(int(row["TABLE_ROWS"] or 0) for row in estimates[name]),
        )
        for name, (found, columns) in sorted(described.items())
    ]


def _columns(described: Collection[ColumnDescription], rows: Collection[Row]) -> tuple[SideColumn, ...]:
    by_name = {row["COLUMN_NAME"]: row for row in rows}
    return tuple(
        SideColumn(
            description=column,
            type=_type_of(column),
            charset=by_name[column.name]["CHARACTER_SET_NAME"] or "",
            collation=by_name[column.name]["COLLATION_NAME"] or "",
        )
        for column in described
    )


def _type_of(column: ColumnDescription) -> ColumnType | None:
    """Return the type; None for one that is not replicated (GEOMETRY, UUID)."""
    try:
        found = parse_type(Cursor(column.sql_type))
    except DdlSyntaxError:
        return None
    return found.as_binary() if column.binary else found
