"""The points of all ranges: in the order of offsets, without those that concern applied rows only."""

from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId, RangeReport, RepeatPoint
from applier.replica import segment_writer as repeats
from applier.replica.segment_writer import RepeatLog

ONE = Stream("feed", 0)


def report(start, *points):
    return RangeReport(range=RangeId(ONE, Offset(start), Offset(start + 10)), resolved_ts=Ts(0), repeats=points)


def log_of(*reports, checkpoint_ts=0):
    log = RepeatLog()
    for one in reports:
        log.add(one, Ts(checkpoint_ts))
    return log


def test_ranges_may_be_reported_in_any_order():
    log = log_of(report(10, RepeatPoint(12, 30)), report(0, RepeatPoint(2, 20)))
    assert log.since(Ts(0)).points == {ONE: (RepeatPoint(2, 20), RepeatPoint(12, 30))}


def test_a_range_that_begins_below_the_promise_of_the_one_before_shows_a_return():
    log = log_of(report(0, RepeatPoint(2, 20)), report(10, RepeatPoint(12, 15), RepeatPoint(14, 25)))
    assert log.since(Ts(0)).points == {ONE: (RepeatPoint(2, 20), RepeatPoint(12, 15, is_return=True), RepeatPoint(14, 25))}


def test_a_return_without_a_promise_says_nothing_about_the_next_promise():
    log = log_of(report(0, RepeatPoint(2, 20), RepeatPoint(3, 0, is_return=True)), report(10, RepeatPoint(12, 25)))
    assert log.since(Ts(0)).points == {ONE: (RepeatPoint(2, 20), RepeatPoint(3, 0, is_return=True), RepeatPoint(12, 25))}


def test_what_concerns_applied_rows_is_left_out_but_the_last_point():
    log = log_of(report(0, RepeatPoint(2, 20), RepeatPoint(4, 30)))
    assert log.since(Ts(20)).points == {ONE: (RepeatPoint(4, 30),)}
    assert log.since(Ts(30)).points == {ONE: (RepeatPoint(4, 30),)}
    log.clear()
    assert log.since(Ts(0)).points == {}


def test_points_of_applied_rows_are_forgotten(monkeypatch):
    monkeypatch.setattr(repeats, "KEPT_POINTS", 3)
    log = log_of(*(report(10 * number, RepeatPoint(10 * number, 20 + number)) for number in range(9)), checkpoint_ts=25)
    assert log.since(Ts(0)).points == {ONE: tuple(RepeatPoint(10 * number, 20 + number) for number in range(6, 9))}


def test_few_points_are_kept_of_each_stream_and_as_many_as_matter():
    log = log_of(*(report(10 * number, RepeatPoint(10 * number, 20 + number)) for number in range(900)), checkpoint_ts=900)
    assert len(log.since(Ts(0)).points[ONE]) < 50
    log = log_of(*(report(10 * number, RepeatPoint(10 * number, 20 + number)) for number in range(900)))
    assert len(log.since(Ts(0)).points[ONE]) == 900
