"""Statements that one server has and another has not: each is applied in other words, or refused by name, on every pair of servers."""

from contextlib import closing

import pytest

from applier.model.errors import ApplierError, RowRefused
from applier.sources.binlog.settings import BinlogSettings
from tests.integration.mysql_replica import read
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.mysql_oracle import connect
from tests.rig.upstream import clear_sink

pytestmark = pytest.mark.timeout(240)

APPLIED = {
    Kind.MARIADB: (
        "CREATE TABLE words.t (id INT PRIMARY KEY, a INT, CHECK (a > 5))",
        "SET check_constraint_checks = 0",
        "INSERT INTO words.t VALUES (1, 2)",
        "ALTER TABLE words.t ADD CONSTRAINT more CHECK (a > 6)",
        "INSERT INTO words.t VALUES (2, 3)",
    ),
    Kind.MYSQL: (
        "CREATE TABLE words.t (id INT PRIMARY KEY, a INT, g POINT NOT NULL SRID 4326)",
        "INSERT INTO words.t VALUES (1, 2, ST_GeomFromText('POINT(1 2)', 4326))",
        "ALTER TABLE words.t ALTER COLUMN a SET INVISIBLE",
        "ALTER TABLE words.t ALTER COLUMN a SET VISIBLE",
        "ALTER TABLE words.t MODIFY a BIGINT VISIBLE, ADD h GEOMETRY SRID 0",
        "INSERT INTO words.t VALUES (2, 3, ST_GeomFromText('POINT(3 4)', 4326), NULL)",
    ),
}
"""What MariaDB as the sink has in its own words."""
FUNCTION = (
    "CREATE FUNCTION words.f(a INT) RETURNS INT DETERMINISTIC RETURN a",
    "CREATE VIEW words.v AS SELECT words.f(id) AS x FROM words.t",
)
REFUSED = {
    Kind.MARIADB: (
        (Kind.MARIADB, ("CREATE SEQUENCE words.q", "RENAME TABLE words.q TO words.r"), "Table 'words.q' doesn't exist"),
        (Kind.MARIADB, FUNCTION, "FUNCTION words.f does not exist"),
        (
            Kind.MARIADB,
            ("ALTER TABLE words.t ADD a DATE, ADD b DATE, ADD PERIOD FOR p(a, b), ADD UNIQUE (id, p WITHOUT OVERLAPS)",),
            "OVERLAPS",
        ),
        (Kind.MYSQL, ("CREATE TABLE words.p (a DATE, b DATE, PERIOD FOR p(a, b))",), "PERIOD FOR"),
        (Kind.MYSQL, ("CREATE TABLE words.u (id UUID DEFAULT UUID() PRIMARY KEY)",), "does not know words of the DDL: UUID DEFAULT"),
    ),
    Kind.MYSQL: (
        (Kind.MARIADB, FUNCTION, "FUNCTION words.f does not exist"),
        (Kind.MARIADB, ("CREATE TABLE words.c (id INT PRIMARY KEY, CONSTRAINT c CHECK (id > 5) NOT ENFORCED)",), "not enforced"),
        (
            Kind.MYSQL,
            ("CREATE JSON DUALITY VIEW words.v AS SELECT JSON_DUALITY_OBJECT('_id': id) FROM words.t",),
            "DUALITY VIEWs are not replicated",
        ),
    ),
}


def replica_of(primary, databases, kind):
    url = databases.plain(kind).url
    clear_sink(url)
    primary.clear()
    return BinlogReplica(url, BinlogSettings(url=primary.url, start=primary.place()))


def test_what_mariadb_says_otherwise_or_does_without_is_applied(primary, databases):
    replica = replica_of(primary, databases, Kind.MARIADB)
    primary.run("CREATE DATABASE words", *APPLIED[primary.kind])
    replica.catch_up()
    rows = "SELECT id, a FROM words.t ORDER BY id"
    assert read(replica.url, rows) == [tuple(row) for row in primary.ask(rows)]


def test_what_a_server_does_not_have_is_refused_by_name(primary, databases):
    for kind, statements, why in REFUSED[primary.kind]:
        replica = replica_of(primary, databases, kind)
        primary.run("CREATE DATABASE words", "CREATE TABLE words.t (id INT PRIMARY KEY)", *statements)
        with pytest.raises(ApplierError, match=why) as stopped:
            replica.catch_up()
        assert "You have an error in your SQL syntax" not in stopped.value.message
        assert "applier ddl" in stopped.value.remedy


@pytest.mark.on_one_server("mariadb", reason="MySQL has no such variable")
def test_rows_that_upstream_has_not_checked_are_refused_by_mysql_until_its_check_is_not_enforced(primary, databases):
    replica = replica_of(primary, databases, Kind.MYSQL)
    table = "CREATE TABLE words.t (id INT PRIMARY KEY, a INT, CONSTRAINT c CHECK (a > 5))"
    rows = [
        statement
        for number in range(4)
        for statement in (f"SET check_constraint_checks = {number % 2}", f"INSERT INTO words.t VALUES ({number}, {number % 2 * 9})")
    ]
    primary.run("CREATE DATABASE words", table, "BEGIN", *rows, "COMMIT")
    with pytest.raises(RowRefused, match="Check constraint 'c' is violated") as stopped:
        replica.catch_up()
    assert "check_constraint_checks = 0" in stopped.value.remedy
    with closing(connect(replica.url)) as sink, sink.cursor() as cursor:
        cursor.execute("ALTER TABLE words.t ALTER CHECK c NOT ENFORCED")
    primary.run("ALTER TABLE words.t ADD b INT", "SET check_constraint_checks = 0", "INSERT INTO words.t VALUES (9, 1, 1)")
    replica.catch_up()
    wanted = "SELECT id, a, b FROM words.t ORDER BY id"
    assert read(replica.url, wanted) == [tuple(row) for row in primary.ask(wanted)]
