"""Spark is started by the first range, in the thread that listens; closing meanwhile leaves nothing behind."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest

from applier.model.errors import InvariantViolation, JobAborted, SparkRestartedTooOften, SparkSessionLost
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.sinks.write_outcome import WriteOutcome, WriteState
from applier.spark.lazy import LazyRunner
from applier.spark.loss import MAX_LOSSES, PERIOD_S
from applier.tasks.listen import RangeFailure


class Made:
    def __init__(self):
        self.is_closed = False

    def listen(self, tasks):
        return list(tasks)

    def release_all(self):
        raise AssertionError("nothing was made")

    def close(self):
        self.is_closed = True


def test_nothing_is_made_without_a_range():
    runner = LazyRunner(lambda: pytest.fail("made"))
    runner.release_all()
    runner.release([])
    runner.close()


def test_closing_while_it_is_made_in_another_thread_waits_and_closes_what_was_made():
    begun, may_end, made = Event(), Event(), Made()

    def make():
        begun.set()
        may_end.wait()
        return made

    runner = LazyRunner(make)
    with ThreadPoolExecutor(2) as pool:
        listening = pool.submit(runner.listen, [])
        begun.wait()
        closing = pool.submit(runner.close)
        may_end.set()
        assert listening.result() == []
        closing.result()
    assert made.is_closed


def test_nothing_is_made_after_it_was_closed():
    runner = LazyRunner(lambda: pytest.fail("made"))
    runner.close()
    with pytest.raises(InvariantViolation):
        runner.listen([])


class Ended:
    """A runner whose Spark has ended."""

    def __init__(self):
        self.closed = 0

    def listen(self, tasks):
        return [RangeFailure(RangeId(Stream("t", 0), Offset(0), Offset(1)), SparkSessionLost("gone"))]

    def apply(self, plan):
        return WriteOutcome(state=WriteState.FAILED, error=SparkSessionLost("gone"))

    def close(self):
        self.closed += 1


def test_another_is_made_when_spark_was_lost_and_the_lost_one_is_cleared_away_once():
    made = [Ended(), Made()]
    first, second = made
    runner = LazyRunner(lambda: made.pop(0))
    assert isinstance(runner.listen([])[0], RangeFailure)
    assert first.closed == 1
    assert runner.listen([7]) == [7]
    runner.close()
    assert (first.closed, second.is_closed) == (1, True)


def test_a_loss_while_applying_is_noticed_too():
    class EndsLater(Ended):
        listen = Made.listen

    made = [EndsLater(), Made()]
    runner = LazyRunner(lambda: made.pop(0))
    assert runner.listen([7]) == [7]
    assert runner.apply(None).state is WriteState.FAILED
    assert runner.listen([8]) == [8]
    assert made == []


def test_what_was_cached_by_a_lost_spark_is_a_reason_to_rebuild_and_starts_no_other_in_the_thread_that_applies():
    made = [Ended()]
    runner = LazyRunner(lambda: made.pop(0))
    runner.listen([])
    written = runner.apply(None)
    assert (written.state, type(written.error)) == (WriteState.REBUILD, JobAborted)


def test_nothing_is_applied_after_it_was_closed():
    runner = LazyRunner(lambda: pytest.fail("made"))
    runner.close()
    with pytest.raises(InvariantViolation):
        runner.apply(None)


def test_too_many_losses_lately_are_no_accident_and_old_ones_are_forgotten():
    now = [0.0]
    runner = LazyRunner(Ended, clock=lambda: now[0])
    for _ in range(MAX_LOSSES + 1):
        runner.listen([])
    with pytest.raises(SparkRestartedTooOften, match="spark ends again and again"):
        runner.listen([])
    now[0] = PERIOD_S
    assert isinstance(runner.listen([])[0], RangeFailure)


class Kept(Ended):
    """A runner that is lost at its next listening, and that may be asked to release something until it is closed."""

    def release(self, ranges):
        assert not self.closed, "the runner was closed before"

    def release_all(self):
        assert not self.closed, "the runner was closed before"


class LosesItself(LazyRunner):
    """Lets another thread lose the runner as soon as one method has looked at it, at each look where the lock does not forbid that."""

    looks = 0

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        if name == "_made" and value is not None and type(self).looks:
            type(self).looks -= 1
            loser = Thread(target=self.listen, args=([],))
            if not super().__getattribute__("_making").locked():
                loser.start()
                loser.join()
        return value


@pytest.mark.parametrize("release", [lambda runner: runner.release([]), lambda runner: runner.release_all()])
def test_a_runner_that_is_lost_while_something_is_released_is_looked_at_once(release):
    made = Kept()
    runner = LosesItself(lambda: made)
    runner._runner()
    LosesItself.looks = 1
    release(runner)
    assert made.closed == 0, "it is looked at under the lock: nobody loses it meanwhile"
