"""DDLs that wait for their barrier."""

import pytest

from applier.coordinator import barriers
from applier.coordinator.barriers import Barriers
from applier.coordinator.step import NeedNames
from applier.ddl import identity
from applier.model.errors import NeedsOperator
from applier.model.position import RecordPosition
from applier.model.range_report import DdlArrival
from tests.timeline.scenario import OTHER, P0, P1, ddl, folded

ADD, DROP, CREATE = (ddl(ts, text) for ts, text in ((3, "ALTER TABLE `a` ADD COLUMN `x` INT"), (5, "DROP TABLE `a`"), (3, "FROB `a`")))


def waiting(*arrivals, settled=(), start=0, begun=0):
    found = Barriers(settled, start)
    for stream, offset, event in arrivals:
        found.admit(stream, DdlArrival(offset, 0, event), begun)
    return found


def test_copies_are_one_ddl_and_it_lies_where_it_arrived_first():
    found = waiting((P1, 4, ADD), (P0, 9, ADD), (P0, 7, ADD))
    assert list(found) == [ADD]
    assert found.position_of(identity(ADD)) == RecordPosition(P0, 7)


def test_what_the_dump_holds_and_what_the_ledger_has_settled_does_not_wait():
    assert list(waiting((P0, 1, ADD), start=3)) == []
    assert list(waiting((P0, 1, ADD), settled=[identity(ADD)])) == []


def test_the_ledger_is_asked_only_about_ddls_below_the_checkpoint_that_are_not_known():
    found = waiting(settled=[identity(DROP)], start=2)
    assert found.times_to_ask([ddl(2, "DROP TABLE `a`"), ADD, DROP, ddl(6, "DROP TABLE `a`")], 6) == {3}
    found.add_settled([identity(ADD), identity(DROP)])
    assert found.times_to_ask([ADD], 6) == set()
    assert found.admit(P0, DdlArrival(1, 0, ADD), 6) is None


def test_a_ddl_below_the_checkpoint_that_is_not_in_the_ledger_stops():
    with pytest.raises(NeedsOperator, match="not in the ledger") as caught:
        waiting((P0, 1, ADD), begun=4)
    assert (caught.value.facts["kind"], caught.value.facts["checkpoint_ts"]) == ("missed_ddl", 4)


def test_ddls_run_by_ts_and_only_when_the_watermark_is_past_them():
    found = waiting((P0, 1, DROP), (P0, 2, ADD))
    assert (found.next_ts(3), found.next_ts(4)) == (None, 3)
    assert found.first_at(3) == identity(ADD)
    found.settle(identity(ADD))
    assert (found.next_ts(5), found.next_ts(6)) == (None, 5)


def test_segments_know_of_the_ddls_behind_the_next_one_as_far_as_these_may_run(monkeypatch):
    found = waiting(*((P0, ts, ddl(ts, "DROP TABLE `a`")) for ts in (9, 3, 7, 5)))
    assert found.behind(3, 10) == (5, 7, 9)
    assert found.behind(3, 7) == (5,), "a DDL at the watermark may have rows of other streams before it"
    assert found.behind(4, 10) == (), "no DDL waits there"
    assert waiting().behind(3, 10) == ()
    monkeypatch.setattr(barriers, "MOST_BEHIND", 2)
    assert found.behind(3, 10) == (5, 7)
    found.settle(identity(ddl(3, "DROP TABLE `a`")))
    assert found.behind(5, 10) == (7, 9)


def test_a_further_ddl_of_the_ts_has_the_order_found_again():
    other = ddl(3, "DROP TABLE `b`", "b")
    found = waiting((P0, 9, other))
    assert found.first_at(3) == identity(other)
    found.admit(P0, DdlArrival(1, 0, ADD), 0)
    assert found.first_at(3) == identity(ADD)
    found.settle(identity(other))
    assert found.first_at(3) == identity(ADD)


def test_names_are_asked_for_where_two_topics_touch_the_same_ones():
    create, rename = ddl(3, "CREATE TABLE `b` (`id` INT)", "b"), ddl(3, "RENAME TABLE `b` TO `c`", "c")
    found = waiting((P0, 1, create), (OTHER, 1, rename))
    asked = found.first_at(3)
    assert isinstance(asked, NeedNames)
    assert folded("b", "c") <= {name.fold() for name in asked.tables}
    found.answer_names(())
    assert found.first_at(3) == identity(create)


def test_identities_of_ddls_that_have_run_are_not_kept_for_ever(monkeypatch):
    monkeypatch.setattr(barriers, "ALWAYS_KEPT", 2)
    found = waiting()
    for ts in range(1, 9):
        event = ddl(ts, "DROP TABLE `a`")
        found.admit(P0, DdlArrival(ts, 0, event), 0)
        found.settle(identity(event))
    assert len(found._parsed) <= 3
