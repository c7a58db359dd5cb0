"""How long things took."""

import pytest

from applier.telemetry.tally import ACTIVITIES, BOUNDS_S, Durations


def test_a_duration_counts_in_its_bound_and_in_every_greater_one():
    durations = Durations()
    for seconds in (0.005, 0.006, 9000.0):
        durations.add("apply", seconds)
    found = {histogram.activity: histogram for histogram in durations.histograms()}
    assert found["apply"].counts == (1, 2, *([2] * (len(BOUNDS_S) - 2)), 3)
    assert found["apply"].sum_s == pytest.approx(9000.011)
    assert found["ddl"].counts == (0,) * (len(BOUNDS_S) + 1)


def test_all_activities_are_there_from_the_beginning():
    assert [histogram.activity for histogram in Durations().histograms()] == list(ACTIVITIES)


def test_what_fails_is_counted_too():
    durations = Durations()
    with pytest.raises(ValueError, match="x"), durations.timed("listen"):
        raise ValueError("x")
    assert {h.activity: h.counts[-1] for h in durations.histograms()}["listen"] == 1
