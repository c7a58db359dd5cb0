"""DDLs on a real server: what upstream ignores makes no difference to the sink."""

from contextlib import closing

import pytest

from applier.model.errors import NeedsOperator
from applier.sinks.ledger_entry import DdlState
from tests.integration.mysql_replica import SHOP, Replica, read, replica, run
from tests.rig.mysql_oracle import connect


def engines(url: str) -> dict[str, str]:
    return dict(read(url, f"SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{SHOP}'"))  # type: ignore[arg-type]


@pytest.mark.parametrize("engine", ["MyISAM", "Aria", "MEMORY", "CSV", "ARCHIVE", "NoSuchEngine"])
def test_a_segment_that_fails_leaves_nothing_in_a_table_that_upstream_made_on_another_engine(shop: Replica, url: str, engine: str) -> None:
    shop.ddl(f"CREATE TABLE t (id INT PRIMARY KEY) ENGINE = {engine}", "t")
    outcome = shop.write(f"REPLACE INTO {SHOP}.t (id) VALUES (1)", f"REPLACE INTO {SHOP}.t (id) VALUES (NULL)")
    assert outcome.state == "failed"
    assert read(url, f"SELECT id FROM {SHOP}.t") == []
    assert engines(url) == {"t": "InnoDB"}


def test_a_table_without_an_engine_does_not_take_the_servers_default(url: str, least_privileged_url: str) -> None:
    run(url, f"CREATE SCHEMA {SHOP}")
    with closing(connect(url)) as administrator, administrator.cursor() as cursor:
        cursor.execute("SELECT @@GLOBAL.default_storage_engine")
        before = cursor.fetchone()[0]
        cursor.execute("SET GLOBAL default_storage_engine = MyISAM")
        try:
            with replica(least_privileged_url) as shop:
                shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)", "t")
                shop.ddl("ALTER TABLE t ENGINE = MyISAM", "t")
                shop.ddl("CREATE TABLE l LIKE t", "l")
        finally:
            cursor.execute(f"SET GLOBAL default_storage_engine = {before}")
    assert engines(url) == {"t": "InnoDB", "l": "InnoDB"}


def test_every_clause_that_tidb_ignores_is_taken_by_the_server_as_tidb_takes_it(shop: Replica, url: str) -> None:
    shop.ddl(
        "CREATE TABLE t (id BIGINT AUTO_RANDOM(5), c INT CHECK (c > 0) STORAGE DISK, d TEXT, e INT REFERENCES p (id) ON DELETE CASCADE, "
        "CONSTRAINT positive CHECK (c < 9), FULLTEXT KEY f (d), KEY i (c) USING RTREE INVISIBLE, PRIMARY KEY (id) CLUSTERED) ENGINE=CSV "
        "ROW_FORMAT=FIXED KEY_BLOCK_SIZE=3, DATA DIRECTORY='/nowhere', TABLESPACE none, COMPRESSION='x' ENCRYPTION='Y' SHARD_ROW_ID_BITS=4",
        "t",
    )
    shop.ddl("ALTER TABLE t ADD x INT, ALGORITHM=INSTANT, LOCK=NONE, FORCE, ENGINE=MyISAM", "t")
    shop.ddl("ALTER TABLE t TTL_ENABLE='OFF'", "t")
    shop.ddl("ALTER TABLE t ADD COLUMN IF NOT EXISTS y INT, ALTER INDEX i VISIBLE", "t")
    shop.ddl("CREATE INDEX IF NOT EXISTS j ON t (x) USING HASH LOCK=EXCLUSIVE", "t")
    shop.ddl("DROP INDEX IF EXISTS i ON t ALGORITHM=INPLACE", "t")
    shop.ddl(
        "CREATE TABLE p (id INT PRIMARY KEY) PARTITION BY RANGE (id) SUBPARTITION BY LINEAR HASH (id) SUBPARTITIONS 2 (PARTITION p0 "
        "VALUES LESS THAN (10) ENGINE=MyISAM (SUBPARTITION a, SUBPARTITION b), PARTITION p1 VALUES LESS THAN MAXVALUE DATA DIRECTORY='/x')",
        "p",
    )
    assert shop.write(f"REPLACE INTO {SHOP}.t (id, c) VALUES (1, 90)", f"REPLACE INTO {SHOP}.p VALUES (1)").state == "committed"
    assert read(url, f"SELECT INDEX_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = '{SHOP}' ORDER BY TABLE_NAME, 1") == [
        ("PRIMARY",), ("j",), ("PRIMARY",)
    ]  # fmt: skip
    assert read(url, f"SELECT COUNT(*) FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = '{SHOP}'") == [(0,)]
    assert read(url, f"SELECT SUBPARTITION_NAME FROM information_schema.PARTITIONS WHERE TABLE_NAME = 'p' AND TABLE_SCHEMA = '{SHOP}'") == [
        (None,), (None,)
    ]  # fmt: skip


@pytest.mark.parametrize("query", ["ALTER TABLE k TRUNCATE PARTITION p0", "ALTER TABLE k EXCHANGE PARTITION p0 WITH TABLE x"])
def test_a_partition_that_holds_other_rows_than_upstreams_is_not_emptied_and_not_exchanged(shop: Replica, url: str, query: str) -> None:
    shop.ddl("CREATE TABLE k (id INT PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 2", "k")
    shop.ddl("CREATE TABLE x (id INT PRIMARY KEY)", "x")
    run(url, f"INSERT INTO {SHOP}.k VALUES (1), (2), (3), (4)")
    with pytest.raises(NeedsOperator, match="hold other rows"):
        shop.ddl(query, "k")
    assert read(url, f"SELECT COUNT(*) FROM {SHOP}.k") == [(4,)]
    assert [entry.state for entry in shop.sink.bookkeeping.ledger()] == [DdlState.DONE] * 2


@pytest.mark.parametrize("partitions", ["ALL", "p1, P0"])
def test_all_partitions_are_emptied_wherever_their_rows_lie(shop: Replica, url: str, partitions: str) -> None:
    shop.ddl("CREATE TABLE k (id INT PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 2", "k")
    run(url, f"INSERT INTO {SHOP}.k VALUES (1), (2), (3), (4)")
    shop.ddl(f"ALTER TABLE k TRUNCATE PARTITION {partitions}", "k")
    assert read(url, f"SELECT COUNT(*) FROM {SHOP}.k") == [(0,)]


def test_latin1_of_tidb_holds_every_character(shop: Replica, url: str) -> None:
    shop.ddl("CREATE TABLE l (id VARCHAR(20) PRIMARY KEY, c VARCHAR(3000), KEY (c)) CHARSET=latin1", "l")
    shop.ddl("ALTER TABLE l ADD d VARCHAR(9) CHARACTER SET latin1 DEFAULT '日本'", "l")
    assert shop.write(f"REPLACE INTO {SHOP}.l (id, c) VALUES ('日', '本')").state == "committed"
    assert read(url, f"SELECT id, c, d FROM {SHOP}.l") == [("日", "本", "日本")]


def test_a_partition_by_hash_is_emptied(shop: Replica, url: str) -> None:
    shop.ddl("CREATE TABLE h (id INT PRIMARY KEY) PARTITION BY LINEAR HASH (id) PARTITIONS 3", "h")
    run(url, f"INSERT INTO {SHOP}.h VALUES (0), (1), (2), (3), (5)")
    shop.ddl("ALTER TABLE h TRUNCATE PARTITION p2", "h")
    assert read(url, f"SELECT id FROM {SHOP}.h ORDER BY id") == [(0,), (1,), (3,)]
