"""The tables of a dump in a file of SQLite: absent before the load, or dropped. What ``TargetTables`` is for servers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from applier.dump.target_tables import already_there, not_all_rows
from applier.model.events import TableName
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite.catalogue import find_objects
from applier.sinks.sqlite.names import compose, quote
from applier.sinks.sqlite.session import database_path, open_engine, raw, snapshot, transaction


@dataclass(frozen=True, slots=True)
class FileTarget:
    """The tables and views that a dump makes, by the sink's names. The file is there: the bookkeeping is in it."""

    settings: SinkSettings
    tables: Sequence[TableName]
    views: Sequence[TableName] = ()

    def check_absent(self, *, overwrite: bool) -> None:
        """Refuse tables that are there already. NeedsOperator."""
        path = database_path(self.settings.url)
        with snapshot(open_engine(path, self.settings.lock_wait_timeout_s), path) as connection:
            present = find_objects(raw(connection))
        found = [] if overwrite else [name for name in (*self.tables, *self.views) if name.fold() in present]
        if found:
            raise already_there(found)

    def drop(self) -> None:
        """Drop the tables and views that an earlier load has made."""
        engine = open_engine(database_path(self.settings.url), self.settings.lock_wait_timeout_s)
        with transaction(engine) as connection:
            driver = raw(connection)
            present = find_objects(driver)
            for name in (*self.views, *self.tables):
                entry = present.get(name.fold())
                if entry is not None:
                    driver.execute(compose("DROP VIEW {name}" if entry.is_view else "DROP TABLE {name}", name=quote(entry.stored)))

    def check_rows(self, rows: Mapping[TableName, int]) -> None:
        """Check that each table holds as many rows as were loaded into it. FatalSinkError."""
        path, found = database_path(self.settings.url), dict[TableName, int]()
        with snapshot(open_engine(path, self.settings.lock_wait_timeout_s), path) as connection:
            present = find_objects(raw(connection))
            for name in rows:
                query = compose("SELECT COUNT(*) FROM {table}", table=quote(present[name.fold()].stored))
                found[name] = raw(connection).execute(query).fetchone()[0]
        wrong = [f"{name}: {found[name]} of {count}" for name, count in rows.items() if found[name] != count]
        if wrong:
            raise not_all_rows(wrong)
