"""The tables of a dump in the sink: absent before the load, made ready for it, and whole after it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from applier.dump.compressed import open_text
from applier.dump.inventory import FileKind, Inventory
from applier.model.errors import ConfigError, FatalSinkError, NeedsOperator
from applier.model.events import TableName
from applier.sinks.mysql.catalogue import tables_with_rows
from applier.sinks.mysql.errors import translate
from applier.sinks.mysql.quoting import quote_identifier
from applier.sinks.mysql.session import Purpose, discard, open_session
from applier.sinks.settings import SinkSettings

MOST_NAMED: Final = 5
_COLLATION: Final = re.compile(r"\bCOLLATE\b\s*=?\s*(\w+)", re.IGNORECASE)
_ROWS: Final = re.compile(r"^\s*(?:INSERT|REPLACE)\b", re.IGNORECASE)
_ZONE: Final = text("SELECT IF(@@global.time_zone = 'SYSTEM', @@system_time_zone, @@global.time_zone)")
_UTC: Final = frozenset({"+00:00", "-00:00", "UTC", "ETC/UTC", "GMT"})
_PRESENT: Final = text("SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = :schema_name")


@dataclass(frozen=True, slots=True)
class TargetTables:
    """The tables that ``inventory`` makes, at the sink of ``settings``."""

    settings: SinkSettings
    inventory: Inventory

    def check_zone(self, wanted: str) -> None:
        """Refuse a loader that takes TIMESTAMP texts in the server's zone, if it is another than ``wanted``. ConfigError."""
        zones: list[str] = []
        self._do(lambda connection: zones.append(str(connection.scalar(_ZONE))), "reading the server's time zone")
        if zones[0] != wanted and not {zones[0].upper(), wanted.upper()} <= _UTC:
            raise ConfigError(
                f"myloader takes TIMESTAMP values in the server's zone, {zones[0]}, and the dump's are in {wanted}",
                remedy="Install the client of MariaDB or MySQL, and use --loader mariadb (or mysql)",
            )

    def check_absent(self, *, overwrite: bool) -> None:
        """Refuse tables that are there already. NeedsOperator."""
        found = [] if overwrite else self._present(self.inventory.tables)
        if found:
            raise NeedsOperator(
                "the sink has tables of the dump already",
                remedy="Drop them, or load with --overwrite, which drops them",
                tables=_named(found),
            )

    def prepare(self, *, overwrite: bool) -> None:
        """Make the schemas, with TiDB's default collation unless the dump names one; drop the tables if ``overwrite``."""

        def work(connection: Connection) -> None:
            for schema, collation in self._schemas().items():
                connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {_sql(schema)} DEFAULT COLLATE {collation}"))
            for table in self.inventory.tables if overwrite else ():
                connection.execute(text(f"DROP TABLE IF EXISTS {_sql(table.schema)}.{_sql(table.table)}"))
            for file in self.inventory.of(FileKind.VIEW) if overwrite else ():
                connection.execute(text(f"DROP VIEW IF EXISTS {_sql(file.table.schema)}.{_sql(file.table.table)}"))

        self._do(work, "preparing the tables of a dump")

    def check_loaded(self, counts: Mapping[TableName, int]) -> None:
        """Check that each table is there with as many rows as the dump ``counts``, or with some if a file has some. FatalSinkError."""
        present = set(self._present(self.inventory.tables))
        missing = [table for table in self.inventory.tables if table not in present]
        filled = sorted({file.table for file in self.inventory.of(FileKind.ROWS) if _has_rows(file.path)})
        with_rows: set[object] = set()
        self._do(lambda connection: with_rows.update(tables_with_rows(connection, filled)), "looking for the rows of a dump")
        empty = [table for table in filled if table.fold() not in with_rows]
        wrong = self._wrongly_counted({table: count for table, count in counts.items() if table in present})
        if missing or empty or wrong:
            raise FatalSinkError(
                "the sink does not hold all of the dump",
                remedy="Load again with --overwrite and --loader mariadb (or mysql)",
                **({"missing_tables": _named(missing)} if missing else {}),
                **({"empty_tables": _named(empty)} if empty else {}),
                **({"wrong_rows": ", ".join(wrong[:MOST_NAMED])} if wrong else {}),
            )

    def _wrongly_counted(self, counts: Mapping[TableName, int]) -> list[str]:
        """Return a line for each table that has another number of rows than the dump."""
        found: dict[TableName, int] = {}

        def work(connection: Connection) -> None:
            for table in counts:
                counting = text(f"SELECT COUNT(*) FROM {_sql(table.schema)}.{_sql(table.table)}")  # noqa: S608 - quoted names
                found[table] = connection.execute(counting).scalar_one()

        self._do(work, "counting the rows of a dump")
        return [f"{table}: {found[table]} of {count}" for table, count in counts.items() if found[table] != count]

    def _schemas(self) -> dict[str, str]:
        """Return the schemas of the dump, each with its collation."""
        schemas = {file.table.schema: "utf8mb4_bin" for file in self.inventory.files if file.table.schema}
        for file in self.inventory.of(FileKind.SCHEMA):
            with open_text(file.path) as content:
                match = _COLLATION.search(content.read())
            schemas[file.table.schema] = match[1] if match else "utf8mb4_bin"
        return schemas

    def _present(self, tables: Sequence[TableName]) -> list[TableName]:
        found: set[TableName] = set()

        def work(connection: Connection) -> None:
            for schema in sorted({table.schema for table in tables}):
                found.update(TableName(str(row[0]), str(row[1])) for row in connection.execute(_PRESENT, {"schema_name": schema}))

        self._do(work, "looking for the tables of a dump")
        folded = {table.fold() for table in found}
        return [table for table in tables if table.fold() in folded]

    def _do(self, work: Callable[[Connection], None], doing: str) -> None:
        with _session(self.settings) as connection:
            try:
                work(connection)
                connection.commit()
            except SQLAlchemyError as error:
                raise translate(error, doing, shows_text=True) from error


@contextmanager
def _session(settings: SinkSettings) -> Iterator[Connection]:
    connection = open_session(settings, Purpose.CONTROL)
    try:
        yield connection
    finally:
        discard(connection)


def _has_rows(path: Path) -> bool:
    with open_text(path) as lines:
        return any(_ROWS.match(line) for line in lines)


def _sql(name: str) -> str:
    return quote_identifier(name).replace(":", "\\:")


def _named(tables: Sequence[TableName]) -> str:
    more = len(tables) - MOST_NAMED
    return ", ".join(map(str, tables[:MOST_NAMED])) + (f" and {more} more" if more > 0 else "")
