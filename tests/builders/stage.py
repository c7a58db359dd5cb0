"""A stage for scenarios: what upstream wrote to its streams, the replica that reads it, and everything that a reader of the sink sees."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from applier.model.position import Stream
from tests.builders.handwritten import CREATE_SCHEMA, KEY, PLAIN, ddl, log_of, row
from tests.builders.wire import column
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import Replica, sqlite_replica
from tests.rig.watched_sink import WatchedSink

P0, P1, P2, P3 = (Stream("feed", partition) for partition in range(4))


def create(ts, table="orders", columns="id INT PRIMARY KEY, n INT"):
    """CREATE TABLE of a small table."""
    return ddl(ts, f"CREATE TABLE {table} ({columns})", table=table)


def put(ts, key, n, table="orders", **others):
    """An insert or update: row ``key`` has the value ``n`` now, and ``others`` in its other columns."""
    return row(ts, table, id=column(3, KEY, key), n=column(3, PLAIN, n), **{name: column(3, PLAIN, v) for name, v in others.items()})


def gone(ts, key, table="orders"):
    """A delete of row ``key``."""
    return row(ts, table, deleted=True, id=column(3, KEY, key))


class Stage:
    """One replica in an SQLite file. ``seen``: the tables after each commit, each state once; a missing table is None."""

    def __init__(self, directory: Path, *streams: Stream, tables: Sequence[str] = ("orders",), **options) -> None:
        self.streams = streams or (P0, P1)
        self._directory, self._tables, self._options = directory, tables, options
        self._placed: list = []
        self.seen: list = []
        self.everywhere(CREATE_SCHEMA)

    def write(self, stream, *events):
        """Write events to one stream."""
        self._placed += [(stream, event) for event in events]
        return self

    def everywhere(self, *events):
        """Write each event to every stream, as DDLs and resolved events are."""
        self._placed += [(stream, event) for event in events for stream in self.streams]
        return self

    @property
    def log(self):
        """All records so far, in the order in which they were written."""
        return log_of(*self._placed)

    def replica(self) -> Replica:
        """The replica as a new run of the program finds it: nothing is in memory."""
        made = sqlite_replica(self._directory, FakeSource(self.log), **self._options)
        made.wrap = lambda sink: WatchedSink(sink, self._look)
        return made

    def catch_up(self, **options):
        """Run the program once and return its result."""
        return self.replica().catch_up(**options)

    def rows(self, table="orders", schema="shop"):
        """The rows of a table, ordered; None if there is no such table."""
        with closing(sqlite3.connect(self._directory / "replica.db")) as connection:
            try:
                return sorted(connection.execute(f'SELECT * FROM "{schema}.{table}"').fetchall())
            except sqlite3.OperationalError:
                return None

    def columns(self, table="orders"):
        """The names of a table's columns."""
        with closing(sqlite3.connect(self._directory / "replica.db")) as connection:
            return [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (f"shop.{table}",))]

    def _look(self) -> None:
        state = tuple(self.rows(table) for table in self._tables)
        if not self.seen or self.seen[-1] != state:
            self.seen.append(state)


def ran(replica: Replica) -> list[tuple[int, str]]:
    """(ts, verb) of each DDL that the ledger calls done."""
    return [(int(ts), " ".join(query.split()[:2])) for ts, query in replica.done_ddls()]
