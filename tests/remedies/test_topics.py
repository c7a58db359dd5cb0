"""What a topic brings that a replica cannot follow as it is configured: each remedy is done, and the replica goes on."""

import pytest

from tests.builders.handwritten import KEY, ddl, resolved, row
from tests.builders.wire import column, text
from tests.rig.walked_feed import WalkedFeed, begun, order

START = 458173202432000001


@pytest.fixture
def feed(newcomer):
    return begun(newcomer)


def goes_on(newcomer, feed, upto=40):
    feed.everywhere(resolved(upto))
    newcomer.succeeds("catchup")
    return newcomer.rows()


def test_a_missed_ddl_is_skipped_by_the_command_of_the_remedy(newcomer, feed):
    feed.everywhere(ddl(15, "ALTER TABLE orders COMMENT = 'mine'", t=5))
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    newcomer.follow(newcomer.fails("catchup", 6, "commit_ts: 15"), only="ddl skip")
    assert goes_on(newcomer, feed) == [(1, "new")]


def test_ddls_of_two_topics_whose_order_is_unknown_are_settled_by_hand(newcomer):
    feed, other = WalkedFeed(newcomer), WalkedFeed(newcomer)
    newcomer.change({"source.topics": [feed.topic, other.topic]})
    feed.begin()
    other.everywhere(resolved(20))
    newcomer.succeeds("catchup")
    feed.everywhere(ddl(23, "ALTER TABLE orders ADD COLUMN a INT", t=5), resolved(30))
    other.everywhere(ddl(23, "CREATE TABLE copy LIKE orders", "copy"), resolved(30))
    newcomer.fails("catchup", 6, "several orders")
    newcomer.sql('ALTER TABLE "shop.orders" ADD COLUMN a INT', 'CREATE TABLE "shop.copy" (id INT PRIMARY KEY, note VARCHAR(20), a INT)')
    for table in ("orders", "copy"):
        newcomer.succeeds(f"ddl skip --ts 23 --table shop.{table}")
    newcomer.succeeds("catchup")


def test_a_topic_with_a_history_is_removed(newcomer, feed):
    other = WalkedFeed(newcomer)
    other.everywhere(order(11, 5), resolved(20))
    newcomer.change({"source.topics": [feed.topic, other.topic]})
    newcomer.fails("catchup", 6, "missed its history")
    newcomer.change({"source.topics": [feed.topic]})
    feed.write(order(24, 1))
    assert goes_on(newcomer, feed) == [(1, "new")]


def test_a_topic_that_was_removed_is_put_back(newcomer, feed):
    other = WalkedFeed(newcomer)
    other.everywhere(resolved(20))
    newcomer.fails("catchup", 6, "is gone")
    newcomer.change({"source.topics": [feed.topic]})
    feed.write(order(24, 1))
    assert goes_on(newcomer, feed) == [(1, "new")]


def test_a_table_with_rows_becomes_a_replica_that_begins_at_its_dump(newcomer, feed):
    newcomer.sql("INSERT INTO \"shop.orders\" VALUES (7, 'dumped')", "DELETE FROM applier_progress", "DELETE FROM applier_ddl_ledger")
    feed.write(order(START + 4, 1))
    feed.everywhere(resolved(START + 10))
    newcomer.change({"name": "second"})
    newcomer.fails("catchup", 6, "already has rows")
    newcomer.change({"name": "third", "source.start_ts": START})
    newcomer.fails("catchup", 6, "no load is recorded")
    newcomer.succeeds("load --declared")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new"), (7, "dumped")]


def test_an_update_that_changes_its_key_is_written_in_order(newcomer, feed):
    newcomer.change({"sink.consistency": "row", "source.dispatcher": "index-value"})
    feed.write(order(24, 1))
    head, body = order(25, 2)
    feed.write((head, body | {"p": {"id": column(3, KEY, 1), "note": text("new")}}))
    feed.everywhere(resolved(30))
    said = newcomer.fails("catchup", 6, "changed its key")
    newcomer.change(said.settings)
    assert goes_on(newcomer, feed) == [(2, "new")]


@pytest.mark.parametrize(
    ("settings", "query", "name", "ddl_type"),
    [
        ({}, "RECOVER TABLE orders", "orders", 25),
        ({"source.tables": ["*.*", "!shop.hidden"]}, "CREATE VIEW seen AS SELECT * FROM hidden", "seen", 21),
        ({"source.route": [{"from": "shop.*", "to": "shop.{table}"}]}, "ALTER TABLE orders IMAGINE", "orders", 5),
    ],
    ids=["rows that come back", "a view of a table that is left out", "names that cannot be changed"],
)
def test_a_ddl_is_done_by_hand_and_skipped_by_the_command_of_the_remedy(settings, query, name, ddl_type, newcomer, feed):
    if settings:
        newcomer.change(settings)
    feed.everywhere(ddl(23, query, table=name, t=ddl_type))
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    newcomer.follow(newcomer.fails("catchup", 6, "remedy: "), only="ddl skip")
    assert goes_on(newcomer, feed) == [(1, "new")]


def test_a_table_that_was_left_out_stays_out(newcomer):
    feed = WalkedFeed(newcomer)
    newcomer.change({"source.tables": ["*.*", "!shop.orders"]})
    feed.begin()
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    newcomer.succeeds("catchup")
    newcomer.change({"source.tables": None})
    feed.write(order(34, 2))
    feed.everywhere(resolved(40))
    newcomer.fails("catchup", 6, "was excluded until now")
    newcomer.change({"source.tables": ["*.*", "!shop.orders"]})
    newcomer.succeeds("catchup")


def test_two_tables_get_names_of_their_own(newcomer, feed):
    newcomer.change({"source.route": [{"from": "shop.*", "to": "shop.orders"}]})
    feed.everywhere(ddl(23, "CREATE TABLE other (id INT PRIMARY KEY, note VARCHAR(20))", table="other"))
    feed.write(order(24, 1), row(25, "other", id=column(3, KEY, 2), note=text("new")))
    feed.everywhere(resolved(30))
    newcomer.fails("catchup", 6, "would be one in the sink")
    newcomer.change({"source.route": [{"from": "shop.*", "to": "{schema}.{table}"}]})
    assert goes_on(newcomer, feed) == [(1, "new")]
    assert newcomer.rows("shop.other") == [(2, "new")]
