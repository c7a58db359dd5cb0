from applier.coordinator.sweep import SMALL, HeapEntry, RangeHeap
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId


def name(number):
    return RangeId(Stream("t", 0), Offset(number), Offset(number + 1))


def heap_of(numbers):
    there = {name(number): number for number in numbers}
    heap = RangeHeap(lambda entry: there.get(entry.name) == entry.number)
    for number in numbers:
        heap.add(Ts(1000 - number), number, name(number))
    return heap, there


def taken(heap):
    found = []
    while (first := heap.first) is not None:
        assert heap.pop() == first
        found.append(first.number)
    return found


def test_the_earliest_comes_first_and_what_is_gone_does_not_come():
    heap, there = heap_of(range(9))
    for gone in (8, 3, 0):
        del there[name(gone)]
        heap.lost_one()
    assert heap.first == HeapEntry(Ts(993), 7, name(7))
    assert taken(heap) == [7, 6, 5, 4, 2, 1]
    assert heap.first is None


def test_another_reading_of_a_range_does_not_stand_for_the_first():
    heap, there = heap_of([1])
    there[name(1)] = 2
    heap.lost_one()
    heap.add(Ts(5), 2, name(1))
    assert [heap.first, len(heap)] == [HeapEntry(Ts(5), 2, name(1)), 2]
    assert taken(heap) == [2]


def test_what_is_gone_is_let_go_though_nothing_comes_up():
    heap, there = heap_of(range(1000))
    for number in range(1000):
        del there[name(number)]
        heap.lost_one()
        assert len(heap) <= 2 * len(there) + SMALL + 1
    assert heap.first is None


def test_letting_go_costs_the_same_each_however_many_there_are():
    looks = []

    def let_go(size):
        looks.clear()
        there = set(range(size))
        heap = RangeHeap(lambda entry: looks.append(entry) or entry.number in there)
        for number in range(size):
            heap.add(Ts(number), number, name(number))
        for number in range(size):
            there.remove(number)
            heap.lost_one()
        return len(looks)

    assert let_go(4000) < 2.2 * let_go(2000)
