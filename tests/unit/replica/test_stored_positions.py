from dataclasses import replace

import pytest

from applier.coordinator.stream_state import CLOSED_TS
from applier.model.position import NO_TS, Offset, Stream, StreamPosition, Ts
from applier.replica import state as stored_positions
from applier.replica.state import EVERY_S, FEW, StoredPositions
from applier.sinks.progress import Fence, Progress

MANY = FEW + 50
AT = Ts(500)
IDS = {"feed": "id"}


class Clock:
    now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(stored_positions, "time", clock)
    return clock


def stream(number):
    return Stream("feed", number)


def position(offset, **more):
    return StreamPosition(next_offset=Offset(offset), resolved_ts=Ts(offset + 100), **more)


def feed(offset, streams=MANY, **more):
    return {stream(number): position(offset, **more) for number in range(streams)}


def progress(positions, ids=IDS):
    return Progress(
        fence=Fence(1, 1), checkpoint_ts=Ts(499), start_ts=NO_TS, positions=positions, topic_ids=dict(ids), known_tables=frozenset()
    )


def chosen(store, wanted, stored, **more):
    return store.chosen(wanted, progress(stored), AT, topic_ids=IDS, **more)


@pytest.fixture
def store():
    """One that has just stored everything."""
    made = StoredPositions()
    assert chosen(made, feed(1), {}) == feed(1)
    return made


def test_what_has_not_changed_is_not_stored(store):
    assert chosen(store, feed(1), feed(1)) == {}


def test_few_positions_are_stored_with_any_commit(store):
    assert chosen(store, feed(2, FEW), feed(1, FEW)) == feed(2, FEW)
    assert chosen(store, feed(1) | feed(2, 3), feed(1)) == feed(2, 3)


def test_of_many_those_of_rows_are_stored_at_once_and_all_when_they_are_old(store, clock):
    assert chosen(store, feed(2), feed(1), with_rows=[stream(3), stream(7)]) == {stream(3): position(2), stream(7): position(2)}
    clock.now += EVERY_S - 1
    assert chosen(store, feed(3), feed(1)) == {}
    clock.now += 1
    assert chosen(store, feed(4), feed(1)) == feed(4)
    assert chosen(store, feed(5), feed(4)) == {}


def test_the_last_commit_of_a_run_stores_everything(store):
    assert chosen(store, feed(2), feed(1), is_last=True) == feed(2)


def test_a_new_stream_and_one_that_was_closed_are_stored_at_once(store):
    wanted = feed(2) | {Stream("feed", MANY): position(1), stream(4): replace(position(2), resolved_ts=CLOSED_TS)}
    assert chosen(store, wanted, feed(1)).keys() == {Stream("feed", MANY), stream(4)}


def test_all_positions_of_a_topic_are_stored_once_its_id_is_known(store):
    other = {Stream("other", 1): position(1)}
    found = store.chosen(feed(1) | other, progress(feed(1) | other, IDS), AT, topic_ids=IDS | {"other": "new"})
    assert found == other


@pytest.mark.parametrize(
    ("stored", "wanted", "is_stored"),
    [(600, 700, True), (0, 499, True), (499, 0, True), (300, 499, False), (300, 400, False), (600, 600, False)],
)
def test_how_far_rows_are_ahead_is_stored_at_once_as_far_as_the_checkpoint_does_not_say_it(store, stored, wanted, is_stored):
    changed = feed(2, applied_ts=Ts(wanted))
    assert chosen(store, changed, feed(1, applied_ts=Ts(stored))) == (changed if is_stored else {})
