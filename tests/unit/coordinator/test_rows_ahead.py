"""Rows ahead of W: when the coordinator hands them out. What ends in the sink: tests/histories/test_rows_ahead.py."""

from applier.coordinator import Policy
from applier.coordinator.policy import RowPolicy
from applier.coordinator.step import AskKeys
from applier.model.position import StreamPosition
from tests.timeline.scenario import P0, P1, Scenario, resolved, row


def test_promises_count_only_with_a_list_that_is_younger():
    """A partition that appeared before them may hold rows below them, and DDLs."""
    at = StreamPosition(next_offset=0, resolved_ts=5, applied_ts=5)
    policy = Policy(rows=RowPolicy(by_table=False, settle_span=0))
    s = Scenario(P0, P1, checkpoint=5, stored={P0: at, P1: at}, policy=policy).write(P1, resolved(5)).write(P0, row(7), resolved(9))
    s.list()
    s.read()
    assert s.steps() == []
    s.list()
    assert isinstance(s.coordinator.next_step(), AskKeys)
