"""The admin event of the founding design: a new number of partitions. Rows of before and after are ordered by the watermark."""

from applier.coordinator.stream_state import CLOSED_TS
from applier.model.position import StreamPosition
from tests.timeline.scenario import P0, P1, P2, Scenario, resolved, row


def announced(partitions):
    return ("A", partitions)


def streams(s):
    return [status.stream for status in s.coordinator.streams]


def test_an_announced_partition_is_waited_for_before_it_holds_a_record():
    s = Scenario(P0, P1).write(P0, row(1), resolved(5), announced(2), resolved(9))
    assert s.turn() == []
    assert (streams(s), s.coordinator.holding_stream) == ([P0, P1], P1)
    s.write(P1, row(7), resolved(8))
    assert s.turn() == [("apply", 0, 8, 2)]


def test_an_announced_partition_without_a_record_has_no_position_yet():
    s = Scenario(P0, P1).write(P0, resolved(5))
    s.turn()
    s.write(P0, announced(2), resolved(9))
    s.turn()
    assert [*s.coordinator.progress_step().positions] == [P0]


def test_rows_in_an_announced_partition_are_ordered_by_the_watermark():
    s = Scenario(P0, P1).write(P0, row(4), resolved(5), announced(2)).write(P1, announced(2), row(3), row(6), resolved(5))
    assert s.turn() == [("apply", 0, 5, 2)]
    s.write(P0, row(6), resolved(7)).write(P1, resolved(7))
    assert s.turn() == [("apply", 5, 7, 2)]


def test_a_partition_that_the_last_record_leaves_out_promises_everything():
    s = Scenario(P0, P1).write(P0, resolved(5), announced(1), resolved(9)).write(P1, row(3), row(8), resolved(5), announced(1))
    assert s.turn() == [("apply", 0, 9, 2)]
    assert s.coordinator.holding_stream == P0


def test_a_closed_partition_stays_closed_after_a_restart_without_its_last_record():
    stored = {P0: StreamPosition(next_offset=3, resolved_ts=9), P1: StreamPosition(next_offset=4, resolved_ts=CLOSED_TS)}
    s = Scenario(P0, P1, checkpoint=9, stored=stored).write(P0, resolved(5), announced(1), resolved(9), row(10), resolved(12))
    s.write(P1, row(3), row(8), resolved(5), announced(1))
    s.earliest[P1] = 4
    assert s.turn() == [("apply", 9, 12, 1)]


def test_its_stored_position_says_that_it_is_closed():
    s = Scenario(P0, P1).write(P0, resolved(5), announced(1), resolved(9)).write(P1, row(3), resolved(5), announced(1))
    s.turn()
    assert s.coordinator.progress_step().positions[P1] == StreamPosition(next_offset=3, resolved_ts=CLOSED_TS)


def test_a_record_behind_the_announcement_opens_the_partition_again():
    s = Scenario(P0, P1).write(P0, resolved(5), announced(1), resolved(9)).write(P1, resolved(5), announced(1))
    s.turn()
    s.write(P1, announced(2), row(11)).write(P0, announced(2), resolved(12))
    assert s.turn() == []
    assert (s.coordinator.watermark, s.coordinator.holding_stream) == (9, P1)
    s.write(P1, resolved(12))
    assert s.turn() == [("apply", 9, 12, 1)]


def test_a_record_that_is_not_read_yet_opens_it_at_the_next_list():
    s = Scenario(P0, P1).write(P0, resolved(5), announced(1), resolved(9)).write(P1, resolved(5), announced(1))
    s.turn()
    s.write(P1, row(10)).write(P0, resolved(12))
    s.list()
    assert s.coordinator.watermark == 9
    for range_id in [one for one in s.coordinator.plan() if one.stream == P0]:
        s.read(range_id)
    s.list()
    assert (s.coordinator.watermark, s.coordinator.holding_stream) == (9, P1)


def test_an_announcement_that_other_events_follow_closes_nothing():
    s = Scenario(P0, P1, P2).write(P0, resolved(9)).write(P1, announced(1), resolved(4)).write(P2, resolved(9))
    s.turn()
    assert (s.coordinator.watermark, s.coordinator.holding_stream) == (4, P1)
