from collections.abc import Callable

import pytest

from applier.model import segment
from applier.model.events import FoldedName, RowKind
from applier.model.position import Stream, Ts
from tests.builders.planning import ORDERS, between

STREAM = Stream("feed", 0)


def test_a_window_is_open_below_and_its_floor_is_the_checkpoint() -> None:
    assert between(10, 20).bound(STREAM, ORDERS, keyed=True) == 10


def test_rows_at_the_checkpoint_come_again_where_the_group_is_repeated() -> None:
    assert between(10, 20, again=True).bound(STREAM, ORDERS, keyed=True) == 9


@pytest.mark.parametrize("settled", [{ORDERS}, {FoldedName("shop", "")}], ids=["table", "whole schema"])
def test_rows_at_the_checkpoint_stay_out_where_a_ddl_has_touched_the_table(settled: set[FoldedName]) -> None:
    assert between(10, 20, again=True, settled=settled).bound(STREAM, ORDERS, keyed=True) == 10


def test_rows_at_the_checkpoint_stay_out_for_tables_without_a_key() -> None:
    assert between(10, 20, again=True).bound(STREAM, ORDERS, keyed=False) == 10


def test_another_tables_ddl_settles_nothing_here() -> None:
    others = {FoldedName("shop", "carts"), FoldedName("other", "")}
    assert between(10, 20, again=True, settled=others).bound(STREAM, ORDERS, keyed=True) == 9


@pytest.mark.parametrize(
    ("rule", "below", "at", "above"),
    [
        (lambda ts: segment.floor_ts(Ts(ts), Ts(9)) == 10, True, True, False),
        (lambda ts: segment.is_in_dump(ts, Ts(10)), True, True, False),
        (lambda ts: segment.has_moved(Ts(ts), Ts(10)), False, False, True),
        (lambda ts: segment.is_past(ts, 10), True, False, False),
        (lambda ts: segment.is_applied(ts, Ts(10)), True, True, False),
        (lambda ts: segment.may_follow(ts, 10), False, True, True),
        (lambda ts: segment.is_behind_promise(Ts(ts), Ts(10)), True, False, False),
        (lambda ts: segment.has_advanced(Ts(ts), Ts(10)), False, False, True),
        (lambda ts: segment.is_ahead(ts, 10), False, False, True),
        (lambda ts: segment.has_shown_past(ts, 10), False, False, True),
        (lambda ts: segment.has_reached(Ts(ts), 10), False, True, True),
        (lambda ts: segment.is_open(Ts(10), Ts(ts)), False, False, True),
        (lambda ts: segment.is_due(Ts(10), Ts(ts)), False, False, True),
        (lambda ts: segment.moves_checkpoint(Ts(ts), Ts(10)), False, False, True),
        (lambda ts: segment.steps_back(Ts(ts), Ts(10)), True, False, False),
        (lambda ts: segment.first_holding([Ts(ts)], Ts(10), Ts) == 0, False, True, True),
        (lambda ts: segment.ddl_holds_offset(Ts(ts), Ts(10)), False, True, True),
        (lambda ts: segment.is_spent(Ts(ts), Ts(10)), True, False, False),
        (lambda ts: segment.lies_in_segment(8, ts, Ts(7), Ts(10)), True, True, False),
        (lambda ts: segment.lies_in_segment(ts, 20, Ts(10), Ts(20)), False, False, True),
        (lambda ts: segment.keeps_offset(Ts(ts), Ts(8), Ts(10)), True, True, False),
        (lambda ts: segment.keeps_offset(Ts(ts), Ts(10), Ts(20)), False, True, True),
        (lambda ts: segment.is_beyond(Ts(ts), Ts(10)), False, False, True),
        (lambda ts: segment.first_beyond([Ts(ts)], Ts(10), Ts) == 0, False, False, True),
        (lambda ts: segment.overlaps_segment(5, ts, Ts(10), Ts(20)), False, False, True),
        (lambda ts: segment.overlaps_segment(ts, 25, Ts(0), Ts(10)), True, True, False),
        (lambda ts: segment.may_hold(Ts(10), ts, 20), True, True, False),
        (lambda ts: segment.may_hold(Ts(10), 0, ts), False, True, True),
        (lambda ts: between(10, 20).may_select(5, ts), False, False, True),
        (lambda ts: between(10, 20, again=True).may_select(5, ts), False, True, True),
        (lambda ts: between(0, 10).may_select(ts, 15), True, True, False),
        (lambda ts: between(10, 20).selects_all(ts, 20), False, False, True),
        (lambda ts: between(0, 10).selects_all(5, ts), True, True, False),
        (lambda ts: between(0, 10).inside([ts], [0])[0], True, True, False),
        (lambda ts: between(0, 20).inside([ts], [10])[0], False, False, True),
        (lambda ts: bool(between(10, 20).own([ts])), False, False, True),
        (lambda ts: segment.windows_of([between(0, 10), between(10, 20)], [ts]) == [1], False, False, True),
        (lambda ts: segment.windows_of([between(0, 10)], [ts]) == [1], False, False, True),
    ],
)
def test_each_rule_says_what_holds_at_the_boundary(rule: Callable[[int], bool], *, below: bool, at: bool, above: bool) -> None:
    assert [rule(9), rule(10), rule(11)] == [below, at, above]


def test_a_segment_that_ends_where_it_begins_has_no_own_rows() -> None:
    assert not segment.overlaps_segment(10, 10, Ts(10), Ts(10))
    assert between(10, 10, again=True).may_select(10, 10)


def test_windows_that_are_planned_together_leave_no_gap_and_repeat_only_the_first_group() -> None:
    assert segment.are_contiguous([between(5, 10, again=True), between(10, 20), between(20, 30)])
    assert not segment.are_contiguous([between(5, 10), between(11, 20)])
    assert not segment.are_contiguous([between(5, 10), between(9, 20)])
    assert not segment.are_contiguous([between(5, 10), between(10, 20, again=True)])


SLICES = (Ts(10), Ts(20), Ts(30))


def test_a_row_at_a_bound_is_in_the_slice_that_ends_there() -> None:
    assert segment.slices_of(SLICES, [9, 10, 11, 20, 21, 30, 31]) == [0, 0, 1, 1, 2, 2, 3]


@pytest.mark.parametrize(
    ("after", "upto", "number"),
    [(10, 20, 1), (20, 30, 2), (12, 15, 1), (20, 20, 1), (9, 20, None), (10, 21, None), (20, 31, None), (1, 10, None), (30, 40, None)],
)
def test_a_slice_holds_a_window_that_lies_in_it_and_no_other(after: int, upto: int, number: int | None) -> None:
    assert segment.slice_holding(SLICES, between(after, upto)) == number


def test_no_slice_holds_a_group_that_is_applied_again_or_where_there_are_no_slices() -> None:
    assert segment.slice_holding(SLICES, between(10, 20, again=True)) is None
    assert segment.slice_holding((), between(10, 20)) is None


def test_within_one_commit_ts_the_delete_comes_before_the_upsert() -> None:
    assert segment.is_later_version((10, RowKind.UPSERT), (10, RowKind.DELETE))
    assert not segment.is_later_version((10, RowKind.DELETE), (10, RowKind.DELETE))
    assert not segment.is_later_version((9, RowKind.UPSERT), (10, RowKind.DELETE))
