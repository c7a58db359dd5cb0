"""Rows ahead of W: when the coordinator hands them out. What ends in the sink: tests/histories/test_rows_ahead.py."""

import pytest

from applier.coordinator import Policy
from applier.coordinator.policy import RowPolicy
from applier.coordinator.step import ApplyRows, ApplySegment, AskKeys, ForgetRows
from applier.model.position import StreamPosition
from tests.timeline.scenario import P0, P1, P2, Scenario, folded, resolved, row


def test_promises_count_only_with_a_list_that_is_younger():
    """A partition that appeared before them may hold rows below them, and DDLs."""
    at = StreamPosition(next_offset=0, resolved_ts=5, applied_ts=5)
    policy = Policy(rows=RowPolicy(by_table=False, settle_span=0, checks_beginning=False))
    s = Scenario(P0, P1, checkpoint=5, stored={P0: at, P1: at}, policy=policy).write(P1, resolved(5)).write(P0, row(7), resolved(9))
    s.list()
    s.read()
    assert s.steps() == []
    s.list()
    assert isinstance(s.coordinator.next_step(), AskKeys)


BY_KEY = Policy(rows=RowPolicy(by_table=False, settle_span=0))


def ahead_of(*lagging):
    """P0 has rows ahead, of which the rest of the log shows later whether they may be. ``lagging``: what P1 holds."""
    s = Scenario(P0, P1, policy=BY_KEY)
    s.write(P0, resolved(5), row(7, key=1), row(8, key=1), resolved(20)).write(P1, resolved(5), *lagging)
    s.list()
    s.read()
    s.list()
    while not isinstance(step := s.coordinator.next_step(), ApplyRows):
        if isinstance(step, AskKeys):
            s.coordinator.answer_keys(step, dict.fromkeys(folded("a"), ("id",)))
        else:
            s.confirm(step)
    s.coordinator.rows_written(step)
    assert step.spans[P0][1] == 19
    return s


def then(s, stream, *events):
    """Return the next step that writes, after these events."""
    s.write(stream, *events)
    s.list()
    s.read()
    s.list()
    while not isinstance(step := s.coordinator.next_step(), ApplyRows | ApplySegment | ForgetRows):
        s.confirm(step)
    return step


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        pytest.param(P2, (row(7),), id="a new partition"),
        pytest.param(P1, (resolved(5), resolved(10)), id="the first promise again"),
        pytest.param(P1, (("A", 2),), id="an announcement"),
        pytest.param(P1, (resolved(10), row(7, key=1)), id="a replay of a row that the partition did not have"),
    ],
)
def test_no_row_counts_as_written_once_a_key_may_have_two_partitions(stream, events):
    s = ahead_of()
    step = then(s, stream, *events)
    assert isinstance(step, ForgetRows)
    assert {position.applied_ts for position in step.positions.values()} == {0}
    assert s.coordinator.is_caught_up({}) is False


def test_a_replay_of_rows_that_its_own_partition_has_written_is_none():
    s = ahead_of()
    step = then(s, P0, row(7, key=1), row(8, key=1), resolved(21))
    assert not isinstance(step, ForgetRows)
