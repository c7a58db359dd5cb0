"""MariaDB's GTIDs in an order that their numbers do not tell: a replica has written by itself before it takes its primary's place."""

import sqlite3
import subprocess
from contextlib import closing

import pytest

from applier.model.errors import NeedsOperator
from applier.sources.binlog.settings import BinlogSettings
from tests.integration.binlog.test_starting_places import command
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.mysql_oracle import connect
from tests.rig.primary import own_primary

pytestmark = [pytest.mark.timeout(300), pytest.mark.on_one_server("mariadb", reason="MySQL's sets name each transaction")]
SWAP = "RENAME TABLE g.a TO g.c, g.b TO g.a, g.c TO g.b"
OTHER_DOMAIN = "SET SESSION gtid_domain_id = 7"
ANALYZED = 8
CAUGHT_UP_S = 60


def rows_of(url):
    """Return the rows of g.a and g.b on a server, or in a SQLite file."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return [[row for (row,) in connection.execute(f'SELECT id FROM "g.{table}" ORDER BY id')] for table in "ab"]
    found = []
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        for table in "ab":
            cursor.execute(f"SELECT id FROM g.{table} ORDER BY id")
            found.append([row for (row,) in cursor.fetchall()])
    return found


def loaded_dump(server, sink, path):
    """Dump the schema on a server, load it into a sink, and return the dump's file."""
    with path.open("wb") as file:
        options = ["--single-transaction", "--master-data=2", "--databases", "g"]
        subprocess.run(command("mariadb-dump", server.url, *options), check=True, stdout=file, timeout=60)
    with path.open("rb") as file:
        subprocess.run(command("mariadb", sink), check=True, stdin=file, timeout=60)
    return path


def test_after_a_failover_and_from_a_dump_no_transaction_is_applied_twice(sqlite_sink, mariadb_sink, tmp_path):
    with own_primary(Kind.MARIADB) as primary, own_primary(Kind.MARIADB, number=2) as other:
        replica = BinlogReplica(sqlite_sink, BinlogSettings(url=primary.url, start=primary.place()))
        other.follow(primary)
        primary.run("CREATE SCHEMA g", "CREATE TABLE g.a (id INT PRIMARY KEY)", "CREATE TABLE g.b (id INT PRIMARY KEY)")
        primary.run("INSERT INTO g.a VALUES (1)", "INSERT INTO g.b VALUES (2)")
        assert other.ask(f"SELECT MASTER_GTID_WAIT('{primary.gtid()}', {CAUGHT_UP_S})") == ((0,),)
        # On the replica, with numbers that are greater than those of the primary's next transactions.
        other.run(*["ANALYZE TABLE g.a, g.b"] * ANALYZED)
        primary.run(SWAP, "INSERT INTO g.a VALUES (3)")
        replica.catch_up()
        other.take_over(primary)
        replica.moved(other.url)
        replica.catch_up()
        assert rows_of(sqlite_sink) == rows_of(other.url) == [[2, 3], [1]]
        dump = loaded_dump(other, mariadb_sink, tmp_path / "dump.sql")
        dumped = BinlogReplica(mariadb_sink, BinlogSettings(url=other.url, start=f"dump:{dump}"))
        dumped.catch_up()
        assert rows_of(mariadb_sink) == rows_of(other.url)
        other.rotate()
        other.run(OTHER_DOMAIN, SWAP, "INSERT INTO g.a VALUES (4)")
        replica.catch_up()
        dumped.catch_up()
        assert rows_of(sqlite_sink) == rows_of(mariadb_sink) == rows_of(other.url) == [[1, 4], [2, 3]]


def test_a_new_primary_that_has_not_logged_its_replication_is_named_and_its_dump_begins_a_new_replica(sqlite_sink, mariadb_sink, tmp_path):
    with own_primary(Kind.MARIADB) as primary, own_primary(Kind.MARIADB, "--log-slave-updates=0", number=2) as other:
        replica = BinlogReplica(sqlite_sink, BinlogSettings(url=primary.url, start=primary.place()))
        other.follow(primary)
        primary.run("CREATE SCHEMA g", "CREATE TABLE g.a (id INT PRIMARY KEY)", "CREATE TABLE g.b (id INT PRIMARY KEY)")
        primary.run("INSERT INTO g.a VALUES (1)")
        replica.catch_up()
        other.take_over(primary)
        replica.moved(other.url)
        with pytest.raises(NeedsOperator, match="without logging them") as stopped:
            replica.catch_up()
        assert (stopped.value.facts["missing"], "log_slave_updates = ON" in stopped.value.remedy) == (primary.gtid(), True)
        dump = loaded_dump(other, mariadb_sink, tmp_path / "dump.sql")
        dumped = BinlogReplica(mariadb_sink, BinlogSettings(url=other.url, start=f"dump:{dump}"))
        for statement in ("INSERT INTO g.a VALUES (2)", "DELETE FROM g.a WHERE id = 1"):
            other.run(statement)
            dumped.catch_up()
            other.rotate()
        assert rows_of(mariadb_sink) == rows_of(other.url) == [[2], []]


def test_the_end_of_a_chain_that_logs_nothing_is_not_said_to_lack_what_it_has(sqlite_sink):
    with own_primary(Kind.MARIADB) as primary, own_primary(Kind.MARIADB, number=2) as middle:
        replica = BinlogReplica(sqlite_sink, BinlogSettings(url=primary.url, start=primary.place()))
        middle.follow(primary)
        primary.run("CREATE SCHEMA g", "CREATE TABLE g.a (id INT PRIMARY KEY)")
        assert middle.ask(f"SELECT MASTER_GTID_WAIT('{primary.gtid()}', {CAUGHT_UP_S})") == ((0,),)
        replica.catch_up()
        middle.run("ANALYZE TABLE g.a")
        with own_primary(Kind.MARIADB, "--log-slave-updates=0", number=3) as end:
            end.follow(middle)
            end.take_over(middle)
            assert end.ask("SHOW TABLES IN g") == (("a",),)
            replica.moved(end.url)
            with pytest.raises(NeedsOperator, match="binlog does not have the last transaction") as stopped:
                replica.catch_up()
            assert stopped.value.facts["missing"] == primary.gtid()
            assert "Otherwise create the replica again from its dump" in stopped.value.remedy
