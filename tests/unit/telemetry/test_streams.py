"""Streams are looked at on their own schedule, and counts that start again after a reload are summed up."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from applier.model.position import Stream, Ts
from applier.telemetry.monitor import LOOK_S, LOOK_SHARE, StreamCollector
from tests.builders.run_state import status

FEED = Stream("feed", 0)


def coordinator(**changes):
    return SimpleNamespace(streams=(replace(status(FEED, 5), **changes),), holding_stream=FEED, pending_ddls=("a", "b"), cached_bytes=7)


@pytest.mark.parametrize("looked_s", [0.0, 0.3])
def test_looks_come_at_most_twice_a_second_and_take_a_bounded_share_of_the_time(looked_s):
    collector = StreamCollector(60)
    assert collector.is_due(100.0)
    collector.looked(100.0, 100.0 + looked_s)
    next_s = 100.0 + max(LOOK_S, looked_s / LOOK_SHARE)
    assert not collector.is_due(next_s - 0.001)
    assert collector.is_due(next_s)


def test_a_look_collects_what_the_coordinator_knows_of_its_streams():
    view = StreamCollector(60).collect(coordinator(), Ts(5), (), 100.0)
    assert (view.holding, view.pending_ddls, view.cached_bytes, view.stall) == (FEED, 2, 7, None)
    assert [each.status.stream for each in view.each] == [FEED]


def test_counts_that_start_again_after_a_reload_are_added_to_those_before():
    collector = StreamCollector(60)
    for replays, fallbacks in ((3, 1), (5, 1), (0, 0), (2, 4)):
        (found,) = collector.collect(coordinator(replays=replays, fallbacks=fallbacks), Ts(5), (), 100.0).each
    assert (found.replays, found.fallbacks) == (7, 5)
