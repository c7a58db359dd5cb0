"""What a report says of the resolved events of its range, in the order in which rows and events come."""

from applier.model.position import Ts
from applier.model.range_report import NO_PROMISES, Promises
from applier.tasks.range_summary import RangePromises


def promises_of(*events):
    """A list is rows, a number a resolved event."""
    found = RangePromises()
    for event in events:
        if isinstance(event, list):
            found.rows(event)
        else:
            found.resolved(Ts(event))
    return found.found()


def test_an_empty_range_has_none():
    assert promises_of() == NO_PROMISES


def test_rows_before_the_first_promise_are_unpromised_and_behind_none():
    assert promises_of([7, 5], [6], 4, [9]) == Promises(first_ts=Ts(4), unpromised_ts=Ts(7))
    assert promises_of([7]) == Promises(unpromised_ts=Ts(7))


def test_the_least_later_promise_shows_that_the_producer_began_again():
    assert promises_of(4, 9, 5).least_later_ts == 5
    assert promises_of(4, 4).least_later_ts == 4


def test_rows_below_the_greatest_promise_are_behind_it_up_to_just_below():
    assert promises_of(9, 4, [9, 12]).behind_ts == 0
    assert promises_of(9, [6], [3]).behind_ts == 6
    assert promises_of(9, [6, 12]).behind_ts == 8
