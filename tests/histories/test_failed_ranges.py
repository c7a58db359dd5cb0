"""Ranges that fail while they are read, half-way as a rule: they alone are read again, and the sink ends identical."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from applier.model.errors import SourceError
from applier.model.failure import FailureKind
from applier.planner.keyless import EqualRows
from applier.run import daemon
from applier.run import daemon as retry
from tests.histories.test_keyless_histories import world as keyless_world
from tests.rig.fake_source import MemoryReader
from tests.rig.followed_feed import LiveSource, assert_identical, follow, world
from tests.rig.local_replica import SMALL, sqlite_replica
from tests.rig.seeds import seeds

pytestmark = pytest.mark.usefixtures("without_waiting")

LARGE_BATCHES = replace(SMALL, first_plan_bytes=20_000)
"""Each job reads many ranges, so that one that fails shares its batch with others."""


@dataclass(frozen=True, slots=True)
class FailingReader(MemoryReader):
    """Some ranges fail, each somewhere; ``draw`` differs from job to job, so the next reading may succeed."""

    draw: str = ""

    def read(self, ranges: Sequence):
        drawn = random.Random(self.draw)
        left = {range_id: drawn.randrange(4) for range_id in ranges if drawn.random() < 0.2}
        # Not through super(): dataclasses with slots are made anew.
        for range_id, records in MemoryReader.read(self, ranges):
            if left.get(range_id) == 0:
                yield range_id, SourceError("Kafka does not answer", kind=FailureKind.UNREACHABLE)
            else:
                yield range_id, records
            if range_id in left:
                left[range_id] -= 1


class FailingSource(LiveSource):
    """Grows at each look; its readers fail now and then."""

    def __init__(self, log, seed):
        super().__init__(log, pace=200)
        self._seed, self._jobs = seed, 0

    @property
    def reader(self):
        self._jobs += 1
        return FailingReader(self._records, dict(self._earliest), 5, f"{self._seed} {self._jobs}")


@pytest.fixture(autouse=True)
def _retrying_at_once(monkeypatch):
    monkeypatch.setattr(retry, "FIRST_WAIT_S", 0.0)
    monkeypatch.setattr(retry, "JITTER_S", 0.0)
    monkeypatch.setattr(daemon, "PACE_S", 0.0)


def reloads_of(replica, producer):
    follow(replica, producer)
    return replica.monitor.tally.counts.rebuilds


@pytest.mark.parametrize("seed", seeds(range(6000, 6084), daily=6))
def test_only_the_range_that_failed_is_read_again(seed, tmp_path):
    history, producer, log = world(seed, transactions=80)
    replica = sqlite_replica(tmp_path, FailingSource(log, seed), policy=LARGE_BATCHES)
    assert reloads_of(replica, producer) == 0
    assert_identical(replica, history, producer)


@pytest.mark.parametrize("seed", seeds(range(6100, 6120), daily=4))
def test_rows_of_a_table_without_a_key_that_a_failed_reading_has_left_behind_do_not_count_twice(seed, tmp_path):
    history, producer, log = keyless_world(seed)
    replica = sqlite_replica(tmp_path, FailingSource(log, seed), policy=LARGE_BATCHES, writes_keyless=True, equal_rows=EqualRows.ALL)
    assert reloads_of(replica, producer) == 0
    assert_identical(replica, history, producer)
