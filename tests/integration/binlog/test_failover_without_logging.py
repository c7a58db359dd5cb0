"""A replica that has not logged what it replicates becomes the primary: that is named, and is no purged binlog."""

import sqlite3
from contextlib import closing

import pytest

from applier.model.errors import NeedsOperator
from applier.sources.binlog.settings import BinlogSettings
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.primary import own_primary

pytestmark = [pytest.mark.timeout(300), pytest.mark.on_one_server("mysql", reason="MariaDB's replicas are in test_gtid_order")]


def test_a_new_primary_of_mysql_that_has_not_logged_its_replication_is_named_and_its_dump_begins_a_new_replica(sqlite_sink, tmp_path):
    with own_primary(Kind.MYSQL) as primary, own_primary(Kind.MYSQL, "--log-replica-updates=0", number=2) as other:
        replica = BinlogReplica(sqlite_sink, BinlogSettings(url=primary.url, start=primary.place()))
        other.follow(primary)
        primary.run("CREATE SCHEMA g", "CREATE TABLE g.a (id INT PRIMARY KEY)", "INSERT INTO g.a VALUES (1)")
        replica.catch_up()
        primary.run("INSERT INTO g.a VALUES (2)")
        other.take_over(primary)
        replica.moved(other.url)
        with pytest.raises(NeedsOperator, match="without logging them") as stopped:
            replica.catch_up()
        assert (stopped.value.facts["missing"][-2:], "log_replica_updates = ON" in stopped.value.remedy) == (":6", True)
        # The dump of the new primary: what it has now, and its position.
        loaded = tmp_path / "loaded.db"
        with closing(sqlite3.connect(loaded)) as connection:
            connection.execute('CREATE TABLE "g.a" (id INTEGER PRIMARY KEY)')
            connection.executemany('INSERT INTO "g.a" VALUES (?)', other.ask("SELECT id FROM g.a"))
            connection.commit()
        dumped = BinlogReplica(f"sqlite:///{loaded}", BinlogSettings(url=other.url, start=other.place()))
        other.run("INSERT INTO g.a VALUES (3)")
        dumped.catch_up()
        with closing(sqlite3.connect(loaded)) as connection:
            assert connection.execute('SELECT id FROM "g.a"').fetchall() == [(1,), (2,), (3,)]
