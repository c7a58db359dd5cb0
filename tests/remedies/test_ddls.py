"""DDLs and tables that the sink cannot follow: what an operator does by hand, and the command that settles it."""

import pytest

from tests.builders.handwritten import ddl, resolved, row
from tests.builders.wire import column, text
from tests.rig.walked_feed import begun, order

TABLE = '"shop.orders"'


@pytest.fixture
def feed(newcomer):
    return begun(newcomer)


def stopped(newcomer, feed, query, ddl_type, *words, code=6):
    """Let upstream send a DDL that stops the replica, and a row after it."""
    feed.everywhere(ddl(23, query, t=ddl_type))
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    return newcomer.fails("catchup", code, *words, "commit_ts: 23")


@pytest.mark.parametrize(
    ("query", "ddl_type"),
    [
        ("ALTER TABLE orders ADD COLUMN extra BIGINT AS (INET_ATON(note)) VIRTUAL", 5),
        ("ALTER TABLE orders TRUNCATE PARTITION p0", 11),
        ("ALTER TABLE orders EXCHANGE PARTITION p0 WITH TABLE others", 42),
        ("ALTER TABLE orders ADD COLUMN note VARCHAR(20)", 5),
        ("ALTER TABLE orders DROP COLUMN absent", 6),
    ],
)
def test_a_ddl_that_is_done_by_hand_is_skipped_by_the_command_of_the_remedy(query, ddl_type, newcomer, feed):
    said = stopped(newcomer, feed, query, ddl_type)
    newcomer.follow(said, only="ddl skip")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new")]


def test_a_ddl_that_depends_on_the_zone_runs_when_the_zone_is_known(newcomer, feed):
    feed.write(order(22, 1))
    said = stopped(newcomer, feed, "ALTER TABLE orders ADD COLUMN at DATETIME DEFAULT CURRENT_TIMESTAMP", 5, "time zone")
    assert "source.ddl_time_zone" in said.remedy
    newcomer.change({"source.ddl_time_zone": "+08:00"})
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new", "1970-01-01 08:00:00")]


def test_a_stored_column_whose_values_only_upstream_knows_is_a_plain_one_that_is_made_by_hand(newcomer, feed):
    feed.write(order(21, 2))
    feed.everywhere(resolved(22))
    newcomer.succeeds("catchup")
    said = stopped(newcomer, feed, "ALTER TABLE orders ADD COLUMN extra BIGINT AS (INET_ATON(note)) STORED", 5)
    newcomer.sql(f"ALTER TABLE {TABLE} ADD COLUMN extra INTEGER")
    newcomer.follow(said, only="ddl skip")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new", None), (2, "new", None)]


def test_a_conversion_that_servers_do_otherwise_is_made_by_hand(newcomer, feed):
    newcomer.change({"source.ddl_time_zone": "UTC"})
    feed.write(order(22, 1))
    said = stopped(newcomer, feed, "ALTER TABLE orders ADD COLUMN at DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3)", 5, "fraction")
    newcomer.follow(said, only="ddl skip")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new")]
    assert "--fix-sql" in said.remedy


def test_a_type_of_ddl_that_stops_is_applied_by_the_setting_of_the_remedy(newcomer, feed):
    newcomer.change({"ddl.truncate_table": "stop"})
    said = stopped(newcomer, feed, "TRUNCATE TABLE orders", 11)
    newcomer.change({f"ddl.{name}": value for name, value in said.settings.items()})
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new")]


def test_a_table_that_was_altered_by_hand_gets_upstreams_column_back(newcomer, feed):
    newcomer.sql(f"ALTER TABLE {TABLE} RENAME COLUMN note TO memo")
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    newcomer.fails("catchup", 4, "table: shop.orders")
    newcomer.sql(f"ALTER TABLE {TABLE} RENAME COLUMN memo TO note")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new")]


def test_a_table_that_was_dropped_by_hand_is_created_again(newcomer, feed):
    newcomer.sql(f"ALTER TABLE {TABLE} RENAME TO kept")
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    newcomer.fails("catchup", 4, "table: shop.orders")
    newcomer.sql(f"ALTER TABLE kept RENAME TO {TABLE}")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new")]


@pytest.fixture
def with_trigger(newcomer, feed):
    newcomer.sql(f"CREATE TRIGGER mine AFTER INSERT ON {TABLE} BEGIN SELECT 1; END")
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    return newcomer.fails("catchup", 6, "trigger")


def test_a_trigger_is_dropped(newcomer, with_trigger):
    newcomer.sql("DROP TRIGGER mine")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new")]


def test_a_trigger_is_accepted(newcomer, with_trigger):
    newcomer.change({"sink.accept": {"shop.orders": ["trigger"]}})
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new")]


def test_a_unique_index_that_upstream_lacks_is_dropped(newcomer, feed):
    newcomer.sql(f"CREATE UNIQUE INDEX mine ON {TABLE} (note)")
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    newcomer.fails("catchup", 6, "unique")
    newcomer.sql("DROP INDEX mine")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new")]


@pytest.fixture
def with_refused_row(newcomer, feed):
    """A row that a trigger of the sink refuses."""
    newcomer.change({"sink.accept": {"shop.orders": ["trigger"]}})
    newcomer.sql(f"CREATE TRIGGER mine BEFORE INSERT ON {TABLE} WHEN NEW.note = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END")
    feed.write(order(24, 1), order(24, 2, "bad"))
    feed.everywhere(resolved(30))
    return newcomer.fails("catchup", 4, "offset: ")


def test_a_row_that_the_sink_refuses_is_skipped_by_the_command_of_the_remedy(newcomer, with_refused_row):
    newcomer.follow(with_refused_row, only="skip")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new")]


def test_a_row_that_the_sink_refuses_is_quarantined_by_the_setting_of_the_remedy(newcomer, with_refused_row):
    newcomer.change(with_refused_row.settings)
    assert "1 event in quarantine" in newcomer.succeeds("catchup").stdout
    assert newcomer.rows() == [(1, "new")]


def test_a_table_without_a_key_is_replicated_by_the_setting_of_the_remedy(newcomer, feed):
    feed.everywhere(ddl(23, "CREATE TABLE plain (id INT, note VARCHAR(20))", table="plain"))
    feed.write(row(24, table="plain", id=column(3, 65, 1), note=text("new")))
    feed.everywhere(resolved(30))
    said = newcomer.fails("catchup", 6, "table: shop.plain")
    newcomer.change(said.settings)
    newcomer.succeeds("catchup")
    assert newcomer.rows("shop.plain") == [(1, "new")]
