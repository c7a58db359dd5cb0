"""A session of the sink that takes the rows of a dump: statements as they stand in the file, into the tables that the sink has.

As with rows of a stream, no value is altered silently: a statement with a warning that is not known to be harmless is rolled back.
"""

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

from pymysql.err import MySQLError
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from applier.dump.definitions import Definitions
from applier.dump.statements import Piece
from applier.dump.target_tables import TargetTables
from applier.dump.vectors import with_vectors
from applier.model.errors import SinkError
from applier.model.events import TableName
from applier.mysql.catalogue import describe
from applier.mysql.errors import translate
from applier.mysql.quoting import quote_identifier
from applier.mysql.session import discard, execute_text
from applier.planner.port import Phase, Statement
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.mysql.warnings import HARMLESS, judge_warnings
from applier.sinks.settings import SinkSettings

GENERATED_IGNORED: Final = 1906
"""MariaDB's dump holds the values of generated columns too, and MariaDB computes them again."""
DATABASE_ERRORS: Final = (MySQLError, SQLAlchemyError, OSError)
COMMIT_BYTES: Final = 16 << 20
_HARMLESS: Final = HARMLESS | {GENERATED_IGNORED}


class RowSession:
    """One session. Errors name the table and the file, and no value."""

    def __init__(self, settings: SinkSettings, zone: str, **facts: Any) -> None:
        self._facts, self._waiting_bytes = facts, 0
        self._described = dict[TableName, Mapping[str, str]]()
        self._connection: Connection = open_session(settings, Purpose.WRITE)
        self.set_zone(zone)

    def set_zone(self, zone: str) -> None:
        """Take TIMESTAMP values as times of this zone."""
        self._set("SET time_zone = :value", zone)

    def set_charset(self, name: str) -> None:
        """Take texts in this character set. Answers stay UTF-8."""
        self._set("SET character_set_client = :value", name)
        self._set("SET character_set_connection = :value", name)

    def write(self, piece: Piece, into: TableName) -> int:
        """Run a statement of rows on a table of the sink; return the number of rows."""
        verb = piece.text.lstrip().split(None, 1)[0].decode()
        head = f"{verb} INTO {quote_identifier(into.schema)}.{quote_identifier(into.table)}"
        columns = self._columns(into)
        vectors = {name for name, sql_type in columns.items() if sql_type.startswith("vector")}
        values = with_vectors(piece.text[piece.end :], list(columns), vectors) if vectors else piece.text[piece.end :]
        statement = head.encode(errors="surrogateescape") + values
        try:
            rows, warnings = execute_text(self._connection, statement)
        except DATABASE_ERRORS as error:
            raise self._ours(error, "loading rows of a dump", table=str(into)) from None
        if warnings:
            judge_warnings(self._connection, Statement(Phase.REPLACE, str(into), b"", rows, 0, 0), warnings, _HARMLESS)
        self._waiting_bytes += len(statement)
        if self._waiting_bytes >= COMMIT_BYTES:
            self.commit()
        return rows

    def commit(self) -> None:
        """Commit what has been written."""
        try:
            # By its text: SQLAlchemy sends COMMIT for its own statements only.
            execute_text(self._connection, "COMMIT")
        except DATABASE_ERRORS as error:
            raise self._ours(error, "loading rows of a dump") from None
        self._waiting_bytes = 0

    def _columns(self, table: TableName) -> Mapping[str, str]:
        """Return the columns of a table of the sink with their types."""
        if table not in self._described:
            try:
                found = describe(self._connection, [table])
            except DATABASE_ERRORS as error:
                raise self._ours(error, "reading the catalogue", table=str(table)) from None
            self._described[table] = {column.name.casefold(): column.sql_type for one in found.values() for column in one.columns}
        return self._described[table]

    def _set(self, statement: str, value: str) -> None:
        try:
            self._connection.execute(text(statement), {"value": value})
        except DATABASE_ERRORS as error:
            raise self._ours(error, "preparing a session for rows of a dump", value=value) from None

    def _ours(self, error: Exception, doing: str, **facts: Any) -> SinkError:
        return translate(error, doing, **self._facts, **facts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            discard(self._connection)


def target_of(settings: SinkSettings, tables: Sequence[TableName], views: Sequence[TableName]) -> TargetTables:
    """Return the tables of a dump on a server."""
    return TargetTables(settings, tables, views)


def open_rows(settings: SinkSettings, definitions: Definitions, file: str) -> RowSession:
    """Return a session that takes the rows of a file of a dump."""
    return RowSession(settings, definitions.zone, file=file)
