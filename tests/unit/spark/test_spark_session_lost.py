"""The Spark session may end at any time: the run gets one plain error, no further job is tried, and releasing does not fail."""

from dataclasses import replace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.util import _load_from_socket

from applier.model.errors import JobAborted, SourceError, SparkSessionLost
from applier.sinks.progress import WriteState
from applier.spark.failing_range import MAX_SINGLE_FAILURES
from applier.tasks.listen import RangeFailure
from tests.rig.answering_spark import AnsweringSpark
from tests.unit.spark.test_lost_reports import ANNOUNCED, PLAN, RANGES, TASKS, listened, runner_of

RAISED = "PythonException: [PYTHON_EXCEPTION] Traceback:\n  File x\nMemoryError: too much\n SQLSTATE: 38000\n\tat org.x\n\tat x"
NOTHING = AttributeError("'NoneType' object has no attribute 'setCallSite'")


def refused():
    """What PySpark raises where the JVM has ended before its results were fetched."""
    try:
        with _load_from_socket(["/no/such/socket", None], None) as stream:
            list(stream)
    except UnboundLocalError as error:
        return error
    raise AssertionError("PySpark has another way to fail")


def works(runner, prepared):
    """Everything that needs a session, once what it works on is there: the error of each."""
    yield runner.prepare(PLAN)
    yield runner.write(prepared, 0, None).error
    for plan in (PLAN, replace(PLAN, rows=1), replace(PLAN, bucket_splits=2)):
        yield runner.apply(replace(plan, windows=plan.windows[:1]), None).error


STOPPED = Py4JError("Cannot call methods on a stopped SparkContext.")


@pytest.mark.parametrize(
    ("error", "is_dead"),
    [
        *((error, is_dead) for error in (ConnectionRefusedError(), Py4JNetworkError("no answer"), STOPPED) for is_dead in (True, False)),
        (refused(), False),
    ],
    ids=str,
)
def test_a_lost_session_has_its_own_error_and_close_does_not_fail(error, is_dead):
    spark, runner = listened(ANNOUNCED)
    prepared = runner.prepare(PLAN)
    spark.error, spark.is_dead = error, is_dead
    outcomes = runner.listen(TASKS)
    assert all(isinstance(outcome, RangeFailure) and isinstance(outcome.error, SparkSessionLost) for outcome in outcomes)
    for found in works(runner, prepared):
        assert isinstance(found, SparkSessionLost)
        assert found.remedy
    assert runner.write(prepared, 0, None).state is WriteState.FAILED
    runner.drop(prepared)
    runner.release(RANGES)
    runner.close()


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_session_that_the_other_thread_has_ended_during_a_job_is_lost(is_dead):
    spark, runner = listened(ANNOUNCED)
    prepared = runner.prepare(PLAN)
    spark.error, spark.is_dead, spark._jsc = NOTHING, is_dead, None
    outcomes = runner.listen(TASKS)
    assert isinstance(outcomes[0].error, SparkSessionLost)
    assert outcomes[0].error.facts["cause"].startswith("'NoneType' object has no attribute")
    assert all(isinstance(found, SparkSessionLost) for found in works(runner, prepared))
    runner.drop(prepared)
    runner.release(RANGES)


def test_a_defect_of_the_applier_is_not_taken_for_a_lost_session():
    spark, runner = listened(ANNOUNCED)
    prepared = runner.prepare(PLAN)
    spark.error = NOTHING
    for work in (
        lambda: runner.listen(TASKS),
        lambda: runner.prepare(PLAN),
        lambda: runner.write(prepared, 0, None),
        lambda: runner.apply(replace(PLAN, rows=1), None),
    ):
        with pytest.raises(AttributeError):
            work()


def test_an_aborted_job_fails_its_only_range_with_the_python_error_and_leaves_nothing_cached():
    spark = AnsweringSpark()
    spark.error = Py4JError(RAISED)
    (outcome,) = runner_of(spark).listen(TASKS[:1])
    assert isinstance(outcome.error, SourceError)
    assert outcome.error.facts["cause"].endswith("MemoryError: too much")
    assert (spark.said["PairwiseRDD"], spark.kept_shuffles) == (MAX_SINGLE_FAILURES, 0)


def test_an_aborted_job_is_a_reason_to_reload_and_keeps_nothing_of_what_it_has_prepared():
    spark, runner = listened(ANNOUNCED)
    prepared = runner.prepare(PLAN)
    kept = spark.kept_shuffles
    spark.error = Py4JError(RAISED)
    assert all(type(found) is JobAborted for found in works(runner, prepared))
    assert runner.write(prepared, 0, None).state is WriteState.RELOAD
    assert spark.kept_shuffles == kept


def test_ranges_of_another_session_are_a_reason_to_reload():
    _, first = listened(ANNOUNCED)
    prepared = first.prepare(PLAN)
    spark = AnsweringSpark()
    spark.error = AssertionError("asked")
    assert all(type(found) is JobAborted for found in works(runner_of(spark), prepared))
