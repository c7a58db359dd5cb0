"""How long things took."""

import pytest

from applier.model.position import Stream
from applier.model.range_report import RangeId
from applier.telemetry.tally import ACTIVITIES, BOUNDS_S, Durations, Tally


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


def test_a_failed_activity_is_timed_too():
    durations = Durations()
    with pytest.raises(ValueError, match="x"), durations.timed("listen"):
        raise ValueError("x")
    assert {h.activity: h.counts[-1] for h in durations.histograms()}["listen"] == 1


def test_each_record_is_counted_once_however_often_and_in_whatever_pieces_it_is_read():
    tally, one, other = Tally(), Stream("t", 0), Stream("t", 1)
    for stream, start, end in [(one, 0, 10), (one, 0, 10), (one, 20, 30), (one, 5, 25), (other, 0, 10), (one, 0, 40), (one, 7, 7)]:
        tally.read(RangeId(stream, start, end), end - start)
    assert (tally.counts.records, tally.counts.events) == (50, 50)


def test_where_offsets_count_nothing_an_event_counts_as_a_record():
    tally, stream = Tally(), Stream("binlog", 0)
    for start, end, events in [(4, 1 << 32, 7), (1 << 32, (1 << 32) + 100, 5), (1 << 32, (1 << 32) + 100, 5)]:
        tally.read(RangeId(stream, start, end), events, counts_offsets=False)
    assert (tally.counts.records, tally.counts.events) == (12, 12)


def test_the_count_of_a_long_run_keeps_one_range_per_stream():
    tally, stream = Tally(), Stream("t", 0)
    for offset in range(0, 10_000, 10):
        tally.read(RangeId(stream, offset, offset + 10), 10)
    assert tally.counts.records == 10_000
    assert len(tally._read[stream]._ranges) == 1


def test_skipped_statements_add_up_by_kind():
    tally = Tally()
    tally.skipped([("account", 2)])
    tally.skipped([("account", 1), ("event", 1)])
    assert tally.counts.skipped_statements == (("account", 3), ("event", 1))
