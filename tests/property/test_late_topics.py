"""A topic that is new to a replica with a checkpoint joins whole, or stops the replica: whatever is read, saved or killed when."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from applier.model.errors import NeedsOperator
from applier.model.position import Listing
from tests.timeline import upstream
from tests.timeline.memory_sink import Broken, Crash
from tests.timeline.replica import Simulation

SEEDS = st.integers(0, 2**32)
LATE = "t1"


class NeverLate(Exception):
    """The topic was never added: nothing is shown by this history."""


class LateTopic(Simulation):
    """The second topic is added, by a restart, when the checkpoint has reached ``late_ts``."""

    def __init__(self, world, seed, *, late_ts, **options):
        super().__init__(world, upstream, seed, **options)
        self.late_ts, self.joined_at = late_ts, None

    def listing(self):
        extents = super().listing().extents
        return Listing({s: extent for s, extent in extents.items() if self.joined_at is not None or s.topic != LATE})

    def perform(self, step):
        performed = super().perform(step)
        if self.joined_at is None and self.sink.checkpoint_ts >= self.late_ts:
            self.joined_at = self.sink.checkpoint_ts
            raise Crash
        return performed

    def check(self, what):
        # Its rows at the checkpoint where it joined are latecomers: they are applied with the first segment behind it.
        if self.joined_at is not None and self.sink.checkpoint_ts > self.joined_at:
            super().check(what)

    def live(self):
        try:
            super().live()
        except Broken as error:
            if self.joined_at is None:
                raise NeverLate from error  # upstream's tables without one of its topics make no sense, and need not
            raise
        if self.joined_at is None:
            raise NeverLate

    @property
    def is_history_missed(self):
        events = [event for (topic, _), some in self.streams.items() if topic == 1 for event in some if event[0] != "S"]
        return any(event[1] < self.joined_at for event in events)

    @property
    def is_group_settled(self):
        """Whether a DDL at the checkpoint has run before the topic's rows there could come: such rows are dropped by the rules."""
        return bool(self.sink.done_at(self.joined_at))


def world_of(seed):
    """Return the first world from ``seed`` on that has events in two topics."""
    worlds = (upstream.World(each, random.Random(each).randint(2, 9)) for each in itertools.count(seed))
    return next(world for world in worlds if any(topic == 1 for topic, _ in world.streams))


@settings(max_examples=200)
@given(SEEDS, SEEDS, st.integers(1, 9), st.sampled_from((0.0, 0.1, 0.25)))
def test_a_late_topic_joins_whole_or_stops_the_replica(seed, schedule, late_ts, crash_rate):
    simulation = LateTopic(world_of(seed), schedule, late_ts=late_ts, crash_rate=crash_rate)
    stopped_by = None
    try:
        simulation.run()
    except NeverLate:
        return
    except NeedsOperator as stop:
        stopped_by = stop.facts["kind"]
    except Broken:
        assert simulation.is_group_settled
        return
    assert stopped_by in ({"missed_topic", "missed_ddl"} if simulation.is_history_missed else {None})


def test_the_histories_show_both_ends():
    ends = set()
    for seed in range(0, 300, 3):
        simulation = LateTopic(world_of(seed), seed, late_ts=random.Random(seed).randint(1, 5))
        try:
            simulation.run()
        except (NeverLate, Broken):
            continue
        except NeedsOperator:
            ends.add("stopped")
        else:
            ends.add("joined")
    assert ends == {"stopped", "joined"}


@pytest.mark.parametrize("seed", range(0, 120, 3))
def test_a_stopped_replica_stops_again_at_every_start(seed):
    simulation = LateTopic(world_of(seed), seed, late_ts=2, crash_rate=0.1)
    stops = 0
    for _ in range(3):
        try:
            simulation.run()
        except NeedsOperator:
            stops += 1
        except (NeverLate, Broken):
            break
    assert stops in {0, 3}
