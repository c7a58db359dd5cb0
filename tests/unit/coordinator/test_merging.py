"""Small ranges of a stream that does not resolve become few."""

from dataclasses import replace

from applier.coordinator import Policy, read_ahead
from applier.coordinator.pace import LEAST_PER_RECORD
from applier.coordinator.read_ahead import FAN
from applier.coordinator.step import Evict
from applier.model.range_report import RangeId
from tests.timeline.report import report_of
from tests.timeline.scenario import P0, Scenario, resolved, row


def fed_row_by_row(rows, **policy):
    """A stream that does not resolve, read in ranges of one row each; and the most ranges that were cached at once."""
    s, most = Scenario(policy=Policy(**{"merge_ranges": 8} | policy)), 0
    s.records = 0
    for ts in range(1, rows + 1):
        s.write(P0, row(ts))
        s.list()
        planned = s.coordinator.plan()
        s.records += sum(name.end - name.start for name in planned)
        s.read(*planned)
        s.steps()
        most = max(most, s.coordinator.streams[0].cached_ranges)
    return s, most


def test_ranges_of_a_stream_that_does_not_resolve_are_merged_again_and_again_and_its_rows_are_applied_once():
    s, most = fed_row_by_row(700, merge_ranges=2 * FAN)
    assert most <= 4 * FAN
    assert s.records <= 6 * 700, "as often as the logarithm says, not again with each small range behind a large one"
    assert sum(status.cached_bytes for status in s.coordinator.streams) == 7000
    assert s.coordinator.cached_bytes <= 7000 + 10 * most, "a small range that was read together with a merge stays as long as that"
    s.write(P0, resolved(700))
    assert s.turn() == [("apply", 0, 700, 700)]


def test_ranges_that_are_large_enough_are_not_merged(monkeypatch):
    monkeypatch.setattr(read_ahead, "MERGED", Policy().plan_bytes / (FAN * (10 + LEAST_PER_RECORD) - 1))
    _, most = fed_row_by_row(40)
    assert most == 40


def test_a_merge_that_fails_leaves_its_pieces_and_nothing_is_merged_until_there_are_few_ranges():
    s, _ = fed_row_by_row(8)
    s.write(P0, row(9))
    s.list()
    s.read()
    s.write(P0, row(10))
    s.list()
    ranges = s.coordinator.plan()
    (merge,) = [name for name in ranges if s.coordinator.is_merge(name)]
    assert merge == RangeId(P0, 0, 8)
    s.coordinator.forget(merge)
    s.read(*[name for name in ranges if name != merge])
    assert not any(s.coordinator.is_merge(name) for name in s.coordinator.plan())
    s.write(P0, resolved(10))
    assert s.turn() == [("apply", 0, 10, 10)]
    assert s.coordinator.plan() == ()


def test_a_merge_that_holds_fewer_rows_than_its_pieces_does_not_replace_them():
    s, _ = fed_row_by_row(9)
    s.write(P0, resolved(10))
    s.list()
    ranges = s.coordinator.plan()
    (merge,) = [name for name in ranges if s.coordinator.is_merge(name)]
    s.read(*[name for name in ranges if name != merge])
    lost_in_kafka = s.log[P0][1 : merge.end]
    report, _ = report_of(RangeId(P0, 1, merge.end), lost_in_kafka, s.coordinator.floor_ts)
    s.coordinator.report(replace(report, range=merge))
    released = s.coordinator.next_step()
    assert merge in released.ranges
    s.confirm(released)
    s.list()
    assert s.steps() == [("apply", 0, 10, 9)]


def test_pieces_that_were_released_while_they_were_read_again_leave_nothing_behind():
    s, _ = fed_row_by_row(9)
    s.write(P0, resolved(10), row(11), resolved(12))
    s.list()
    ranges = s.coordinator.plan()
    (merge,) = [name for name in ranges if s.coordinator.is_merge(name)]
    s.read(*[name for name in ranges if name != merge])
    s.list()
    s.steps()
    s.read(merge)
    assert s.coordinator.next_step() == Evict((merge,))
