"""A full disk is named as such and loses nothing; what was read is counted once."""

import time
from threading import Thread

import pytest

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.model.errors import SinkFull
from applier.replica.shutdown import Shutdown
from applier.telemetry.observer import SilentObserver
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.oracle import compare, open_oracle
from tests.rig.protocol import chosen_form
from tests.rig.small_disk import small_disk

pytestmark = pytest.mark.usefixtures("without_waiting")

STARTED = 400_000
"""Bytes that suffice to begin a replica, and not for its rows."""


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "small", "24m") as mounted:
        yield mounted


class Snapshots(SilentObserver):
    """Remembers what a display would show, and when something was tried again."""

    def __init__(self):
        self.progress, self.retries = [], []

    def update(self, state):
        self.progress.append((state.counts.records, state.records_total, state.checkpoint_ts))

    def note(self, message, /, **facts):
        if message == "retry":
            self.retries.append(facts)


def world():
    history = History(777, HistoryOptions(transactions=150, ddl_share=0.05))
    producer = Producer(history, ProducerOptions(seed=777, partitions=3).written_as(chosen_form()))
    return history, producer, list(producer.log())


def test_a_catch_up_names_a_full_disk_at_once_and_continues_where_it_was(disk):
    history, producer, log = world()
    replica = sqlite_replica(disk.path, FakeSource(log))
    disk.fill(but=STARTED)
    began = time.monotonic()
    with pytest.raises(SinkFull, match="the disk of the sink is full") as caught:
        replica.catch_up()
    assert time.monotonic() - began < 30
    assert "next start" in caught.value.remedy
    disk.free()
    replica.catch_up()
    assert_identical(replica, history, producer)


def test_a_daemon_waits_until_there_is_room_again_and_counts_each_record_once(disk):
    history, producer, log = world()
    shown, shutdown = Snapshots(), Shutdown()
    replica = sqlite_replica(disk.path, FakeSource(log), observer=shown)
    disk.fill(but=STARTED)
    thread = Thread(target=lambda: replica.follow(shutdown, retry_for_s=600))
    thread.start()
    try:
        wait_for(lambda: len(shown.retries) > 2)
        assert {facts["error"] for facts in shown.retries} == {"SinkFull"}
        disk.free()
        wait_for(lambda: shown.progress and shown.progress[-1][2] == producer.final_ts)
    finally:
        shutdown.request()
        thread.join()
    assert max(read for read, _, _ in shown.progress) == len(log)
    assert_identical(replica, history, producer)


def assert_identical(replica, history, producer):
    oracle = open_oracle("sqlite:///:memory:")
    try:
        oracle.apply(history, producer.final_ts)
        assert compare(oracle, replica.url) == []
    finally:
        oracle.close()


def wait_for(is_so):
    give_up = time.monotonic() + 90
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.02)
