"""Partitions that are added: up to where the order of rows proves nothing, and which streams get no position yet."""

from types import SimpleNamespace

from applier.model.position import NO_TS, Listing, Offset, PartitionExtent, Stream, Ts
from applier.replica.segment_writer import ALL_TS, PartitionGrowth

ONE, TWO, OTHER = Stream("feed", 0), Stream("feed", 1), Stream("other", 0)
SOURCE = SimpleNamespace(times=SimpleNamespace(time_ms=lambda _stream, offset: 1_000 + offset, ts_at=Ts))
"""A timestamp is a time in milliseconds."""


def listing(**ends):
    streams = {"one": ONE, "two": TWO, "other": OTHER}
    return Listing({streams[name]: PartitionExtent(Offset(min(end, 3)), Offset(end)) for name, end in ends.items()})


def growth_of(*stored):
    growth = PartitionGrowth(SOURCE, 600)
    growth.begin(stored)
    return growth


def test_a_new_partition_is_in_doubt_until_the_checkpoint_has_passed_its_beginning_and_some_time_more():
    growth = growth_of(ONE)
    assert growth.listed(listing(one=5, two=5), Ts(900)) == 1_603
    assert growth.without_new({ONE: 1, TWO: 2}) == {ONE: 1}
    assert growth.listed(listing(one=5, two=5), Ts(1_603)) == 1_603  # rows at exactly the checkpoint may still come
    assert growth.listed(listing(one=5, two=5), Ts(1_604)) == NO_TS
    assert growth.without_new({ONE: 1, TWO: 2}) == {ONE: 1, TWO: 2}
    assert growth.listed(listing(one=5, two=5), Ts(1_605)) == NO_TS


def test_a_new_partition_without_a_record_may_be_in_use():
    growth = growth_of(ONE)
    assert growth.listed(listing(one=5, two=0), Ts(9_999)) == ALL_TS
    assert growth.listed(listing(one=5, two=5), Ts(900)) == 1_603


def test_an_excluded_partition_is_not_in_use():
    growth = PartitionGrowth(SOURCE, 600, {"feed": 1})
    growth.begin([ONE])
    assert growth.listed(listing(one=5, two=0), Ts(900)) == NO_TS


def test_what_was_there_first_is_not_new():
    growth = growth_of()
    assert growth.listed(listing(one=5, two=0), Ts(900)) == NO_TS
    assert growth.listed(listing(one=5, two=5, other=5), Ts(900)) == NO_TS


def test_a_later_run_sees_a_partition_without_a_position():
    growth = growth_of(ONE, TWO)
    assert growth.listed(listing(one=5, two=5), Ts(900)) == NO_TS
    growth.begin([ONE])
    assert growth.listed(listing(one=5, two=5), Ts(900)) == 1_603
