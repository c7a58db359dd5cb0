"""A listener's report can be lost although its job succeeds: then the range counts as not read, and nothing of it stays cached."""

from types import SimpleNamespace

from applier.model.errors import JobAborted
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.spark.runner import SparkRunner
from applier.tasks.listen import ListenTask, RangeFailure
from tests.rig.fake_source import MemoryReader

RANGE = RangeId(Stream("feed", 0), Offset(0), Offset(5))


class ForgetfulSpark:
    """A context whose jobs succeed, and whose accumulators hear of nothing. It is its own RDD."""

    def __init__(self):
        self.cached = 0
        self._jrdd = SimpleNamespace(count=lambda: 1)

    def accumulator(self, value, param):
        return SimpleNamespace(value=param.zero(value))

    def setLocalProperty(self, name, value):  # noqa: N802 - Spark's name
        pass

    def parallelize(self, items, slices):
        return self

    def mapPartitions(self, function):  # noqa: N802 - Spark's name
        return self

    def union(self, rdds):
        return self

    def persist(self, level):
        self.cached += 1
        return self

    def unpersist(self):
        self.cached -= 1


def test_a_range_without_a_report_fails_and_is_released():
    spark = ForgetfulSpark()
    runner = SparkRunner(spark, MemoryReader({}), OPEN_PROTOCOL)
    (outcome,) = runner.listen([ListenTask(range=RANGE, floor_ts=Ts(0), buckets=1)])
    assert isinstance(outcome, RangeFailure)
    assert outcome.range == RANGE
    assert isinstance(outcome.error, JobAborted)
    assert outcome.error.remedy
    assert spark.cached == 0
