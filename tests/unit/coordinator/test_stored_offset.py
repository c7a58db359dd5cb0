"""The stored offset: the first record that a restart must read."""

import pytest

from applier.coordinator import Policy
from applier.coordinator import stream_state as stored_offset
from applier.coordinator.stream_state import PlacedDdl, StoredOffset
from applier.model.events import DdlIdentity, FoldedName
from applier.model.position import Offset, Ts
from applier.model.range_report import ResumePoint
from tests.timeline.scenario import P0, Scenario, resolved, row


def test_the_hold_points_of_very_many_ranges_are_joined_and_stand_for_an_earlier_offset(monkeypatch):
    monkeypatch.setattr(stored_offset, "MAX_HELD", 4)
    s = Scenario(policy=Policy(merge_ranges=99)).write(P0, resolved(1))
    s.turn()
    for ts in range(2, 12):
        s.write(P0, row(ts))
        s.turn()
    assert s.coordinator.streams[0].next_offset == 1
    s.write(P0, resolved(10))
    s.turn()
    assert s.coordinator.streams[0].next_offset <= 10


A, B = (DdlIdentity(Ts(ts), FoldedName("s", "a"), None) for ts in (5, 7))


def stored(*hold, ddls=()):
    offset = StoredOffset(Offset(0))
    offset.add(tuple(ResumePoint(Offset(at), Ts(ts)) for at, ts in hold), tuple(PlacedDdl(Offset(at), key) for at, key in ddls))
    return offset


def test_without_anything_that_matters_nothing_holds_the_offset():
    assert StoredOffset(Offset(3)).first(Ts(0), (), None)[0] is None


@pytest.mark.parametrize(("checkpoint", "offset"), [(4, 10), (5, 10), (6, 20), (8, 20), (9, None)])
def test_the_first_record_at_or_above_the_checkpoint_holds_it(checkpoint, offset):
    assert stored((10, 5), (20, 8)).first(Ts(checkpoint), (), None)[0] == offset


def test_a_ddl_holds_it_until_the_ledger_has_settled_it():
    offset = stored((30, 6), ddls=[(10, A), (20, B)])
    assert offset.first(Ts(5), {A, B}, None)[0] == 10
    assert offset.first(Ts(5), {A, B}, A)[0] == 20
    assert offset.first(Ts(5), {B}, None)[0] == 20
    assert offset.first(Ts(5), (), None)[0] == 30


def test_very_many_ddls_are_joined_and_each_is_read_again_until_it_is_settled(monkeypatch):
    monkeypatch.setattr(stored_offset, "MAX_HELD", 8)
    keys = [DdlIdentity(Ts(ts), FoldedName("s", "a"), None) for ts in range(5, 105)]
    offset = stored(ddls=[(10 * number, key) for number, key in enumerate(keys)])
    pending, found = set(keys), []
    for number, key in enumerate(keys):
        before, after = offset.first(key.ts, pending, None)[0], offset.first(key.ts, pending, key)[0]
        assert before <= 10 * number
        assert after is None if number == len(keys) - 1 else before <= after <= 10 * (number + 1)
        found.append(before)
        pending.remove(key)
    assert (found == sorted(found), 4 <= len(set(found)) <= 8) == (True, True)
    assert offset.first(Ts(200), pending, None)[0] is None


def test_what_is_spent_is_forgotten_and_the_offset_never_steps_back():
    offset = stored((10, 5))
    offset.add((ResumePoint(Offset(20), Ts(9)),), ())
    offset.drop_spent(Ts(6), Offset(25))
    assert offset.first(Ts(6), (), None)[0] == 25
