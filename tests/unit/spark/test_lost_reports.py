"""What jobs deliver to the driver may be lost although they succeed: then nothing was read, prepared or written, and nothing is kept."""

from dataclasses import replace

import pytest

from applier.model.errors import JobAborted
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.model.seal import seal
from applier.sinks.progress import WriteOutcome, WriteState
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.spark.runner import SparkRunner
from applier.tasks.listen import ListenTask, RangeFailure
from applier.tasks.plan import PreparePlan
from applier.tasks.port import Prepared
from applier.tasks.prepare import Rendered
from tests.builders.planning import between
from tests.rig.answering_spark import AnsweringSpark, frames
from tests.rig.fake_source import MemoryReader

RANGES = [RangeId(Stream("feed", partition), Offset(0), Offset(5)) for partition in range(3)]
TASKS = [ListenTask(range=range_id, floor_ts=Ts(0), buckets=2) for range_id in RANGES]
REPORTS = tuple(RangeReport(range=range_id, resolved_ts=Ts(1)) for range_id in RANGES)
FROM_TWO_TASKS = [REPORTS[:2], REPORTS[2:]]
ANNOUNCED = [Rendered(segment, reducer) for reducer in range(2) for segment in range(2)]
PLAN = PreparePlan(
    windows=(between(after=0, upto=5), between(after=5, upto=9)),
    ranges=dict.fromkeys(RANGES), tables={}, rekeyed={}, rows=10_000, buckets=2, dialect=None, policy=None,
)  # fmt: skip
COMMITTED = WriteOutcome(state=WriteState.COMMITTED)


def runner_of(spark):
    return SparkRunner(spark, lambda: MemoryReader({}), OPEN_PROTOCOL)


def listened(*deliveries):
    """A runner that has listened; its next jobs deliver these."""
    spark = AnsweringSpark(FROM_TWO_TASKS, *deliveries)
    runner = runner_of(spark)
    assert runner.listen(TASKS) == list(REPORTS)
    return spark, runner


def test_a_range_without_a_report_fails_and_is_released_whatever_the_byte_at_which_the_reports_break_off():
    whole = frames(FROM_TWO_TASKS)
    first = len(frames(FROM_TWO_TASKS[:1]))
    for size in range(len(whole)):
        spark = AnsweringSpark(whole[:size])
        runner = runner_of(spark)
        outcomes = runner.listen(TASKS)
        reported = [outcome.range for outcome in outcomes if isinstance(outcome, RangeReport)]
        assert reported in ([], RANGES[:2] if size >= first else []), "of a task, all of its ranges or none"
        for outcome in outcomes[len(reported) :]:
            assert isinstance(outcome, RangeFailure)
            assert isinstance(outcome.error, JobAborted)
            assert outcome.error.remedy
        assert [outcome.range for outcome in outcomes] == RANGES
        assert spark.kept_shuffles == bool(reported)
        runner.release(reported)
        assert spark.kept_shuffles == 0


def test_no_report_announcement_or_outcome_is_taken_of_which_a_byte_has_changed():
    def changed(data):
        return data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]

    outcomes = runner_of(AnsweringSpark(changed(frames(FROM_TWO_TASKS)))).listen(TASKS)
    assert [type(outcome.error) for outcome in outcomes] == [JobAborted] * len(TASKS)
    _, runner = listened(changed(frames(ANNOUNCED)))
    assert isinstance(runner.prepare(PLAN), JobAborted)
    spark, runner = listened(ANNOUNCED)
    prepared = runner.prepare(PLAN)
    spark.runJob = lambda *_: [changed(seal(COMMITTED))]
    assert runner.write(prepared, 0, None).state is WriteState.RELOAD


def test_nothing_is_prepared_whatever_the_byte_at_which_the_announcements_break_off():
    whole = frames(ANNOUNCED)
    for size in range(len(whole)):
        spark, runner = listened(whole[:size])
        assert isinstance(runner.prepare(PLAN), JobAborted)
        assert spark.kept_shuffles == 1, "the ranges stay cached, and nothing else is kept"


@pytest.mark.parametrize("announced", [ANNOUNCED[:-1], [*ANNOUNCED, ANNOUNCED[0]]])
def test_nothing_is_prepared_where_an_announcement_is_missing_or_comes_twice(announced):
    spark, runner = listened(announced)
    error = runner.prepare(PLAN)
    assert isinstance(error, JobAborted)
    assert error.remedy
    assert spark.kept_shuffles == 1


@pytest.mark.parametrize("delivered", [[], [COMMITTED, COMMITTED]])
def test_only_the_sink_knows_what_a_write_has_done_whose_outcome_was_not_received(delivered):
    _, runner = listened(ANNOUNCED, delivered)
    prepared = runner.prepare(PLAN)
    outcome = runner.write(prepared, 0, None)
    assert (outcome.state, type(outcome.error)) == (WriteState.RELOAD, JobAborted)


def test_what_is_prepared_is_kept_until_it_is_dropped_and_rerouted_rows_with_it():
    for plan, made in ((PLAN, 1), (PLAN.__class__(**{name: getattr(PLAN, name) for name in PLAN.__slots__} | {"bucket_splits": 2}), 2)):
        spark, runner = listened([Rendered(segment, reducer) for reducer in range(plan.reducers) for segment in range(2)], [COMMITTED])
        prepared = runner.prepare(plan)
        assert isinstance(prepared, Prepared)
        assert runner.write(prepared, 1, None) == COMMITTED
        assert spark.kept_shuffles == 1 + made
        runner.drop(prepared)
        runner.drop(prepared)
        assert spark.kept_shuffles == 1
        assert runner.write(prepared, 1, None).state is WriteState.RELOAD
        runner.release_all()
        assert spark.kept_shuffles == 0


def test_the_batch_of_a_range_is_kept_until_its_last_range_is_released_or_read_again():
    spark, runner = listened([(REPORTS[0],)])
    runner.release(RANGES[1:2])
    runner.listen(TASKS[:1])
    assert spark.kept_shuffles == 2
    runner.release(RANGES[2:])
    assert spark.kept_shuffles == 1
    runner.release(RANGES)
    assert spark.kept_shuffles == 0


@pytest.mark.parametrize("rows", [10_000, 1])
def test_a_batch_that_is_released_while_a_job_reads_it_is_deleted_when_the_job_has_ended(rows):
    spark, runner = listened(ANNOUNCED if rows > 1 else [COMMITTED])
    made, run_job = rows > 1, spark.runJob

    def run(*asked):
        runner.release(RANGES)
        assert spark.kept_shuffles == 1 + made
        return run_job(*asked)

    spark.runJob = run
    found = runner.prepare(PLAN) if made else runner.apply(replace(PLAN, rows=rows, windows=PLAN.windows[:1]), None)
    assert found == COMMITTED or isinstance(found, Prepared)
    assert spark.kept_shuffles == made
    assert isinstance(runner.prepare(PLAN), JobAborted)
    runner.release_all()
    assert spark.kept_shuffles == 0
