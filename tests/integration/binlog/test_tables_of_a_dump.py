"""The table check, where the sink's tables came with a dump: upstream's catalogue explains what a binlog does not show."""

import pytest

from applier.model.errors import NeedsOperator
from applier.sources.binlog.settings import BinlogSettings
from tests.integration.mysql_replica import read, run
from tests.rig.binlog_replica import BinlogReplica

pytestmark = pytest.mark.timeout(120)

COLLATION = "CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
TABLES = (
    "CREATE DATABASE shop",
    f"CREATE TABLE shop.customer (name VARCHAR(20) {COLLATION} PRIMARY KEY, mail VARCHAR(40) {COLLATION}, UNIQUE KEY (mail))",
    f"CREATE TABLE shop.item (id INT PRIMARY KEY, customer VARCHAR(20) {COLLATION})",
    "INSERT INTO shop.customer VALUES ('Ann', 'a@x'), ('Bob', 'b@x')",
)


def loaded(primary, sink) -> BinlogReplica:
    """Give both the same tables and rows, and begin behind them."""
    primary.run(*TABLES)
    run(sink, *TABLES)
    return BinlogReplica(sink, BinlogSettings(url=primary.url, start=primary.place()))


def test_upstreams_unique_keys_and_collations_are_no_difference(primary, mariadb_sink):
    replica = loaded(primary, mariadb_sink)
    primary.run("UPDATE shop.customer SET name = 'BOB', mail = 'B@x' WHERE name = 'bob'", "DELETE FROM shop.customer WHERE name = 'ann'")
    replica.catch_up()
    assert read(mariadb_sink, "SELECT name, mail FROM shop.customer") == [("BOB", "B@x")]


def test_a_unique_key_that_upstream_lacks_stops_the_replica(primary, mariadb_sink):
    replica = loaded(primary, mariadb_sink)
    run(mariadb_sink, "ALTER TABLE shop.item ADD UNIQUE KEY only_here (customer)")
    primary.run("INSERT INTO shop.item VALUES (1, 'Bob'), (2, 'Bob')")
    with pytest.raises(NeedsOperator, match="unique index only_here"):
        replica.catch_up()


def test_two_tables_whose_names_differ_only_in_case_stop_the_replica(primary, mariadb_sink):
    replica = loaded(primary, mariadb_sink)
    # The second is not logged: its CREATE TABLE would find the first one in the sink, and stop.
    unlogged = ("SET SESSION sql_log_bin = 0", "CREATE TABLE shop.part (id INT PRIMARY KEY)")
    primary.run("CREATE TABLE shop.Part (id INT PRIMARY KEY)", *unlogged)
    primary.run("INSERT INTO shop.Part VALUES (1)", "INSERT INTO shop.part VALUES (1), (2)")
    with pytest.raises(NeedsOperator, match="differ only in case"):
        replica.catch_up()
