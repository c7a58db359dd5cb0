"""Ranges in the order of a timestamp, for several who walk over them at their own pace."""

import time

from applier.coordinator.cache import BEFORE_ALL, IndexedRange, RangeIndex
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId


def name(number):
    return RangeId(Stream("t", 0), Offset(number), Offset(number + 1))


def index_of(times):
    index = RangeIndex()
    for number, ts in enumerate(times):
        index.add(Ts(ts), number, name(number))
    return index


def numbers(entries):
    return [entry.number for entry in entries]


def test_ranges_come_in_the_order_of_their_timestamps_and_what_was_removed_does_not_come():
    index = index_of([9, 5, 7, 5, 8])
    index.remove(Ts(7), 2, name(2))
    assert numbers(index) == [1, 3, 4, 0]
    assert index.first_after(BEFORE_ALL) == IndexedRange(Ts(5), 1, name(1))
    assert index.first_after(Ts(9)) is None


def test_who_walks_gets_what_lies_between_two_timestamps_the_second_included():
    index = index_of([9, 5, 7, 5, 8])
    assert numbers(index.between(BEFORE_ALL, Ts(5))) == [1, 3]
    assert numbers(index.between(Ts(5), Ts(8))) == [2, 4]
    assert numbers(index.between(Ts(8), Ts(5))) == []


def test_another_reading_of_a_range_is_another_entry():
    index = index_of([5])
    index.add(Ts(5), 7, name(0))
    index.remove(Ts(5), 0, name(0))
    assert numbers(index) == [7]


def test_a_range_costs_few_microseconds_among_a_hundred_thousand():
    index = index_of(range(0, 200_000, 2))
    began = time.process_time()
    for number in range(1000):
        index.add(Ts(2 * number + 1), -1, name(0))
        index.remove(Ts(2 * number + 1), -1, name(0))
    assert (time.process_time() - began) / 2000 < 2e-3
