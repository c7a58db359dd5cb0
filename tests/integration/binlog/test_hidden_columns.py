"""Columns that a server makes for itself and writes to its binlog: the sink has none of them."""

from contextlib import closing

import pytest

from applier.model.errors import NeedsOperator
from applier.sources.binlog.settings import BinlogSettings
from tests.integration.mysql_replica import read
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.mysql_oracle import connect

pytestmark = pytest.mark.timeout(180)
ROWS = "SELECT id, HEX(v), n FROM hashed.long_key ORDER BY id"


@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
def test_a_long_unique_key_of_mariadb_is_replicated_without_its_hash(primaries, mariadb_sink, image):
    primary = primaries.of(Kind.MARIADB)
    primary.clear()
    replica = BinlogReplica(mariadb_sink, BinlogSettings(url=primary.url, start=primary.place()))
    primary.run(
        "CREATE DATABASE hashed",
        "CREATE TABLE hashed.long_key (id INT PRIMARY KEY, v VARCHAR(2000) UNIQUE, n INT, b TEXT UNIQUE)",
        f"SET binlog_row_image = {image}",
        "INSERT INTO hashed.long_key VALUES (1, 'one', 1, 'x'), (2, 'two', 2, 'y'), (3, NULL, 3, NULL)",
        "UPDATE hashed.long_key SET v = 'other' WHERE id = 1",
        "UPDATE hashed.long_key SET n = 7 WHERE id = 2",
        "DELETE FROM hashed.long_key WHERE id = 3",
        "ALTER TABLE hashed.long_key ADD later INT",
        "INSERT INTO hashed.long_key VALUES (4, 'one', 4, 'z', 5)",
    )
    replica.catch_up()
    assert read(mariadb_sink, ROWS) == [tuple(row) for row in primary.ask(ROWS)]
    assert "DB_ROW_HASH" not in str(read(mariadb_sink, "SHOW CREATE TABLE hashed.long_key"))


def test_a_table_with_system_versioning_that_a_dump_has_made_is_refused_by_name(primaries, mariadb_sink):
    primary = primaries.of(Kind.MARIADB)
    primary.clear()
    primary.run("CREATE DATABASE past", "CREATE TABLE past.t (id INT PRIMARY KEY) WITH SYSTEM VERSIONING")
    replica = BinlogReplica(mariadb_sink, BinlogSettings(url=primary.url, start=primary.place()))
    with closing(connect(mariadb_sink)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE past")
        cursor.execute("CREATE TABLE past.t (id INT PRIMARY KEY) WITH SYSTEM VERSIONING")
    primary.run("INSERT INTO past.t VALUES (1)")
    with pytest.raises(NeedsOperator, match="SYSTEM VERSIONING are not replicated"):
        replica.catch_up()
