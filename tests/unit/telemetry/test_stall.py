"""Which stream is named as holding back the watermark, and from when to when."""

from dataclasses import replace

from applier.model.position import Stream
from applier.telemetry.run_state import MAX_ROUND_S, StallRule
from tests.builders.run_state import status

QUIET, BUSY = Stream("feed", 0), Stream("feed", 1)
LIMIT_S = 60.0


def looks(rule, seconds, *, quiet=status(QUIET, 5), since=0.0):  # noqa: B008 - frozen
    """Look once a second at a stream that says nothing and one that does; return when it was first called stalled."""
    for second in range(seconds):
        now_s = since + second
        if rule.observe([quiet, status(BUSY, 6 + now_s)], QUIET, now_s) is not None:
            return second
    return None


def test_s13_a_stream_without_a_resolved_event_for_too_long_is_named_with_its_silence():
    rule = StallRule(LIMIT_S)
    assert looks(rule, 100) == 60
    stall = rule.observe([status(QUIET, 5)], QUIET, 61.0)
    assert (stall.stream, stall.resolved_ts, stall.silent_s) == (QUIET, 5, 61.0)


def test_a_binlog_to_which_nothing_is_written_is_no_stall():
    assert looks(StallRule(LIMIT_S), 100, quiet=replace(status(QUIET, 5), is_promised_by_reading=True)) is None


def test_a_resolved_event_ends_the_stall():
    rule = StallRule(LIMIT_S)
    looks(rule, 100)
    assert rule.observe([status(QUIET, 7)], QUIET, 101.0) is None
    assert rule.silent_s(QUIET) == 0.0


def test_a_silent_stream_that_does_not_hold_the_watermark_is_not_named():
    rule = StallRule(LIMIT_S)
    looks(rule, 100)
    assert rule.observe([status(QUIET, 5), status(BUSY, 3)], BUSY, 100.0) is None


def test_a_backlog_that_is_being_read_does_not_count_as_silence():
    rule = StallRule(LIMIT_S)
    assert looks(rule, 1000, quiet=status(QUIET, 5, read=10, end=1000)) is None
    # Read to where it ended then: from here on it is the stream that says nothing, though rows still arrive.
    looks(rule, 1, quiet=status(QUIET, 5, read=1000, end=1003), since=1000.0)
    assert rule.silent_s(QUIET) == MAX_ROUND_S
    assert looks(rule, 100, quiet=status(QUIET, 5, read=1003, end=1003), since=1001.0) == 54


def test_a_stream_that_must_wait_for_another_one_is_not_silent():
    rule = StallRule(LIMIT_S)
    looks(rule, 10)
    for second in range(10, 1000):
        rule.observe([status(QUIET, 5, read=10, end=10 + second)], QUIET, float(second))
    assert rule.silent_s(QUIET) < 2 * MAX_ROUND_S + 10


def test_rows_without_a_resolved_event_count_as_silence():
    rule = StallRule(LIMIT_S)
    named = [
        now for now in range(100) if rule.observe([status(QUIET, 5, read=10 + 7 * now, end=17 + 7 * now)], QUIET, float(now)) is not None
    ]
    assert named == list(range(60, 100))


def test_time_without_a_look_does_not_count_as_silence():
    rule = StallRule(LIMIT_S)
    rule.observe([status(QUIET, 5)], QUIET, 0.0)
    assert rule.observe([status(QUIET, 5)], QUIET, 3600.0) is None
    assert rule.silent_s(QUIET) == MAX_ROUND_S


def test_resolved_events_that_are_read_again_after_a_reload_do_not_end_a_stall():
    rule = StallRule(LIMIT_S)
    looks(rule, 50)
    rule.observe([status(QUIET, 3)], QUIET, 50.0)
    assert looks(rule, 100, since=51.0) == 9


def test_a_stream_that_is_gone_is_forgotten():
    rule = StallRule(LIMIT_S)
    looks(rule, 100)
    assert rule.observe([status(BUSY, 200)], BUSY, 100.0) is None
    assert rule.observe([replace(status(QUIET, 5))], QUIET, 101.0) is None


def test_without_streams_nothing_stalls():
    assert StallRule(LIMIT_S).observe([], None, 0.0) is None
