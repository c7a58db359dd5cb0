"""Actions of foreign keys, which InnoDB executes below the binlog: the sink executes them too, in the order of upstream's rows."""

import random
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace

import pytest
from pymysql.err import IntegrityError, OperationalError

from applier.model.errors import NeedsOperator
from applier.planner.table_check import DifferenceKind
from applier.selection import TableFilter, TableSelection
from applier.sources.binlog.settings import BinlogSettings
from tests.integration.mysql_replica import read
from tests.rig.binlog_replica import LIMITS, BinlogReplica
from tests.rig.database import Kind
from tests.rig.faulty_sink import DeathError, Faults, FaultySink
from tests.rig.mysql_oracle import connect
from tests.rig.primary import Primary, own_primary
from tests.rig.upstream import clear_sink

pytestmark = pytest.mark.timeout(120)

CHECKED = "SET foreign_key_checks = 1"
"""The sessions of the rig check no keys."""
DELETES, UPDATES = "ON DELETE CASCADE", "ON UPDATE CASCADE"
KEYS = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.customer (id INT PRIMARY KEY, code VARCHAR(20) NOT NULL UNIQUE, name VARCHAR(20)) COLLATE utf8mb4_bin",
    # Over several levels; the key of `note` is its parent's.
    f"CREATE TABLE shop.item (id INT PRIMARY KEY, customer INT, FOREIGN KEY (customer) REFERENCES shop.customer (id) {DELETES} {UPDATES})",
    f"CREATE TABLE shop.part (id INT PRIMARY KEY, item INT, FOREIGN KEY (item) REFERENCES shop.item (id) ON DELETE SET NULL {UPDATES})",
    "CREATE TABLE shop.note (customer INT PRIMARY KEY, text VARCHAR(20))",
    f"ALTER TABLE shop.note ADD FOREIGN KEY (customer) REFERENCES shop.customer (id) {DELETES} {UPDATES}",
    # By a key that is not the primary one.
    "CREATE TABLE shop.card (id INT PRIMARY KEY, code VARCHAR(20)) COLLATE utf8mb4_bin",
    f"ALTER TABLE shop.card ADD FOREIGN KEY (code) REFERENCES shop.customer (code) ON DELETE SET NULL {UPDATES}",
    "CREATE TABLE shop.bill (id INT PRIMARY KEY, part INT, FOREIGN KEY (part) REFERENCES shop.part (id) ON DELETE RESTRICT)",
    f"CREATE TABLE shop.folder (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES shop.folder (id) {DELETES})",
    # Without a key of its own.
    f"CREATE TABLE shop.tag (item INT, text VARCHAR(20), FOREIGN KEY (item) REFERENCES shop.item (id) {DELETES} {UPDATES})",
    "CREATE TABLE shop.other (id INT PRIMARY KEY, n INT)",
)
TABLES = ("customer", "item", "part", "note", "card", "bill", "folder", "tag", "other")
ROWS = (
    "INSERT INTO shop.customer VALUES (1, 'a', 'Ann'), (2, 'b', 'Bob'), (3, 'c', 'Cid'), (4, 'd', 'Dan')",
    "INSERT INTO shop.item VALUES (10, 1), (11, 1), (20, 2), (30, 3), (40, 4)",
    "INSERT INTO shop.part VALUES (100, 10), (101, 11), (200, 20), (300, 30), (400, 40)",
    "INSERT INTO shop.note VALUES (1, 'one'), (2, 'two'), (3, 'three')",
    "INSERT INTO shop.card VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, NULL)",
    "INSERT INTO shop.bill VALUES (1, 200)",
    "INSERT INTO shop.folder VALUES (1, NULL), (2, 1), (3, 2), (4, NULL), (5, 4)",
    "INSERT INTO shop.tag VALUES (10, 'x'), (10, 'x'), (20, 'y'), (30, 'z'), (40, 'w')",
    "INSERT INTO shop.other VALUES (1, 1), (2, 2)",
)
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


def rows(url):
    return {table: sorted(read(url, f"SELECT * FROM shop.{table}"), key=repr) for table in TABLES}


def test_the_sink_executes_all_actions(hiding, sink):
    replica = replica_of(hiding, sink)
    hiding.run(CHECKED, *KEYS, *ROWS)
    replica.catch_up()
    assert rows(sink) == rows(hiding.url)
    hiding.run(CHECKED, *CHANGES)
    replica.catch_up()
    assert rows(sink) == rows(hiding.url)


def random_statement(rng):
    """One of many statements about the tables of ``KEYS``; upstream may refuse it."""
    number, other = rng.randrange(1, 9), rng.choice([*range(1, 9), "NULL"])
    return rng.choice(
        [
            f"INSERT INTO shop.customer VALUES ({number}, 'c{rng.randrange(99)}', 'x')",
            f"DELETE FROM shop.customer WHERE id <= {number} LIMIT 2",
            f"UPDATE shop.customer SET id = {rng.randrange(1, 9)}, code = 'c{rng.randrange(99)}' WHERE id = {number}",
            f"UPDATE shop.customer SET code = 'c{rng.randrange(99)}' WHERE id = {number}",
            f"REPLACE INTO shop.customer VALUES ({number}, 'c{number}', 'y')",
            f"INSERT INTO shop.item VALUES ({number}, {other}), ({number + 20}, {other})",
            f"UPDATE shop.item SET id = {rng.randrange(1, 40)}, customer = {other} WHERE id = {number}",
            f"DELETE FROM shop.item WHERE id = {number}",
            f"INSERT INTO shop.part VALUES ({number}, {other})",
            f"UPDATE shop.part SET id = id + 10 WHERE id = {number}",
            f"INSERT INTO shop.note VALUES ({number}, 'n')",
            f"INSERT INTO shop.card VALUES ({number}, (SELECT MIN(code) FROM shop.customer))",
            f"INSERT INTO shop.bill VALUES ({number}, {other})",
            f"DELETE FROM shop.bill WHERE id = {number}",
            f"INSERT INTO shop.folder VALUES ({number}, {other})",
            f"UPDATE shop.folder SET parent = {other} WHERE id = {number}",
            f"DELETE FROM shop.folder WHERE id = {number}",
            f"INSERT INTO shop.tag VALUES ({number}, 't'), ({number}, 't')",
            f"DELETE FROM shop.tag WHERE item = {number} LIMIT 1",
            f"UPDATE shop.other SET n = n + {number}",
            f"SET foreign_key_checks = {int(rng.random() < 0.8)}",
        ]
    )


def run_random(primary, rng, transactions):
    with closing(connect(primary.url)) as connection, connection.cursor() as cursor:
        cursor.execute(CHECKED)
        for _ in range(transactions):
            for _ in range(rng.randrange(1, 6)):
                with suppress(IntegrityError, OperationalError):
                    cursor.execute(random_statement(rng))
            connection.commit() if rng.random() < 0.9 else connection.rollback()


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
