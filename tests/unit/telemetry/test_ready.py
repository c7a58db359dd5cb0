"""When a run counts as following."""

from applier.model.position import Stream
from applier.telemetry.monitor import ReadyRule
from tests.builders.run_state import status

A, B = Stream("feed", 0), Stream("feed", 1)


def test_a_run_is_ready_once_everything_that_was_there_is_read_and_applied():
    rule = ReadyRule()
    assert not rule.observe([status(A, 5, read=0, end=10), status(B, 5, read=0, end=3)], 5)
    assert not rule.observe([status(A, 9, read=10, end=12), status(B, 5, read=1, end=3)], 5)
    assert not rule.observe([status(A, 9, read=12, end=14), status(B, 8, read=3, end=9)], 7)
    assert rule.observe([status(A, 9, read=12, end=14), status(B, 8, read=3, end=9)], 8)


def test_it_stays_ready_however_far_it_falls_behind():
    rule = ReadyRule()
    assert rule.observe([status(A, 5)], 5)
    assert rule.observe([status(A, 5, read=10, end=10**6)], 5)


def test_a_partition_that_appears_later_does_not_matter():
    rule = ReadyRule()
    rule.observe([status(A, 5, read=0, end=10)], 5)
    assert rule.observe([status(A, 6, read=10, end=10), status(B, 6, read=0, end=50)], 6)


def test_empty_topics_are_followed_at_once():
    assert ReadyRule().observe([], 0)
