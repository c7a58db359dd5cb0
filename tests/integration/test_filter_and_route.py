"""A filter and routes on MariaDB and MySQL: statements of each kind run under other names, and the catalogue shows them."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from applier.sinks.ledger_entry import DdlState
from tests.builders.handwritten import KEY, ONE, PLAIN, ddl, everywhere, log_of, resolved, row
from tests.builders.wire import column, head
from tests.integration.mysql_replica import read
from tests.rig.clean_server import clean_server
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import Replica
from tests.rig.selected import selection_of

ARCHIVE = "applier_test_archive"
SELECTED = selection_of(["shop.*", "!shop.log_*"], [("shop.*", f"{ARCHIVE}.{{table}}_v2")])


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean_server(mysql_url, ARCHIVE)
    yield mysql_url
    clean_server(mysql_url, ARCHIVE)


def numbered(ts, key, table="orders"):
    return row(ts, table, id=column(3, KEY, key), n=column(3, PLAIN, ts))


HISTORY = [
    *everywhere((head(5, table="", t=2), {"q": "CREATE DATABASE `shop`", "t": 1})),
    *everywhere(ddl(10, "CREATE TABLE `orders` (`id` INT PRIMARY KEY,`n` INT)")),
    *everywhere(ddl(11, "CREATE TABLE `log_1` (`id` INT PRIMARY KEY,`n` INT)", table="log_1")),
    *everywhere(
        ddl(
            12,
            "CREATE TABLE `items` (`id` INT PRIMARY KEY,`n` INT,CONSTRAINT `fk` FOREIGN KEY (`n`) REFERENCES `orders`(`id`))",
            table="items",
        )
    ),
    *everywhere(ddl(13, "CREATE TABLE `copies` LIKE `orders`", table="copies")),
    (ONE, numbered(20, 1)),
    (ONE, numbered(21, 1, "log_1")),
    (ONE, numbered(22, 2, "copies")),
    *everywhere(ddl(30, "ALTER TABLE `shop`.`orders` ADD COLUMN `x` INT DEFAULT 7", t=5)),
    *everywhere(ddl(31, "CREATE INDEX `n` ON `orders` (`n`)", t=7)),
    *everywhere(ddl(32, "RENAME TABLE `copies` TO `bills`", table="bills", t=14)),
    *everywhere(
        ddl(
            33,
            "CREATE ALGORITHM = UNDEFINED DEFINER = CURRENT_USER SQL SECURITY INVOKER VIEW `few` (`id`, `n`) AS "
            "SELECT `shop`.`orders`.`id` AS `id`,`b`.`n` AS `n` FROM `shop`.`orders` JOIN `shop`.`bills` AS `b` "
            "WHERE `shop`.`orders`.`id`<`b`.`id`",
            table="few",
            t=21,
        )
    ),
    *everywhere(ddl(34, "TRUNCATE TABLE `log_1`", table="log_1", t=11)),
    (ONE, numbered(40, 3, "bills")),
    *everywhere(resolved(50)),
]
END = [
    *everywhere(ddl(60, "DROP TABLE `items`,`bills`", table="items", t=4)),
    *everywhere(resolved(70)),
]


def test_statements_of_each_kind_run_under_the_names_of_their_routes(url: str) -> None:
    source = FakeSource(log_of(*HISTORY))
    source.selection = SELECTED
    replica = Replica(url, source, name="routes")
    replica.catch_up()
    assert read(url, f"SELECT * FROM {ARCHIVE}.orders_v2") == [(1, 20, 7)]
    assert read(url, f"SELECT * FROM {ARCHIVE}.bills_v2 ORDER BY id") == [(2, 22), (3, 40)]
    assert read(url, f"SELECT * FROM {ARCHIVE}.few_v2 ORDER BY n") == [(1, 22), (1, 40)]
    tables = f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{ARCHIVE}' ORDER BY 1"
    assert [name for (name,) in read(url, tables)] == ["bills_v2", "few_v2", "items_v2", "orders_v2"]
    referenced = f"SELECT referenced_table_name FROM information_schema.referential_constraints WHERE constraint_schema = '{ARCHIVE}'"
    assert read(url, referenced) == [("orders_v2",)]
    skipped = {entry.ddl.commit_ts for entry in replica.ledger() if entry.state is DdlState.SKIPPED}
    assert skipped == {11, 34}
    # The next start finds the tables where they are, and runs nothing twice.
    source.extend(log_of(*HISTORY[:12], *END))
    replica.catch_up()
    assert [name for (name,) in read(url, tables)] == ["few_v2", "orders_v2"]


def test_a_schema_that_lies_apart_is_dropped_under_its_name(url: str) -> None:
    dropped = [*everywhere((head(60, table="", t=2), {"q": "DROP DATABASE `shop`", "t": 2})), *everywhere(resolved(70))]
    source = FakeSource(log_of(*HISTORY, *dropped))
    source.selection = replace(SELECTED, tables=selection_of(["shop.*"]).tables)
    Replica(url, source, name="routes").catch_up()
    assert read(url, f"SELECT schema_name FROM information_schema.schemata WHERE schema_name = '{ARCHIVE}'") == []


def rotated(ts: int, rename: str, made: str = "(`id` INT PRIMARY KEY,`n` INT)") -> list:
    return [
        (ONE, numbered(ts, ts)),
        *everywhere(ddl(ts + 1, "DROP TABLE IF EXISTS `log_orders`", table="log_orders", t=4)),
        *everywhere(ddl(ts + 2, rename, table="log_orders", t=14)),
        *everywhere(ddl(ts + 3, f"CREATE TABLE `orders` {made}")),
    ]


def test_a_log_that_rotates_out_of_the_filter_keeps_every_row(url: str) -> None:
    both = ["RENAME TABLE `shop`.`orders` TO `shop`.`log_orders`", "ALTER TABLE `orders` RENAME TO `log_orders`"]
    source = FakeSource(
        log_of(
            *HISTORY[:4],
            *rotated(20, both[0]),
            *rotated(30, both[1], "LIKE `log_orders`"),
            *rotated(40, both[0]),
            *everywhere(resolved(50)),
        )
    )
    source.selection = SELECTED
    Replica(url, source, name="rotated").catch_up()
    names = ["log_orders_v2_32", "log_orders_v2_42", "log_orders_v2"]
    assert [read(url, f"SELECT n FROM {ARCHIVE}.{name}") for name in names] == [[(20,)], [(30,)], [(40,)]]
    assert read(url, f"SELECT n FROM {ARCHIVE}.orders_v2") == []
