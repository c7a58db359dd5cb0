"""The bookkeeping schema on real servers: migrations give exactly sql/schema.sql, and sql/grants.sql suffices for everything."""

import threading
from collections.abc import Iterator

import pytest

from applier.model.errors import FatalSinkError
from applier.model.events import TableName
from applier.sinks.mysql.sink import MysqlSink
from applier.sinks.progress import WriteState
from tests.integration.mysql_replica import SHOP, Replica, read, replica, run, settings
from tests.rig.clean_server import drop_bookkeeping
from tests.rig.least_privilege import make_user, statements_of


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    drop_bookkeeping(mysql_url, SHOP)
    yield mysql_url
    drop_bookkeeping(mysql_url, SHOP)


def definitions(url: str) -> dict[str, str]:
    tables = [row[0] for row in read(url, "SHOW TABLES FROM applier")]
    shown = {table: str(read(url, f"SHOW CREATE TABLE applier.{table}")[0][1]) for table in tables}
    # MySQL names a column's character set beside its collation if the statement that made it did.
    return {table: text.replace(" CHARACTER SET utf8mb4 COLLATE ", " COLLATE ") for table, text in shown.items()}


def test_migrations_from_zero_give_exactly_the_schema(url: str) -> None:
    with MysqlSink(settings(url)) as sink:
        assert sink.migrate() == ("0001", "0002", "0003", "0004", "0006", "0007", "0008", "0009", "0010", "0011")
        assert sink.migrate() == ()
    migrated = definitions(url), read(url, "SHOW CREATE SCHEMA applier")
    run(url, "DROP SCHEMA applier", *statements_of("schema.sql"))
    assert (definitions(url), read(url, "SHOW CREATE SCHEMA applier")) == migrated


def test_two_runs_that_migrate_at_once_do_it_once(url: str) -> None:
    results: list[tuple[str, ...]] = []

    def migrate() -> None:
        with MysqlSink(settings(url, lock_timeout_s=20)) as sink:
            results.append(tuple(sink.migrate()))

    threads = [threading.Thread(target=migrate) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == [(), (), ("0001", "0002", "0003", "0004", "0006", "0007", "0008", "0009", "0010", "0011")]


@pytest.fixture
def least(url: str) -> str:
    """The user of sql/grants.sql, without the optional privilege."""
    return make_user(url, user="applier_least", without="PROCESS")


def exercise(shop: Replica) -> None:
    """Do what needs the privileges on a replicated schema."""
    shop.ddl(f"CREATE DATABASE {SHOP}")
    shop.ddl("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "t")
    shop.ddl("CREATE INDEX k ON t (v)", "t")
    shop.ddl("ALTER TABLE t ADD COLUMN c INT", "t")
    shop.ddl("CREATE VIEW w AS SELECT id FROM t", "w")
    shop.ddl("DROP VIEW w", "w")
    for statement in (f"DELETE FROM {SHOP}.t WHERE id = 1", f"REPLACE INTO {SHOP}.t VALUES (1, 2, 3)"):
        outcome = shop.write(statement)
        if outcome.error is not None:
            raise outcome.error
    assert shop.sink.tables_with_rows([TableName(SHOP, "T")])
    shop.ddl("TRUNCATE TABLE t", "t")
    shop.ddl("RENAME TABLE t TO u", "u")
    shop.ddl("DROP TABLE u", "u")


def test_the_least_privileges_suffice(least: str) -> None:
    with replica(least) as shop:
        exercise(shop)
        shop.fence = shop.sink.raise_epoch().fence
        assert shop.write().state is WriteState.COMMITTED
        with MysqlSink(settings(least)) as other:
            other.acquire(take_over=True)


NEEDED = ("SELECT", "INSERT", "DELETE", "CREATE", "ALTER", "INDEX", "DROP", "CREATE VIEW", "SHOW VIEW")
"""All but three. REFERENCES: MariaDB does not ask for it; MySQL does, for foreign keys. TRIGGER: the table check asks for it
(test_table_check.py), no statement does. UPDATE: rows of a binlog whose foreign keys have actions (binlog/test_foreign_key_actions.py)."""


def test_what_is_granted_on_a_replicated_schema_is_what_is_shown_to_be_needed() -> None:
    granted = [text for text in statements_of("grants.sql") if " shop.*" in text]
    names = [name.strip() for text in granted for name in text.removeprefix("GRANT ").partition(" ON ")[0].split(",")]
    assert sorted(names) == sorted([*NEEDED, "REFERENCES", "TRIGGER", "UPDATE"])


@pytest.mark.parametrize("privilege", NEEDED)
def test_a_missing_privilege_is_named_with_its_remedy(least: str, url: str, privilege: str) -> None:
    name, _, host = str(read(least, "SELECT CURRENT_USER()")[0][0]).partition("@")
    run(url, "REVOKE {} ON `{}`.* FROM '{}'@'{}'".format(privilege, SHOP.replace("_", "\\_"), name, host))
    with replica(least) as shop, pytest.raises(FatalSinkError) as caught:
        exercise(shop)
    assert "denied" in caught.value.message
    assert "`applier grants sink`" in caught.value.remedy


def test_who_may_only_look_sees_the_bookkeeping_and_changes_nothing(url: str) -> None:
    with replica(url) as shop:
        shop.ddl(f"CREATE DATABASE {SHOP}")
        with MysqlSink(settings(make_user(url, "grants_status.sql", user="applier_looking"))) as looking:
            assert looking.load() == shop.sink.load()
            assert looking.bookkeeping.ledger() == shop.sink.bookkeeping.ledger()
            assert looking.bookkeeping.overview().owner is not None
            with pytest.raises(FatalSinkError, match="denied"):
                looking.acquire(take_over=True)
            assert looking.describe([TableName(SHOP, "t")]) == {}
        assert shop.write().state is WriteState.COMMITTED


def test_the_dialect_knows_the_servers_largest_packet(url: str) -> None:
    with MysqlSink(settings(url)) as sink:
        assert sink.dialect.max_packet_bytes == read(url, "SELECT @@max_allowed_packet")[0][0]
