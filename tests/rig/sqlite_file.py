"""A SQLite file to which DDL of upstream is applied, and which is then looked at through SQLite's own eyes."""

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from applier.model.events import DdlEvent, TableName
from applier.model.position import Ts
from applier.sinks.sqlite.catalogue import describe, examine, find_objects, read_definition
from applier.sinks.sqlite.dialect import SqliteDialect
from applier.sinks.sqlite.names import quote
from applier.sinks.sqlite.schema_change import apply_ddl
from applier.sinks.sqlite.session import open_engine
from applier.sources.ticdc.tso import physical_ms

NOON = Ts(1_700_000_000_123 << 18)
"""2023-11-14 22:13:20.123 UTC."""
SHOP_T = TableName("shop", "t")


@dataclass
class SqliteFile:
    """A connection as the sink opens it."""

    path: Path
    zone: str = "UTC"
    ddl_zone: str = "UTC"
    """That of upstream's sessions; '': not known."""
    connection: sqlite3.Connection = field(init=False)

    def __post_init__(self):
        self._engine = open_engine(self.path, 1)
        self._held = self._engine.connect()
        self.connection = self._held.connection.driver_connection

    def close(self):
        self._held.close()
        self._engine.dispose()

    def ddl(self, *queries, schema="shop", table="t", ts=NOON, session=None):
        """Apply statements, each in its own transaction, which an error rolls back. ``session``: that of a binlog's DDL."""
        if session is None:
            session = (("time_zone", self.ddl_zone),) if self.ddl_zone else ()
        for query in queries:
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                at = {"time_ms": physical_ms(ts), "session": session}
                ddl = DdlEvent(commit_ts=ts, schema=schema, table=table, query=query, ddl_type=0, **at)
                apply_ddl(self.connection, ddl, self.zone)
                self.connection.execute("COMMIT")
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise

    def insert(self, table, *rows):
        """Write rows of values that the file stores as they are."""
        marks = ",".join("?" * len(rows[0]))
        self.connection.executemany(f"INSERT INTO {quote(table)} VALUES ({marks})", rows)

    def put(self, name, types, *rows):
        """Write rows through the dialect, as the planner does."""
        description = self.described(name)
        literals = [SqliteDialect().literal(column, kind) for column, kind in zip(description.columns, types, strict=True)]
        texts = ["(" + ",".join(render(value) for render, value in zip(literals, row, strict=True)) + ")" for row in rows]
        for text, _ in SqliteDialect().replaces(description, [column.name for column in description.columns], texts):
            self.connection.execute(text)

    def delete(self, name, columns, types, *keys):
        description = self.described(name)
        by_name = {column.name: column for column in description.columns}
        literals = [SqliteDialect().literal(by_name[column], kind) for column, kind in zip(columns, types, strict=True)]
        texts = [[render(value) for render, value in zip(literals, key, strict=True)] for key in keys]
        for text, _ in SqliteDialect().deletes(description, columns, texts):
            self.connection.execute(text)

    def rows(self, table="shop.t", order="1"):
        return self.connection.execute(f"SELECT * FROM {quote(table)} ORDER BY {order}").fetchall()

    def columns(self, table="shop.t"):
        """(name, type, not null, place in the key) of each column, from SQLite."""
        found = self.connection.execute('SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?) WHERE hidden <> 1', (table,))
        return [(name, kind, bool(strict), key) for name, kind, strict, key in found]

    def indexes(self, table="shop.t"):
        """{name: (unique, columns)} of the indexes that were created by name, from SQLite; None for an expression."""
        found = self.connection.execute("SELECT name, \"unique\" FROM pragma_index_list(?) WHERE origin = 'c'", (table,)).fetchall()
        return {
            name: (bool(unique), [c for (c,) in self.connection.execute("SELECT name FROM pragma_index_info(?) ORDER BY seqno", (name,))])
            for name, unique in found
        }

    def tables(self):
        return sorted(entry.stored for entry in find_objects(self.connection).values() if not entry.is_view)

    def views(self):
        return sorted(entry.stored for entry in find_objects(self.connection).values() if entry.is_view)

    def described(self, name=SHOP_T):
        return describe(self.connection, [name])[name.fold()]

    def unportable(self, name=SHOP_T):
        """The generated columns that the table check finds."""
        return examine(self.connection, [name])[name.fold()].unportable

    def types(self, name=SHOP_T):
        """The columns in MySQL's words, read back from the file."""
        definition = read_definition(self.connection, find_objects(self.connection)[name.fold()])
        return {column.name: column.mysql for column in definition.columns}


def three_rows(file):
    file.ddl("CREATE TABLE `t` (`id` INT PRIMARY KEY, `a` INT, `b` VARCHAR(9), KEY `ka`(`a`), UNIQUE `ub`(`b`))")
    file.insert("shop.t", (1, 10, "x"), (2, None, None), (3, -5, "z"))
