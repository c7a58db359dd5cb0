"""What ``applier check`` finds: after what the remedy says, the same check finds nothing."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer

from applier.check import everything, machine
from applier.sinks.sqlite import kit as sqlite_kit
from applier.sources.ticdc.tso import ts_at
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ddl, resolved, row
from tests.builders.wire import column, integer_key
from tests.rig.walked_feed import WalkedFeed, begun

NOW = datetime.now(UTC)
TS = ts_at(NOW)
EAST_8 = (NOW + timedelta(hours=8)).strftime("%Y-%m-%d %H:%M:%S")


@pytest.fixture
def feed(newcomer, monkeypatch):
    """A topic. Java and Python are examined by tests of their own."""
    monkeypatch.setattr(everything, "examine_spark", lambda _config: ())
    return WalkedFeed(newcomer)


SETTINGS = {
    "heap": ("memory", {"spark.conf": {"spark.driver.memory": "much"}}, {"spark.conf": {"spark.driver.memory": "1g"}}),
    "large heap": ("memory", {"spark.conf": {"spark.driver.memory": "9000g"}}, {"spark.conf": {"spark.driver.memory": "16m"}}),
    "directory": ("disk", {"spark.conf": {"spark.local.dir": "file"}}, {"spark.conf": {"spark.local.dir": "directory"}}),
    "memory": ("disk", {"run.memory": "9000000GiB"}, {"run.memory": "64KiB"}),
    "topics": ("topics", {"source.topics": ["^nothing-like-it.*"]}, {"source.topics": ["^walk-.*"]}),
    "url": ("sink", {"sink.url": "sqlite:///directory"}, {"sink.url": "sqlite:///directory/file.db"}),
    "zone": ("time zone", {"source.time_zone": "UTC"}, {"source.time_zone": "+08:00"}),
    "claim check": (
        "topics: large messages",
        {"source.upstream": "mysql+pymysql://reader@tidb:4000/"},
        {"source.claim_check.storage": "/tmp"},  # noqa: S108 - not used
    ),
    "upstream": (
        "topics: large messages",
        {"source.claim_check.storage": "/tmp"},  # noqa: S108 - not used
        {"source.upstream": "mysql+pymysql://reader@tidb:4000/"},
    ),
}
"""The check, what is wrong, and what the remedy says."""


@pytest.mark.parametrize("name", SETTINGS)
def test_a_check_passes_after_the_settings_of_its_remedy(name, newcomer, feed, monkeypatch):
    check, wrong, right = SETTINGS[name]
    monkeypatch.setattr(machine, "machine_memory", lambda: 8 * 1024**3)
    feed.begin()
    feed.write(*(row(TS, id=column(3, KEY, number), at=column(7, 64, EAST_8)) for number in range(4)))
    feed.write(({"ts": TS, "scm": "shop", "tbl": "orders", "t": 1, "ccl": "s3://b/a.json"}, {"u": {"id": integer_key(1)}}))
    feed.write(({"ts": TS, "scm": "shop", "tbl": "orders", "t": 1, "ohk": True}, {"u": {"id": integer_key(1)}}))
    Path("directory").mkdir()
    Path("file").touch()
    newcomer.change(wrong)
    newcomer.finds(check)
    newcomer.change(right)
    newcomer.finds_nothing(check, beside="time zone" if check == "topics: large messages" else "")


def test_another_directory_has_space_for_spark(newcomer, feed, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1 if Path(path).name == "full" else 10**18))
    for name in ("full", "empty"):
        Path(name).mkdir()
    newcomer.change({"spark.conf": {"spark.local.dir": "full"}})
    newcomer.finds("disk", level="error")
    newcomer.change({"spark.conf": {"spark.local.dir": "empty"}})
    newcomer.finds_nothing("disk")


def test_a_file_that_may_not_be_written_is_given_to_the_applier(newcomer, feed, monkeypatch):
    # The user of the tests may be root, who may write anything.
    monkeypatch.setattr(sqlite_kit.os, "access", lambda path, mode: bool(Path(path).stat().st_mode >> 6 & mode == mode))
    Path("replica.db").touch(mode=0o400)
    newcomer.finds("sink", level="error")
    Path("replica.db").chmod(0o600)
    newcomer.finds_nothing("sink")


def test_a_check_that_took_too_long_is_done_again(newcomer, feed, monkeypatch):
    with monkeypatch.context() as hurried:
        hurried.setattr(everything, "LONGEST_S", 0.0)
        newcomer.finds("Kafka")
    feed.begin()
    newcomer.finds_nothing("Kafka")


def test_a_zone_whose_hours_repeat_needs_a_changefeed_in_utc_and_a_new_replica(newcomer, feed):
    newcomer.change({"source.time_zone": "Europe/Berlin"})
    feed.begin()
    newcomer.finds("time zone")
    begun(newcomer)
    newcomer.change({"source.time_zone": "UTC", "name": "other", "sink.url": "sqlite:///other.db"})
    newcomer.finds_nothing("time zone")
    newcomer.succeeds("catchup")


def test_an_empty_topic_is_filled_by_a_changefeed_that_runs(newcomer, feed):
    # The mock cluster makes a topic that a producer asks for.
    Producer({"bootstrap.servers": newcomer.servers}).list_topics(feed.topic, 30)
    newcomer.finds("topics: records")
    feed.begin()
    newcomer.finds_nothing("topics: records")
    newcomer.succeeds("catchup")


def test_what_an_operator_must_decide_is_shown_by_the_commands_of_the_remedies(newcomer, feed):
    feed.everywhere(CREATE_SCHEMA, ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY)"), resolved(20))
    newcomer.change({"source.on_unreadable": "quarantine"})
    feed.write_raw(b"garbage", b"garbage")
    feed.everywhere(resolved(25))
    newcomer.succeeds("catchup")
    # As a run leaves it that was killed in the middle of the DDL.
    newcomer.sql("UPDATE applier_ddl_ledger SET state = 'intent', ended_at = NULL WHERE table_name = 'orders'")
    for found in newcomer.finds("sink: replica"):
        newcomer.follow(found)
    newcomer.succeeds("ddl done")
    newcomer.succeeds(f"quarantine drop --stream {feed.topic}/0 --offset 3")
    newcomer.finds_nothing("sink: replica")


def test_brokers_that_do_not_answer_are_corrected(newcomer, feed, monkeypatch):
    monkeypatch.setattr(everything, "PATIENCE_S", 0.5)
    newcomer.change({"source.bootstrap_servers": "127.0.0.1:1"})
    newcomer.finds("Kafka", level="error")
    newcomer.change({"source.bootstrap_servers": newcomer.servers})
    feed.begin()
    newcomer.finds_nothing("Kafka")
