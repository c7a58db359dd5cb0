"""A range that crashes its listener fails alone, with its place; the ranges beside it are read."""

import pytest

from applier.model.errors import JobAborted, SourceError, SparkSessionLost
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.replica.recovery import is_transient
from applier.spark.failing_range import MAX_FAILED_JOBS, MAX_SINGLE_FAILURES, TASK_BYTES, FailedJob, FailingRanges
from applier.tasks.listen import ListenTask, RangeFailure

MOST_TASKS = 3


def task(partition, end=10, expected_bytes=0):
    range_id = RangeId(Stream("feed", partition), Offset(5), Offset(end))
    return ListenTask(range=range_id, floor_ts=Ts(1), buckets=1, expected_bytes=expected_bytes)


class Spark:
    """Jobs fail while they hold one of ``deadly``; Spark names the task, or (``is_vague``) does not. An accident happens ``once``.

    ``jobs``: the ranges of each job; ``groups``: how many ranges each of its tasks has.
    """

    def __init__(self, *deadly, once=(), is_vague=False, error=None):
        self.deadly, self.once, self.is_vague = set(deadly), set(once), is_vague
        self.error = error or JobAborted("Spark job aborted", cause="the worker crashed")
        self.jobs, self.groups = [], []

    def __call__(self, groups):
        partitions = [[one.range.stream.partition for one in group] for group in groups]
        self.jobs.append(sorted(partition for group in partitions for partition in group))
        self.groups.append([len(group) for group in groups])
        for number, group in enumerate(partitions):
            if hit := set(group) & (self.deadly | self.once):
                self.once -= hit
                return FailedJob(self.error, None if self.is_vague else number)
        return [RangeReport(range=one.range, resolved_ts=Ts(1)) for group in groups for one in group]


def failed(outcomes):
    return [outcome.range.stream.partition for outcome in outcomes if isinstance(outcome, RangeFailure)]


def test_a_job_that_succeeds_is_the_only_one():
    spark = Spark()
    tasks = [task(n) for n in range(5)]
    assert [outcome.range for outcome in FailingRanges(spark, MOST_TASKS).listen(tasks)] == [one.range for one in tasks]
    assert spark.jobs == [[0, 1, 2, 3, 4]]


def test_nothing_is_listened_to_without_ranges():
    spark = Spark()
    assert FailingRanges(spark, MOST_TASKS).listen([]) == []
    assert spark.jobs == []


@pytest.mark.parametrize("expected_bytes", [0, TASK_BYTES])
@pytest.mark.parametrize("is_vague", [True, False])
@pytest.mark.parametrize("deadly", [{0}, {3}, {6}, {1, 5}])
def test_only_the_deadly_ranges_fail_and_outcomes_keep_their_order(deadly, is_vague, expected_bytes):
    tasks = [task(n, expected_bytes=expected_bytes) for n in range(7)]
    outcomes = FailingRanges(Spark(*deadly, is_vague=is_vague), MOST_TASKS).listen(tasks)
    assert failed(outcomes) == sorted(deadly)
    assert [outcome.range for outcome in outcomes] == [one.range for one in tasks]


def test_the_error_names_stream_offsets_and_sparks_cause_and_is_transient():
    (outcome,) = FailingRanges(Spark(3), MOST_TASKS).listen([task(3, end=20)])
    assert isinstance(outcome.error, SourceError)
    assert outcome.error.facts == {
        "kind": "listener_died", "topic": "feed", "partition": 3, "offset": 5, "end": 20, "cause": "the worker crashed"
    }  # fmt: skip
    assert outcome.error.remedy
    assert is_transient(outcome.error)


def test_a_range_that_fails_once_is_read_by_a_retry():
    spark = Spark(once={2})
    assert failed(FailingRanges(spark, MOST_TASKS).listen([task(n) for n in range(4)])) == []
    assert spark.jobs == [[0, 1, 2, 3], [0, 1], [2, 3]], "all ranges shared one task, so that its number says nothing"


def test_the_group_that_spark_names_is_read_apart_from_the_others():
    spark = Spark(4, once=())
    tasks = [task(n, expected_bytes=TASK_BYTES) for n in range(6)]
    assert failed(FailingRanges(spark, MOST_TASKS).listen(tasks)) == [4]
    assert spark.groups[0] == [2, 2, 2]
    assert spark.jobs[1:3] == [[0, 2, 3, 5], [1, 4]]
    assert spark.jobs[3:] == [[1], [4], *[[4]] * (MAX_SINGLE_FAILURES - 1)]


def test_a_single_range_is_retried_before_it_fails():
    spark = Spark(once={0})
    assert failed(FailingRanges(spark, MOST_TASKS).listen([task(0)])) == []
    spark = Spark(0)
    assert failed(FailingRanges(spark, MOST_TASKS).listen([task(0)])) == [0]
    assert spark.jobs == [[0]] * MAX_SINGLE_FAILURES


def test_a_failing_range_that_is_planned_again_has_its_own_job_until_it_is_read():
    spark = Spark(1)
    search = FailingRanges(spark, MOST_TASKS)
    search.listen([task(n) for n in range(3)])
    spark.jobs.clear()
    assert failed(search.listen([task(0), task(1, end=30), task(2)])) == [1]
    assert spark.jobs == [[0, 2], [1]], "the others are read once, in a job that does not fail"
    spark.deadly.clear()
    assert failed(search.listen([task(0), task(1), task(2)])) == []
    spark.jobs.clear()
    search.listen([task(0), task(1), task(2)])
    assert spark.jobs == [[0, 1, 2]]


def test_no_range_is_suspected_after_everything_was_released():
    spark = Spark(1)
    search = FailingRanges(spark, MOST_TASKS)
    search.listen([task(0), task(1)])
    search.forget()
    spark.jobs.clear()
    search.listen([task(0), task(1)])
    assert spark.jobs[0] == [0, 1]


def test_where_every_job_fails_the_ranges_fail_with_the_jobs_error():
    spark = Spark(*range(200))
    outcomes = FailingRanges(spark, MOST_TASKS).listen([task(n) for n in range(200)])
    assert failed(outcomes) == list(range(200))
    assert len(spark.jobs) == MAX_FAILED_JOBS + 1
    assert any(isinstance(outcome.error, JobAborted) for outcome in outcomes)


def test_no_job_is_started_after_the_session_was_lost():
    spark = Spark(1, error=SparkSessionLost("gone"))
    outcomes = FailingRanges(spark, MOST_TASKS).listen([task(n) for n in range(3)])
    assert all(isinstance(outcome.error, SparkSessionLost) for outcome in outcomes)
    assert len(spark.jobs) == 1
