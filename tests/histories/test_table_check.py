"""What a SQLite sink's tables have and upstream's lack stops the replica; what upstream's statements made does not."""

import sqlite3

import pytest

from applier.model.errors import NeedsOperator
from applier.planner.table_check import DifferenceKind
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica

TEXT, NULLABLE = 15, 64
BEGINNING = (*everywhere(CREATE_SCHEMA), *everywhere(ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, code VARCHAR(20), n INT)")))


def order(ts, number, code, **more):
    return row(ts, id=column(3, KEY, number), code=column(TEXT, NULLABLE, code), n=column(3, PLAIN, 0), **more)


ROWS = ((ONE, order(20, 1, "same")), (ONE, order(20, 2, "same")), *everywhere(resolved(30)))


def replica_of(tmp_path, *placed, prepare=(), **more):
    source = FakeSource(log_of(*BEGINNING, *everywhere(resolved(11)), *placed), hidden=True)
    source.advance(len(BEGINNING) + 2)
    replica = sqlite_replica(tmp_path, source, **more)
    replica.catch_up()
    source.advance(len(placed))
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        for statement in prepare:
            connection.execute(statement)
    return replica


BY_HAND = [
    pytest.param("unique_index", ['CREATE UNIQUE INDEX by_hand ON "shop.orders" (code)'], id="unique index"),
    pytest.param("unique_index", ['CREATE UNIQUE INDEX by_hand ON "shop.orders" (code) WHERE n = 0'], id="partial unique index"),
    pytest.param("trigger", ['CREATE TRIGGER audit AFTER INSERT ON "shop.orders" BEGIN UPDATE "shop.orders" SET n = 7; END'], id="trigger"),
    pytest.param(
        "view",
        ['ALTER TABLE "shop.orders" RENAME TO "shop.others"', 'CREATE VIEW "shop.orders" AS SELECT * FROM "shop.others"'],
        id="view",
    ),
    pytest.param("collation", ['CREATE UNIQUE INDEX by_hand ON "shop.orders" (code COLLATE NOCASE)'], id="NOCASE"),
    pytest.param("collation", ['CREATE UNIQUE INDEX by_hand ON "shop.orders" (code COLLATE RTRIM)'], id="RTRIM"),
]


@pytest.mark.parametrize(("kind", "prepare"), BY_HAND)
def test_a_difference_stops_the_replica_before_a_row_is_written(tmp_path, kind, prepare):
    replica = replica_of(tmp_path, *ROWS, prepare=prepare)
    with pytest.raises(NeedsOperator) as caught:
        replica.catch_up()
    assert (caught.value.facts["difference"], caught.value.facts["table"]) == (kind, "shop.orders")
    assert rows_of(tmp_path) == []


def test_what_the_operator_accepts_does_not_stop(tmp_path):
    replica = replica_of(tmp_path, *ROWS, prepare=BY_HAND[0].values[1], accept={"SHOP.*": (DifferenceKind.UNIQUE_INDEX,)})
    replica.catch_up()
    assert rows_of(tmp_path) == [(2, "same", 0)]


def test_an_index_that_upstream_made_passes_although_stale_flags_do_not_show_it(tmp_path):
    add = everywhere(ddl(15, "CREATE UNIQUE INDEX u ON orders (code)", t=7))
    replica = replica_of(tmp_path, *add, (ONE, order(20, 1, "a")), (ONE, order(20, 2, "b")), *everywhere(resolved(30)))
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, "a", 0), (2, "b", 0)]


def test_a_table_that_upstream_dropped_is_no_difference(tmp_path):
    replica = replica_of(tmp_path, *everywhere(ddl(15, "DROP TABLE orders", t=4)), *everywhere(resolved(30)))
    replica.catch_up()
    replica.catch_up()


def test_a_view_that_upstream_made_is_no_difference_at_the_next_start(tmp_path):
    view = everywhere(ddl(15, "CREATE VIEW v AS SELECT id FROM orders", t=21))
    replica = replica_of(tmp_path, *view, *everywhere(resolved(30)))
    replica.catch_up()
    replica.catch_up()


def test_foreign_key_actions_of_the_file_do_nothing(tmp_path):
    prepare = [
        'CREATE TABLE items (id INTEGER PRIMARY KEY, of_order INTEGER REFERENCES "shop.orders" (id) ON DELETE CASCADE)',
        "INSERT INTO \"shop.orders\" VALUES (1, 'a', 1), (2, 'b', 2)",
        "INSERT INTO items VALUES (1, 1), (2, 2)",
    ]
    placed = ((ONE, order(20, 1, "x")), (ONE, order(20, 2, "b", deleted=True)), *everywhere(resolved(30)))
    replica_of(tmp_path, *placed, prepare=prepare).catch_up()
    assert rows_of(tmp_path) == [(1, "x", 0)]
    assert rows_of(tmp_path, "items") == [(1, 1), (2, 2)]
