"""What stops a replica as a whole: its file, its bookkeeping, its start, its quarantine, its selection."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from tests.builders.handwritten import ddl, resolved
from tests.rig.walked_feed import WalkedFeed, begun, order


@pytest.fixture
def feed(newcomer):
    return begun(newcomer)


def test_a_file_that_is_no_database_is_moved(newcomer, feed):
    Path("replica.db").rename("kept.db")
    for aside in ("replica.db-wal", "replica.db-shm"):
        Path(aside).unlink(missing_ok=True)
    Path("replica.db").write_bytes(b"not a database, but long enough to be looked at as one" * 100)
    newcomer.fails("ddl list", 4, "not an SQLite database")
    Path("replica.db").rename("other")
    Path("kept.db").rename("replica.db")
    newcomer.succeeds("ddl list")


def test_bookkeeping_of_a_newer_version_needs_that_version(newcomer, feed):
    newcomer.sql("UPDATE applier_schema_version SET version_num = '9999'")
    said = newcomer.fails("catchup", 4, "newer version")
    assert "Install the applier" in said.remedy


def test_a_ddl_that_the_filter_cannot_follow_is_done_by_hand(newcomer, feed):
    newcomer.change({"source.tables": ["*.*", "!shop.old"]})
    feed.everywhere(ddl(23, "RENAME TABLE old TO recent", table="recent", t=14))
    feed.write(order(24, 1))
    feed.everywhere(resolved(30))
    newcomer.follow(newcomer.fails("catchup", 6, "commit_ts: 23"), only="ddl skip")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new")]


def test_a_log_that_is_swapped_with_a_table_that_is_left_out_is_swapped_by_hand_and_then_chosen_under_both_names(newcomer, feed):
    swap = "RENAME TABLE orders TO log_orders, log_new TO orders"
    newcomer.change({"source.tables": ["*.*", "!shop.log_*"]})
    feed.write(order(21, 1))
    feed.everywhere(ddl(22, "CREATE TABLE log_new LIKE orders", table="log_new"), ddl(23, swap, t=47))
    feed.write(order(24, 2))
    feed.everywhere(resolved(30))
    said = newcomer.fails("catchup", 6, "shop.log_new, which becomes shop.orders")
    with closing(sqlite3.connect("replica.db")) as connection:
        ((made,),) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'shop.orders'")
    newcomer.sql('ALTER TABLE "shop.orders" RENAME TO "shop.orders_until_now"', made)
    newcomer.follow(said, only="ddl skip")
    newcomer.change({"source.tables": ["*.*", "!shop.log_*", "shop.log_new"]})
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(2, "new")]
    for ts in (31, 41):
        dropped = ddl(ts + 1, "DROP TABLE log_orders", table="log_orders", t=4)
        feed.everywhere(ddl(ts, "CREATE TABLE log_new LIKE orders", table="log_new"), dropped, ddl(ts + 2, swap, t=47))
        feed.write(order(ts + 3, ts))
        feed.everywhere(resolved(ts + 4))
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(41, "new")]
    assert newcomer.rows("shop.log_orders_43") == [(2, "new")]


@pytest.fixture
def quarantined(newcomer, feed):
    """A row in quarantine, with a later version of it in the sink."""
    newcomer.change({"sink.accept": {"shop.orders": ["trigger"]}, "sink.on_rejected_row": "quarantine"})
    newcomer.sql("CREATE TRIGGER mine BEFORE INSERT ON \"shop.orders\" WHEN NEW.note = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END")
    feed.write(order(21, 1, "bad"))
    feed.everywhere(resolved(25))
    newcomer.succeeds("catchup")
    newcomer.sql("DROP TRIGGER mine")
    feed.write(order(26, 1, "good"))
    feed.everywhere(resolved(30))
    return f"--stream {feed.topic}/0 --offset 3"


def test_an_event_with_later_ones_is_settled_by_hand(newcomer, quarantined):
    newcomer.fails(f"quarantine retry {quarantined}", 6)
    newcomer.succeeds("catchup")
    newcomer.fails(f"quarantine retry {quarantined}", 6)
    newcomer.succeeds(f"quarantine drop {quarantined}")
    assert "no quarantined event" in newcomer.succeeds("quarantine list").stdout
    newcomer.fails(f"quarantine drop {quarantined}", 2)
    newcomer.succeeds("quarantine list --all")


def test_a_paused_replica_is_resumed_by_the_command_of_the_remedy(newcomer, feed):
    newcomer.succeeds("pause")
    newcomer.follow(newcomer.fails("catchup", 6), only="resume")
    newcomer.succeeds("catchup")


def test_an_unfinished_ddl_is_needed_for_done(newcomer):
    WalkedFeed(newcomer)
    newcomer.succeeds("migrate")
    newcomer.fails("ddl skip --ts 5 --table shop.", 2)


def test_unfinished_ddls_are_settled_one_by_one_as_the_remedy_names_them(newcomer, feed):
    # As a run leaves them that was killed in the middle of each.
    newcomer.sql("UPDATE applier_ddl_ledger SET state = 'intent', ended_at = NULL")
    several = re.findall(r"--ts \d+ --table [^\s;]+", newcomer.fails("ddl done", 6).remedy.rstrip("."))
    assert len(several) == 2
    newcomer.succeeds(f"ddl done {several[0]}")
    (left,) = re.findall(r"--ts \d+ --table [^\s;]+", newcomer.fails("ddl done --ts 99", 2).remedy.rstrip("."))
    newcomer.succeeds(f"ddl done {left}")


def test_a_replica_of_another_run_is_free_after_its_end(newcomer, feed):
    newcomer.change({"run.lock_timeout_s": 0.1})
    with open_sink(SinkSettings(name="walk", url="sqlite:///replica.db", lock_timeout_s=0.1)) as sink:
        sink.acquire()
        newcomer.fails("catchup", 5)
        assert "owner" in newcomer.applier("status").stdout
    newcomer.succeeds("catchup")
