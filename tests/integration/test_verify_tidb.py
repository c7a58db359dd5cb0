"""`applier verify` of an upstream that is TiDB: it is read as it was at the sink's checkpoint.

The server speaks like TiDB (``tests/rig/tidb.py``) and has its rows in MariaDB or MySQL: one schema for each snapshot.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

import pytest

from applier.model.errors import NeedsOperator
from tests.integration.mysql_replica import Replica, commit_at, replica
from tests.rig.clean_server import clean_server
from tests.rig.mysql_oracle import connect
from tests.rig.tidb import NOW, Tidb, tidb_server
from tests.rig.verifying import ComparedTables, Listener, run, verify, wrong

UP, DOWN = "applier_test_up", "applier_test_down"
TABLES = ComparedTables(lambda name: name._replace(schema=DOWN) if name.schema == UP else None)


@dataclass
class Upstream:
    """A TiDB with a state at each of some timestamps; a read between two of them sees the older one."""

    tidb: Tidb
    url: str
    states: list[int]

    def at(self, ts: int, *rows: tuple[int, int]) -> None:
        """Say which rows there are from ``ts`` on."""
        self.states.append(ts)
        run(self.url, f"DROP DATABASE IF EXISTS {UP}_{ts}", f"CREATE DATABASE {UP}_{ts}")
        run(self.url, f"CREATE TABLE {UP}_{ts}.t (id INT PRIMARY KEY, v DOUBLE)")
        run(self.url, *(f"INSERT INTO {UP}_{ts}.t VALUES ({row}, {value})" for row, value in rows))

    def answers(self) -> Callable[[str, int], object]:
        """Return what answers the queries of the comparison: the server, in the schema of the snapshot."""

        def answer(sql: str, snapshot: int) -> object:
            if sql.upper().startswith("START TRANSACTION"):
                return [], []
            if not sql.upper().startswith("SELECT"):
                return None
            schema = f"{UP}_{max(ts for ts in self.states if ts <= snapshot)}"
            with closing(connect(self.url)) as connection, connection.cursor() as cursor:
                connection.use_unicode = False
                cursor.execute(sql.replace(UP, schema))
                names = [str(column[0]) for column in cursor.description]
                rows = [tuple(_told(value, schema) for value in row) for row in cursor.fetchall()]
                # The other schemas of the server are not there for upstream's catalogue.
                return [row for row in rows if names[0] not in {"TABLE_SCHEMA", "SCHEMA_NAME"} or row[0] == UP], names

        return answer


def _told(value: object, schema: str) -> object:
    text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
    return text.replace(schema, UP) if isinstance(text, str) else text


@pytest.fixture
def upstream(mysql_url: str) -> Iterator[Upstream]:
    clean_server(mysql_url, DOWN)
    run(mysql_url, f"CREATE DATABASE {DOWN}", f"CREATE TABLE {DOWN}.t (id INT PRIMARY KEY, v DOUBLE)")
    with tidb_server() as tidb:
        made = Upstream(tidb, mysql_url, [])
        tidb.answers = made.answers()
        yield made
    clean_server(mysql_url, DOWN, *(f"{UP}_{ts}" for ts in made.states))


def applied(owned: Replica, ts: int, *statements: str) -> None:
    """Write a segment of the sink up to ``ts``."""
    fence = owned.sink.load().fence
    run(owned.url, *statements)
    assert owned.sink.save(fence, commit_at(ts)).state == "committed"


@pytest.fixture
def sink(upstream: Upstream) -> Iterator[Replica]:
    with replica(upstream.url) as owned:
        owned.url = upstream.url
        yield owned


def test_upstream_is_read_as_it_was_at_the_sinks_checkpoint(upstream, sink):
    upstream.at(100 << 18, (1, 1), (2, 2))
    upstream.at(200 << 18, (1, 1), (2, 22), (3, 3))
    applied(sink, 150 << 18, f"INSERT INTO {DOWN}.t VALUES (1,1),(2,2)")
    report = verify(upstream.tidb.url, upstream.url, TABLES)
    assert (wrong(report), report.is_exact, report.first_ts, report.last_ts) == ({}, True, 150 << 18, 150 << 18)
    assert {asked.snapshot for asked in upstream.tidb.queries() if "SHA2" in asked.sql} == {150 << 18}
    applied(sink, 200 << 18)
    assert wrong(verify(upstream.tidb.url, upstream.url, TABLES)) == {f"{DOWN}.t": (1, 0, 1)}


def test_the_repair_is_of_one_checkpoint_and_says_which(upstream, sink, tmp_path):
    upstream.at(100 << 18, (1, 1.5), (2, -2e-7), (3, 1e22))
    applied(sink, 100 << 18, f"INSERT INTO {DOWN}.t VALUES (1,7),(2,-2e-7),(4,4)")
    fix = tmp_path / "fix.sql"
    assert wrong(verify(upstream.tidb.url, upstream.url, TABLES, fix_sql=fix)) == {f"{DOWN}.t": (1, 1, 1)}
    text = fix.read_text()
    assert f"checkpoint {100 << 18}" in text
    assert "(1,1.5e0),(3,1e+22)" in text


def test_a_snapshot_that_upstream_has_removed_stops_with_a_remedy(upstream, sink):
    upstream.at(100 << 18, (1, 1))
    applied(sink, 100 << 18)
    upstream.tidb.gc_below = 150 << 18
    with pytest.raises(NeedsOperator, match="does not have the state") as caught:
        verify(upstream.tidb.url, upstream.url, TABLES)
    assert "tidb_gc_life_time" in caught.value.remedy
    # When the replica has come so far.
    applied(sink, 200 << 18, f"INSERT INTO {DOWN}.t VALUES (1,1)")
    assert wrong(verify(upstream.tidb.url, upstream.url, TABLES)) == {}


def test_each_range_of_a_sink_that_moves_is_compared_at_its_own_checkpoint(upstream, sink):
    upstream.at(100 << 18, *((row, row) for row in range(1, 41)))
    upstream.at(200 << 18, *((row, row * 2) for row in range(1, 41)))
    applied(sink, 100 << 18, *(f"INSERT INTO {DOWN}.t VALUES ({row}, {row})" for row in range(1, 41)))

    class Moving(Listener):
        def advance(self, table, rows):
            super().advance(table, rows)
            if self.rows == 20:
                applied(sink, 200 << 18, f"UPDATE {DOWN}.t SET v = v * 2")

    report = verify(upstream.tidb.url, upstream.url, TABLES, chunk_rows=10, jobs=1, listener=Moving())
    assert (wrong(report), report.first_ts, report.last_ts) == ({}, 100 << 18, 200 << 18)


def test_a_sink_without_a_replica_is_compared_with_upstream_as_it_is_now(upstream):
    upstream.at(100 << 18, (1, 1))
    run(upstream.url, f"INSERT INTO {DOWN}.t VALUES (1,1)")
    report = verify(upstream.tidb.url, upstream.url, TABLES)
    assert (wrong(report), report.is_exact, report.last_ts) == ({}, False, 0)
    assert {asked.snapshot for asked in upstream.tidb.queries()} == {NOW}


def test_a_lost_connection_costs_only_the_range(upstream, sink):
    upstream.at(100 << 18, *((row, row) for row in range(1, 41)))
    applied(sink, 100 << 18, *(f"INSERT INTO {DOWN}.t VALUES ({row}, {row})" for row in range(1, 41)))
    cut = iter([True])

    def lose(sql: str) -> None:
        if "SHA2" in sql and "20" in sql and next(cut, False):
            upstream.tidb.drop_connections()

    upstream.tidb.before_each = lose
    report = verify(upstream.tidb.url, upstream.url, TABLES, chunk_rows=10)
    assert (wrong(report), report.tables[0].upstream.rows) == ({}, 40)
