"""The Spark session may end at any time: the run gets one plain error, no further job is tried, and releasing does not fail."""

from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

from applier.model.errors import JobAborted, SourceError, SparkSessionLost
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId
from applier.sinks.write_outcome import WriteState
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.spark.failing_range import MAX_SINGLE_FAILURES
from applier.spark.runner import SparkRunner
from applier.tasks.listen import ListenTask, RangeFailure
from tests.rig.fake_source import MemoryReader

RANGE = RangeId(Stream("feed", 0), Offset(0), Offset(5))
TASK = ListenTask(range=RANGE, floor_ts=Ts(0), buckets=1)
PLAN = SimpleNamespace(ranges={RANGE: None}, is_small=True)
RAISED = "PythonException: [PYTHON_EXCEPTION] Traceback:\n  File x\nMemoryError: too much\n SQLSTATE: 38000\n\tat org.x\n\tat x"


class BrokenSpark:
    """A context whose jobs end with ``error``, or every word to it. It is its own RDD."""

    def __init__(self, error, *, is_dead=False):
        self._error, self._is_dead = error, is_dead
        self._jrdd = SimpleNamespace(count=self._fail)
        self._jsc = object()
        self.released = 0

    def _fail(self, *_):
        raise self._error

    def _answer(self, *_):
        return self._fail() if self._is_dead else self

    def accumulator(self, value, param):
        return SimpleNamespace(value=param.zero(value))

    def unpersist(self):
        self.released += 1
        return self._answer()

    def stop(self):
        """Fail once: Spark's own has forgotten the JVM then, and ends the rest."""
        is_dead, self._is_dead = self._is_dead, False
        if is_dead:
            self._fail()

    parallelize = mapPartitions = persist = union = setLocalProperty = coalesce = _answer  # noqa: N815 - Spark's names
    collect = _fail


@pytest.mark.parametrize("is_dead", [True, False])
@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(), Py4JNetworkError("no answer"), Py4JError("Cannot call methods on a stopped SparkContext.")]
)
def test_a_lost_session_has_its_own_error_and_close_does_not_fail(error, is_dead):
    runner = SparkRunner(BrokenSpark(error, is_dead=is_dead), MemoryReader({}), OPEN_PROTOCOL)
    (outcome,) = runner.listen([TASK])
    assert isinstance(outcome, RangeFailure)
    assert isinstance(outcome.error, SparkSessionLost)
    assert outcome.error.remedy
    runner._cached[RANGE] = runner._context
    written = runner.apply(PLAN)
    assert (written.state, type(written.error)) == (WriteState.FAILED, SparkSessionLost)
    runner.close()


NOTHING = AttributeError("'NoneType' object has no attribute 'setCallSite'")


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_session_that_the_other_thread_has_ended_during_a_job_is_lost(is_dead):
    spark = BrokenSpark(NOTHING, is_dead=is_dead)
    spark._jsc = None
    runner = SparkRunner(spark, MemoryReader({}), OPEN_PROTOCOL)
    (outcome,) = runner.listen([TASK])
    assert isinstance(outcome.error, SparkSessionLost)
    assert outcome.error.facts["cause"] == str(NOTHING)
    runner._cached[RANGE] = spark
    assert isinstance(runner.apply(PLAN).error, SparkSessionLost)
    runner.release([RANGE])


def test_a_defect_of_the_applier_is_not_taken_for_a_lost_session():
    runner = SparkRunner(BrokenSpark(NOTHING), MemoryReader({}), OPEN_PROTOCOL)
    with pytest.raises(AttributeError):
        runner.listen([TASK])
    runner._cached[RANGE] = runner._context
    with pytest.raises(AttributeError):
        runner.apply(PLAN)


def test_an_aborted_job_fails_its_only_range_with_the_python_error_and_leaves_nothing_cached():
    spark = BrokenSpark(Py4JError(RAISED))
    runner = SparkRunner(spark, MemoryReader({}), OPEN_PROTOCOL)
    (outcome,) = runner.listen([TASK])
    assert isinstance(outcome.error, SourceError)
    assert outcome.error.facts["cause"].endswith("MemoryError: too much")
    assert spark.released == MAX_SINGLE_FAILURES
    runner._cached[RANGE] = spark
    written = runner.apply(PLAN)
    assert (written.state, type(written.error)) == (WriteState.RELOAD, JobAborted)


def test_ranges_of_another_session_are_a_reason_to_reload():
    written = SparkRunner(BrokenSpark(AssertionError("asked")), MemoryReader({}), OPEN_PROTOCOL).apply(PLAN)
    assert (written.state, type(written.error)) == (WriteState.RELOAD, JobAborted)
