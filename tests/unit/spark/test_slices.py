"""When cached batches are divided at the next DDLs, and what is kept of it: only where that is less than to read them for each segment."""

from dataclasses import replace

import pytest

from applier.model.errors import SparkSessionLost
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.sinks.progress import WriteOutcome, WriteState
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.spark import batch as slices
from applier.spark.batch import Batch, Shuffle, Slices
from applier.spark.runner import SparkRunner
from applier.tasks.handover import RangeContent
from applier.tasks.listen import ListenTask
from applier.tasks.plan import SLICED_SEGMENT_ROWS, SMALL_SEGMENT_BYTES, SMALL_SEGMENT_ROWS, PreparePlan
from tests.builders.planning import between
from tests.rig.answering_spark import AnsweringSpark
from tests.rig.fake_source import MemoryReader

MANY = 48 << 20
FEW = 100_000
DDLS = tuple(Ts(ts) for ts in range(20, 1010, 10))
RANGES = [RangeId(Stream("feed", partition), Offset(0), Offset(5)) for partition in range(2)]
TASKS = [ListenTask(range=range_id, floor_ts=Ts(0), buckets=2) for range_id in RANGES]
COMMITTED = WriteOutcome(state=WriteState.COMMITTED)


def plan_of(after=0, upto=10, later=DDLS, ranges=RANGES, *, again=False, buckets=2, writers=0):
    return PreparePlan(
        windows=(between(after=after, upto=upto, again=again),),
        ranges=dict.fromkeys(ranges, RangeContent(1, 1, 1)), tables={}, rekeyed={}, rows=1, buckets=buckets, dialect=None, policy=None,
        later=tuple(later), writers=writers,
    )  # fmt: skip


def report(range_id, size=MANY, max_ts=2000):
    return RangeReport(range=range_id, resolved_ts=Ts(1), bytes=size, max_ts=Ts(max_ts))


def batch(size=MANY, max_ts=2000, ranges=1):
    reports = [report(RangeId(Stream("feed", number), Offset(0), Offset(5)), size // ranges, max_ts) for number in range(ranges)]
    spark = AnsweringSpark()
    return Batch(Shuffle(spark.parallelize(()), 3), reports)


def numbers(batches, *plans):
    """The slice of each segment; None for one that reads whole batches."""
    made = Slices()
    found = [made.of(batches, plan) for plan in plans]
    assert all(one is None or len(one[0]) == len(batches) for one in found)
    return [one and one[1] for one in found]


def test_many_ddls_among_much_that_is_cached_have_it_divided_and_each_segment_has_the_next_slice():
    assert numbers([batch()], plan_of(), plan_of(10, 20, DDLS[1:]), plan_of(20, 30, DDLS[2:])) == [1, 2, 3]


def test_slices_serve_segments_that_end_within_them_and_those_of_further_ddls():
    later = plan_of(12, 17, [Ts(19), Ts(20)])
    assert numbers([batch()], plan_of(), later) == [1, 2]


@pytest.mark.parametrize(
    ("batches", "plan"),
    [
        ([batch(FEW)], plan_of()),
        ([batch()], plan_of(later=())),
        ([batch()], plan_of(later=DDLS[:1])),
        ([batch(max_ts=15)], plan_of()),
        ([batch(ranges=4_000)], plan_of(buckets=64)),
        ([batch()], plan_of(again=True)),
        ([batch()], plan_of(writers=3)),
    ],
    ids=["little is cached", "no ddl", "few ddls", "the batch ends before the next ddl", "more ends than rows", "again", "rows ahead"],
)
def test_a_segment_reads_whole_batches_where_dividing_them_costs_more_or_would_miss_rows(batches, plan):
    assert numbers(batches, plan) == [None]


def test_a_batch_that_comes_later_is_divided_at_the_same_ddls_if_it_reaches_beyond_several():
    first, wide, narrow = batch(), batch(), batch(max_ts=25)
    made = Slices()
    assert made.of([first], plan_of())
    shuffles, number = made.of([first, wide], plan_of(10, 20, DDLS[1:]))
    assert (number, shuffles[0]) == (2, first.divided_at((Ts(0), Ts(10), *DDLS)))
    assert wide.is_divided_at((Ts(0), Ts(10), *DDLS))
    assert made.of([narrow], plan_of(20, 30, DDLS[2:])) is None
    assert not narrow.is_divided_at((Ts(0), Ts(10), *DDLS))


def test_behind_the_last_slice_it_is_divided_again_and_the_first_slices_are_deleted(monkeypatch):
    monkeypatch.setattr(slices, "COST_OF_A_JOB", 0)
    one = batch()
    spark = one.shuffle.context
    made = Slices()
    assert made.of([one], plan_of(0, 10, [Ts(20), Ts(30), Ts(40)]))
    assert made.of([one], plan_of(40, 50, [Ts(60), Ts(70), Ts(80)])) == ([one.divided_at((Ts(40), Ts(50), Ts(60), Ts(70), Ts(80)))], 1)
    assert spark.kept_shuffles == 2, "the batch, and its slices"
    one.forget()
    assert spark.kept_shuffles == 0


def listened(*deliveries):
    spark = AnsweringSpark([(report(RANGES[0]), report(RANGES[1]))], *deliveries)
    runner = SparkRunner(spark, lambda: MemoryReader({}), OPEN_PROTOCOL)
    runner.listen(TASKS)
    return spark, runner


@pytest.mark.parametrize(
    "ends", [lambda runner: runner.release(RANGES), lambda runner: runner.release_all()], ids=["release", "release_all"]
)
def test_slices_are_kept_as_long_as_their_batch(ends):
    spark, runner = listened([COMMITTED], [COMMITTED])
    for plan in (plan_of(), plan_of(10, 20, DDLS[1:], RANGES[1:])):
        assert runner.apply(plan, None) == COMMITTED
        assert spark.kept_shuffles == 2
        runner.release(RANGES[:1])
    ends(runner)
    assert spark.kept_shuffles == 0
    assert runner.apply(plan_of(20, 30, DDLS[2:]), None).state is WriteState.RELOAD


@pytest.mark.parametrize(
    ("plan", "is_sliced"),
    [
        (replace(plan_of(), rows=SLICED_SEGMENT_ROWS), True),
        (replace(plan_of(), rows=SLICED_SEGMENT_ROWS + 1), False),
        (replace(plan_of(), rows=SLICED_SEGMENT_ROWS, size=SMALL_SEGMENT_BYTES + 1), False),
        (replace(plan_of(later=()), rows=SMALL_SEGMENT_ROWS + 1), False),
    ],
    ids=["as many as one task may have", "more", "too large", "no ddl"],
)
def test_a_segment_that_can_be_read_divided_is_not_prepared_by_several_tasks(plan, is_sliced):
    _, runner = listened([COMMITTED] if is_sliced else [])
    outcome = runner.apply(plan, None)
    assert (outcome.state is WriteState.COMMITTED) is is_sliced
    assert is_sliced or "announcements of prepared segments" in str(outcome.error)


def test_slices_that_cannot_be_planned_because_spark_has_ended_are_a_lost_session():
    spark, runner = listened()
    spark._jsc = None
    spark.error = AttributeError("'NoneType' object has no attribute 'sc'")
    spark.is_dead = True
    outcome = runner.apply(plan_of(), None)
    assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, SparkSessionLost)
