"""The tables of a dump in the sink: absent before the load, or dropped."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import FatalSinkError, NeedsOperator
from applier.model.events import TableName
from applier.model.remedy import Remedy
from applier.mysql.errors import translate
from applier.mysql.quoting import quote_identifier
from applier.mysql.session import discard
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings
from applier.telemetry.wording import named_some

_PRESENT: Final = text("SELECT table_schema, table_name FROM information_schema.tables WHERE table_schema = :schema_name")


@dataclass(frozen=True, slots=True)
class TargetTables:
    """The tables and views that a dump makes, by the sink's names."""

    settings: SinkSettings
    tables: Sequence[TableName]
    views: Sequence[TableName] = ()

    def check_absent(self, *, overwrite: bool) -> None:
        """Refuse tables that are there already. NeedsOperator."""
        found = [] if overwrite else self._present([*self.tables, *self.views])
        if found:
            raise already_there(found)

    def drop(self) -> None:
        """Drop the tables and views that an earlier load has made."""

        def work(connection: Connection) -> None:
            for kind, names in (("TABLE", self.tables), ("VIEW", self.views)):
                for name in names:
                    connection.execute(text(f"DROP {kind} IF EXISTS {_sql(name.schema)}.{_sql(name.table)}"))

        self._do(work, "dropping the tables of a dump")

    def check_rows(self, rows: Mapping[TableName, int]) -> None:
        """Check that each table holds as many rows as were loaded into it. FatalSinkError."""
        found: dict[TableName, int] = {}

        def work(connection: Connection) -> None:
            for table in rows:
                counting = text(f"SELECT COUNT(*) FROM {_sql(table.schema)}.{_sql(table.table)}")  # noqa: S608 - quoted names
                found[table] = connection.execute(counting).scalar_one()

        self._do(work, "counting the rows of a dump")
        wrong = [f"{table}: {found[table]} of {count}" for table, count in rows.items() if found[table] != count]
        if wrong:
            raise not_all_rows(wrong)

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


def already_there(tables: Sequence[TableName]) -> NeedsOperator:
    """Return the error of a load whose tables the sink has."""
    return NeedsOperator(
        "the sink has tables of the dump already",
        remedy=Remedy(
            "dump.rename-existing-tables",
            "Rename them if their rows matter, and load again. --overwrite loads over them: their own rows are lost",
        ),
        tables=named_some(tables),
    )


def not_all_rows(tables: Sequence[str]) -> FatalSinkError:
    """Return the error of a load after which tables lack rows."""
    return FatalSinkError(
        "tables of the sink do not hold all rows that were loaded into them",
        remedy=Remedy("dump.find-other-writer", "Look for somebody who writes to the sink's tables, then load again with --overwrite"),
        tables=named_some(tables),
    )


@contextmanager
def _session(settings: SinkSettings) -> Iterator[Connection]:
    connection = open_session(settings, Purpose.CONTROL)
    try:
        yield connection
    finally:
        discard(connection)


def _sql(name: str) -> str:
    return quote_identifier(name).replace(":", "\\:")
