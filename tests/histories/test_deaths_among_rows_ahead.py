"""``consistency = "row"``: the engine dies at each named point around rows ahead of W, again and again: nothing is lost or stepped back."""

from collections import Counter

import pytest

from applier.replica import lanes as writing
from applier.sinks import write_transaction
from applier.sinks.ledger_entry import DdlState
from tests.builders.handwritten import TWO, resolved, rows_of
from tests.histories.test_any_history_ends_identical import assert_identical
from tests.histories.test_rows_ahead import BY_KEY, begun, version, world
from tests.rig.fake_source import FakeSource
from tests.rig.faulty_sink import DeathError
from tests.rig.local_replica import sqlite_replica
from tests.rig.seeds import seeds

POINTS = ("rows.before_lock", "rows.before_commit", "rows.before_progress")
ROWS_PER_TRANSACTION = 5
"""So that one step is several transactions, and a death comes between two of them."""
MOST_DEATHS = 4


class Deaths:
    """Dies some times when ``point`` is reached."""

    def __init__(self, point, monkeypatch, every=2):
        self._point, self._every = point, every
        self.reached, self.died = Counter(), 0
        for module in (write_transaction, writing):
            monkeypatch.setattr(module, "reach", self._reach)

    def _reach(self, point):
        self.reached[point] += 1
        if point == self._point and self.died < MOST_DEATHS and self.reached[point] % self._every == 0:
            self.died += 1
            raise DeathError


def caught_up(replica, deaths):
    """Start the replica again until it does not die any more; return its checkpoint."""
    while True:
        before = deaths.died
        try:
            return replica.catch_up().checkpoint_ts
        except DeathError:
            assert deaths.died == before + 1


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("seed", seeds(range(140, 152), daily=4))
def test_deaths_around_rows_ahead_of_the_watermark_lose_and_repeat_nothing(seed, point, tmp_path, monkeypatch, row_steps):
    history, producer, log, rows = world(seed, growth=0)
    monkeypatch.setattr(write_transaction, "CHUNK_ROWS", ROWS_PER_TRANSACTION)
    deaths = Deaths(point, monkeypatch)
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=rows)
    assert caught_up(replica, deaths) == producer.final_ts
    assert deaths.died > 0
    assert len(row_steps) > deaths.died
    assert_identical(history, producer.final_ts, replica.url)
    done = [entry.identity for entry in replica.ledger() if entry.state is DdlState.DONE]
    assert len(done) == len(set(done)) == sum(len(step.ddls) for step in history if step.ts < producer.final_ts)


@pytest.mark.parametrize(("point", "durable"), [("rows.before_lock", []), ("rows.before_commit", []), ("rows.before_progress", [(2, 2)])])
def test_a_stream_is_said_to_be_applied_only_after_its_rows_are_durable(point, durable, tmp_path, monkeypatch, row_steps):
    log = begun((TWO, version(20, 2, 1)), (TWO, version(30, 2, 2)), (TWO, resolved(40)))
    replica = sqlite_replica(tmp_path, FakeSource(log), rows=BY_KEY)
    with monkeypatch.context() as dying:
        deaths = Deaths(point, dying, every=1)
        with pytest.raises(DeathError):
            replica.catch_up()
        assert (deaths.died, row_steps) == (1, [])
    assert rows_of(tmp_path) == durable
    assert replica.stored_positions()[TWO].applied_ts <= 11
    assert replica.catch_up().checkpoint_ts == 11
    assert len(row_steps) == 1
    assert rows_of(tmp_path) == [(2, 2)]
    assert replica.stored_positions()[TWO].applied_ts == 39
