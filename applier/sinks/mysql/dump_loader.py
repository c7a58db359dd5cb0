"""Takes the rows of a dump: statements as they are in the file, into the tables that the sink has.

As with rows of a stream, no value is altered silently: a statement with a warning that is not known to be harmless is rolled back. MySQL
converts no text to a VECTOR (6136), and a dump of TiDB has texts: they are rewritten.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from pymysql.err import MySQLError
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import SinkError
from applier.model.events import FoldedName, TableName
from applier.mysql.catalogue import describe
from applier.mysql.errors import translate
from applier.mysql.names import TABLES_OF_SCHEMA, quote_table
from applier.mysql.session import discard, execute_text, read_rows
from applier.planner.port import Phase, Statement
from applier.sinks.dump_loader import DumpForm
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.mysql.warnings import HARMLESS, judge_warnings
from applier.sinks.settings import SinkSettings

_TOKEN: Final = re.compile(rb"'(?:[^'\\]++|\\.)*+'|\"(?:[^\"\\]++|\\.)*+\"|`(?:[^`]|``)*+`|[(),]|[^'\"`(),]++|.", re.DOTALL)
_VALUES: Final = re.compile(rb"\s*VALUES?\s*", re.IGNORECASE)
_QUOTES: Final = (b"'", b'"')


def with_vectors(text: bytes, columns: Sequence[str], vectors: Collection[str]) -> bytes:
    """Return the part of an INSERT after the table's name with ``STRING_TO_VECTOR`` around each text of ``vectors``.

    ``columns``: the table's, for an INSERT that lists none; all names casefolded.
    """
    return b"".join(_rewritten(text, columns, vectors))


def _rewritten(text: bytes, columns: Sequence[str], vectors: Collection[str]) -> Iterator[bytes]:
    tokens = (match.group() for match in _TOKEN.finditer(text))
    listed = list[str]()
    for token in tokens:
        yield token
        if _VALUES.fullmatch(token):
            break
        if name := token.strip(b"` \n\t(),"):
            listed.append(name.decode(errors="surrogateescape").replace("``", "`").casefold())
    places = {at for at, name in enumerate(listed or columns) if name in vectors}
    depth = at = 0
    for token in tokens:
        depth += (token == b"(") - (token == b")")
        if depth == 1 and token in {b"(", b","}:
            at = 0 if token == b"(" else at + 1
        is_text = depth == 1 and at in places and token.startswith(_QUOTES)
        yield b"STRING_TO_VECTOR(" + token + b")" if is_text else token


GENERATED_IGNORED: Final = 1906
"""MariaDB's dump holds the values of generated columns too, and MariaDB computes them again."""
DATABASE_ERRORS: Final = (MySQLError, SQLAlchemyError, OSError)
COMMIT_BYTES: Final = 16 << 20
_HARMLESS: Final = HARMLESS | {GENERATED_IGNORED}


class ServerRows:
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

    def write(self, statement: bytes, end: int, table: TableName) -> int:
        """Run a statement of rows on a table of the sink; return the number of rows."""
        verb = statement.lstrip().split(None, 1)[0].decode()
        head = f"{verb} INTO {quote_table(table.schema, table.table)}"
        columns = self._columns(table)
        vectors = {name for name, sql_type in columns.items() if sql_type.startswith("vector")}
        values = with_vectors(statement[end:], list(columns), vectors) if vectors else statement[end:]
        text = head.encode(errors="surrogateescape") + values
        try:
            rows, warnings = execute_text(self._connection, text)
        except DATABASE_ERRORS as error:
            raise self._ours(error, "loading rows of a dump", table=str(table)) from None
        if warnings:
            judge_warnings(self._connection, Statement(Phase.REPLACE, str(table), b"", rows, 0, 0), warnings, _HARMLESS)
        self._waiting_bytes += len(text)
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


@dataclass(frozen=True, slots=True)
class ServerLoader:
    """Loads dumps into a server. ``settings``: of the sink."""

    settings: SinkSettings

    def present(self, names: Sequence[TableName]) -> Sequence[TableName]:
        """Return which of these tables and views are there."""
        found = set[FoldedName]()
        with self._session("looking for the tables of a dump") as connection:
            for schema in sorted({name.schema for name in names}):
                found.update(TableName(schema, name).fold() for name in connection.scalars(TABLES_OF_SCHEMA, {"schema": schema}))
        return [name for name in names if name.fold() in found]

    def drop(self, tables: Sequence[TableName], views: Sequence[TableName]) -> None:
        """Drop tables and views, if they are there."""
        with self._session("dropping the tables of a dump") as connection:
            for kind, names in (("TABLE", tables), ("VIEW", views)):
                for name in names:
                    execute_text(connection, f"DROP {kind} IF EXISTS {quote_table(*name)}")

    def count(self, tables: Sequence[TableName]) -> Mapping[TableName, int]:
        """Return how many rows each of these tables has."""
        with self._session("counting the rows of a dump") as connection:
            return {name: read_rows(connection, f"SELECT COUNT(*) FROM {quote_table(*name)}")[0][0] for name in tables}  # noqa: S608 - quoted

    def open_rows(self, form: DumpForm, file: str) -> ServerRows:
        """Return a session for the rows of a file."""
        return ServerRows(self.settings, form.zone, file=file)

    @contextmanager
    def _session(self, doing: str) -> Iterator[Connection]:
        connection = open_session(self.settings, Purpose.CONTROL)
        try:
            yield connection
            connection.commit()
        except SQLAlchemyError as error:
            raise translate(error, doing, shows_text=True) from error
        finally:
            discard(connection)
