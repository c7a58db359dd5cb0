"""Actions of foreign keys, which InnoDB executes below the binlog: the sink executes them too, in the order of upstream's rows."""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from applier.model.errors import NeedsOperator
from applier.planner.table_check import DifferenceKind
from applier.replica.quarantine_retry import QuarantineRetry
from applier.selection import Route, TableFilter, TableSelection
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.binlog.decoder import BinlogDecoder
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.factory import open_source
from tests.integration.mysql_replica import read, run
from tests.rig.binlog_replica import LIMITS, BinlogReplica
from tests.rig.database import Kind
from tests.rig.faulty_sink import DeathError, Faults, FaultySink
from tests.rig.key_actions import CHECKED, DELETES, KEYS, ROWS, rows, run_random
from tests.rig.primary import Primary, own_primary
from tests.rig.upstream import NAME, clear_sink

pytestmark = pytest.mark.timeout(120)

CHANGES = (
    # What is deleted and comes again has lost its children.
    "DELETE FROM shop.customer WHERE id = 1",
    "INSERT INTO shop.customer VALUES (1, 'a', 'Ann again')",
    "INSERT INTO shop.item VALUES (12, 1)",
    "UPDATE shop.customer SET id = 22, code = 'bb' WHERE id = 2",
    "UPDATE shop.item SET id = 21 WHERE id = 20",
    "UPDATE shop.customer SET code = 'C' WHERE id = 3",
    "UPDATE shop.customer SET name = 'Cyd' WHERE id = 3",
    "UPDATE shop.tag SET text = 'zz' WHERE item = 30",
    "DELETE FROM shop.folder WHERE id = 1",
    "INSERT INTO shop.folder VALUES (1, NULL), (2, 1)",
    "DELETE FROM shop.bill WHERE id = 1",
    "DELETE FROM shop.part WHERE id = 200",
    "UPDATE shop.other SET n = n + 1",
    # A session that checks no keys: no action.
    "SET foreign_key_checks = 0",
    "DELETE FROM shop.customer WHERE id = 4",
    "INSERT INTO shop.item VALUES (50, 99)",
    CHECKED,
    "REPLACE INTO shop.customer VALUES (22, 'bb', 'Bob anew')",
    "SET binlog_row_image = MINIMAL",
    "INSERT INTO shop.customer (id, code) VALUES (5, 'e'), (6, 'f')",
    "INSERT INTO shop.card VALUES (5, 'e'), (6, 'f')",
    "UPDATE shop.customer SET code = 'ee' WHERE id = 5",
    "UPDATE shop.customer SET name = 'Eve' WHERE id = 5",
    "DELETE FROM shop.customer WHERE id = 6",
)


@pytest.fixture(scope="module")
def native() -> Iterator[Primary]:
    """A MySQL whose InnoDB executes the actions, as that of every version before 9.6."""
    with own_primary(Kind.MYSQL, "--innodb-native-foreign-keys=ON") as primary:
        yield primary


@pytest.fixture(params=["mariadb", "mysql", "native mysql"])
def hiding(request) -> Primary:
    """A primary of each kind."""
    if request.param == "native mysql":
        primary = request.getfixturevalue("native")
        primary.clear()
        return primary
    return request.getfixturevalue("primaries").of(Kind(request.param))


@pytest.fixture(params=list(Kind))
def sink(request, databases) -> str:
    """URL of a sink of each kind. Its user has the privileges of sql/grants.sql."""
    database = databases.plain(request.param)
    clear_sink(database.url)
    return database.least_privileged_url


def replica_of(primary, sink) -> BinlogReplica:
    return BinlogReplica(sink, BinlogSettings(url=primary.url, start=primary.place()), writes_keyless=True)


def test_the_sink_executes_all_actions(hiding, sink):
    replica = replica_of(hiding, sink)
    hiding.run(CHECKED, *KEYS, *ROWS)
    replica.catch_up()
    assert rows(sink) == rows(hiding.url)
    hiding.run(CHECKED, *CHANGES)
    replica.catch_up()
    assert rows(sink) == rows(hiding.url)


@pytest.mark.parametrize(
    ("hiding", "sink"), [("mariadb", Kind.MYSQL), ("native mysql", Kind.MARIADB)], indirect=True, ids=["to mysql", "to mariadb"]
)
def test_deaths_and_lost_answers_change_nothing(hiding, sink):
    rng, faults = random.Random(21), Faults(21, rate=0.2, deaths=0.2)
    replica = replica_of(hiding, sink)
    replica.policy = replace(LIMITS, segment_rows=20)
    replica.wrap = lambda real: FaultySink(real, faults)
    hiding.run(CHECKED, *KEYS, *ROWS)
    for _ in range(3):
        run_random(hiding, rng, 100)
        while True:
            with suppress(DeathError):
                replica.catch_up()
                break
        assert rows(sink) == rows(hiding.url)
    assert all(faults.counts[kind] for kind in ("death before", "death after", "lost after"))


def test_the_keys_are_those_of_the_position_and_not_todays(primaries, mariadb_sink):
    primary = primaries.of(Kind.MARIADB)
    replica = replica_of(primary, mariadb_sink)
    primary.run(
        CHECKED,
        "CREATE DATABASE shop",
        "CREATE TABLE shop.parent (id INT PRIMARY KEY)",
        "CREATE TABLE shop.child (id INT PRIMARY KEY, parent INT)",
        "INSERT INTO shop.parent VALUES (1), (2), (3)",
        "INSERT INTO shop.child VALUES (1, 1), (2, 2), (3, 3)",
        "ALTER TABLE shop.child ADD CONSTRAINT of FOREIGN KEY (parent) REFERENCES shop.parent (id) ON DELETE CASCADE",
        "DELETE FROM shop.parent WHERE id = 1",
        "ALTER TABLE shop.child DROP FOREIGN KEY of",
        "DELETE FROM shop.parent WHERE id = 2",
        "DELETE FROM shop.child WHERE id = 2",
        "ALTER TABLE shop.child ADD CONSTRAINT of FOREIGN KEY (parent) REFERENCES shop.parent (id) ON DELETE RESTRICT",
    )
    replica.catch_up()
    assert read(mariadb_sink, "SELECT id, parent FROM shop.child") == [(3, 3)]
    assert read(mariadb_sink, "SELECT id FROM shop.parent") == [(3,)]


CASCADE = (
    CHECKED,
    "CREATE DATABASE shop",
    "CREATE TABLE shop.parent (id INT PRIMARY KEY)",
    f"CREATE TABLE shop.child (id INT PRIMARY KEY, parent INT, CONSTRAINT of FOREIGN KEY (parent) REFERENCES shop.parent (id) {DELETES})",
    "INSERT INTO shop.parent VALUES (1), (2)",
    "INSERT INTO shop.child VALUES (1, 1), (2, 2)",
    "DELETE FROM shop.parent WHERE id = 1",
)


def test_a_sink_without_foreign_keys_stops_also_where_upstream_has_dropped_its_own_since(primaries, sqlite_sink):
    primary = primaries.of(Kind.MARIADB)
    replica = replica_of(primary, sqlite_sink)
    primary.run(*CASCADE, "ALTER TABLE shop.child DROP FOREIGN KEY of")
    for _ in range(2):
        with pytest.raises(NeedsOperator, match=r"foreign key of of shop\.child"):
            replica.catch_up()
    replica.accept = {"shop.*": (DifferenceKind.FOREIGN_KEY,)}
    replica.catch_up()


def test_actions_that_the_operator_accepts_are_not_executed(primaries, mariadb_sink):
    primary = primaries.of(Kind.MARIADB)
    replica = replica_of(primary, mariadb_sink)
    replica.accept = {"shop.*": (DifferenceKind.FOREIGN_KEY,)}
    primary.run(*CASCADE)
    replica.catch_up()
    assert read(mariadb_sink, "SELECT id FROM shop.child ORDER BY id") == [(1,), (2,)]


def test_a_parent_that_the_filter_leaves_out_stops_the_replica(primaries, mariadb_sink):
    primary = primaries.of(Kind.MARIADB)
    replica = replica_of(primary, mariadb_sink)
    replica.selection = TableSelection(tables=TableFilter.parse(["*.*", "!shop.parent"]))
    primary.run(*CASCADE)
    with pytest.raises(NeedsOperator, match=r"foreign key of of shop\.child") as caught:
        replica.catch_up()
    assert "include shop.parent" in caught.value.remedy


@pytest.mark.parametrize("tables", [["*.*"], ["shop.*"]])
def test_actions_follow_routes(tables, primaries, mariadb_sink):
    primary = primaries.of(Kind.MARIADB)
    replica = replica_of(primary, mariadb_sink)
    replica.selection = TableSelection(tables=TableFilter.parse(tables), routes=(Route.parse("shop.*", "crm.{table}_v2"),))
    primary.run(*CASCADE, "INSERT INTO shop.parent VALUES (3)", "INSERT INTO shop.child VALUES (3, 2), (4, 3)")
    replica.catch_up()
    primary.run(CHECKED, "DELETE FROM shop.parent WHERE id = 2")
    replica.catch_up()
    assert read(mariadb_sink, "SELECT id, parent FROM crm.child_v2") == [(4, 3)]
    assert read(mariadb_sink, "SELECT id FROM crm.parent_v2") == [(3,)]


def test_a_quarantined_row_of_such_tables_is_not_retried(primaries, mariadb_sink):
    primary = primaries.of(Kind.MARIADB)
    replica = replica_of(primary, mariadb_sink)
    replica.quarantines = frozenset({"rejected"})
    primary.run(*CASCADE, "ALTER TABLE shop.child ADD COLUMN text VARCHAR(9)")
    replica.catch_up()
    run(mariadb_sink, "ALTER TABLE shop.child MODIFY text VARCHAR(2)")
    primary.run(CHECKED, "INSERT INTO shop.child VALUES (3, 2, 'long')", "INSERT INTO shop.parent VALUES (4)")
    replica.catch_up()
    assert read(mariadb_sink, "SELECT id FROM shop.parent ORDER BY id") == [(2,), (4,)]
    run(mariadb_sink, "ALTER TABLE shop.child MODIFY text VARCHAR(9)")
    with open_sink(SinkSettings(url=mariadb_sink, name=NAME)) as sink, open_source(replica.source, BinlogDecoder()) as source:
        sink.acquire()
        (entry,) = sink.bookkeeping.quarantine.entries()
        with pytest.raises(NeedsOperator, match="rows are written in order") as caught:
            QuarantineRetry(source, sink, "me@here").retry(entry.event.position)
        assert "quarantine drop" in caught.value.remedy
        assert sink.bookkeeping.quarantine.entries() == [entry]
    assert read(mariadb_sink, "SELECT id FROM shop.child") == [(2,)]
