"""Spark is started by the first range, in the thread that listens; closing meanwhile leaves nothing behind."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest

from applier.model.errors import ApplierError, InvariantViolation, JobAborted, SparkRestartedTooOften, SparkSessionLost
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.sinks.progress import WriteOutcome, WriteState
from applier.spark.failure import MAX_LOSSES, PERIOD_S
from applier.spark.on_demand import OnDemandRunner
from applier.tasks.listen import RangeFailure
from applier.tasks.port import Prepared


class Made:
    def __init__(self):
        self.is_closed = False

    def listen(self, tasks):
        return list(tasks)

    def release_all(self):
        raise AssertionError("nothing was made")

    def close(self):
        self.is_closed = True


def test_no_runner_is_started_without_a_range():
    runner = OnDemandRunner(lambda: pytest.fail("made"))
    runner.release_all()
    runner.release([])
    runner.close()


def test_close_waits_for_a_start_in_another_thread_and_closes_that_runner():
    begun, may_end, made = Event(), Event(), Made()

    def make():
        begun.set()
        may_end.wait()
        return made

    runner = OnDemandRunner(make)
    with ThreadPoolExecutor(2) as pool:
        listening = pool.submit(runner.listen, [])
        begun.wait()
        closing = pool.submit(runner.close)
        may_end.set()
        assert listening.result() == []
        closing.result()
    assert made.is_closed


def test_no_runner_is_started_after_close():
    runner = OnDemandRunner(lambda: pytest.fail("made"))
    runner.close()
    with pytest.raises(InvariantViolation):
        runner.listen([])


class Ended:
    """A runner whose Spark has ended."""

    def __init__(self):
        self.closed = 0

    def listen(self, tasks):
        return [RangeFailure(RangeId(Stream("t", 0), Offset(0), Offset(1)), SparkSessionLost("gone"))]

    def prepare(self, plan):
        return SparkSessionLost("gone")

    def write(self, prepared, segment, plan):
        return WriteOutcome(state=WriteState.FAILED, error=SparkSessionLost("gone"))

    def apply(self, plan, write_plan):
        return WriteOutcome(state=WriteState.FAILED, error=SparkSessionLost("gone"))

    def close(self):
        self.closed += 1


def test_another_runner_is_started_after_a_loss_and_the_lost_one_is_closed_once():
    made = [Ended(), Made()]
    first, second = made
    runner = OnDemandRunner(lambda: made.pop(0))
    assert isinstance(runner.listen([])[0], RangeFailure)
    assert first.closed == 1
    assert runner.listen([7]) == [7]
    runner.close()
    assert (first.closed, second.is_closed) == (1, True)


USES = {
    "prepare": lambda runner: runner.prepare(None),
    "write": lambda runner: runner.write(Prepared((), None), 0, None),
    "apply": lambda runner: runner.apply(None, None),
}


def error_of(result):
    return result if isinstance(result, ApplierError) else result.error


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_loss_in_another_lane_starts_another_runner_too(use):
    class EndsLater(Ended):
        listen = Made.listen

    made = [EndsLater(), Made()]
    runner = OnDemandRunner(lambda: made.pop(0))
    assert runner.listen([7]) == [7]
    assert isinstance(error_of(use(runner)), SparkSessionLost)
    assert runner.listen([8]) == [8]
    assert made == []


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_ranges_of_a_lost_session_are_a_reason_to_reload_and_using_them_starts_no_other_runner(use):
    made = [Ended()]
    runner = OnDemandRunner(lambda: made.pop(0))
    runner.listen([])
    found = use(runner)
    assert type(error_of(found)) is JobAborted
    assert isinstance(found, JobAborted) or found.state is WriteState.RELOAD
    runner.drop(Prepared((), None))


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_nothing_is_applied_after_close(use):
    runner = OnDemandRunner(lambda: pytest.fail("made"))
    runner.close()
    with pytest.raises(InvariantViolation):
        use(runner)


def test_too_many_recent_losses_stop_the_run_and_old_ones_do_not_count():
    now = [0.0]
    runner = OnDemandRunner(Ended, clock=lambda: now[0])
    for _ in range(MAX_LOSSES + 1):
        runner.listen([])
    with pytest.raises(SparkRestartedTooOften, match="Spark restarted too often"):
        runner.listen([])
    now[0] = PERIOD_S
    assert isinstance(runner.listen([])[0], RangeFailure)


class Kept(Ended):
    """A runner that is lost at its next listening, and that may be asked to release something until it is closed."""

    def release(self, ranges):
        assert not self.closed, "the runner was closed before"

    def release_all(self):
        assert not self.closed, "the runner was closed before"

    def drop(self, prepared):
        assert not self.closed, "the runner was closed before"


class LosesItself(OnDemandRunner):
    """Lets another thread lose the runner as soon as one method has looked at it, at each look where the lock does not forbid that."""

    looks = 0

    def __getattribute__(self, name):
        value = super().__getattribute__(name)
        if name == "_started" and value is not None and type(self).looks:
            type(self).looks -= 1
            loser = Thread(target=self.listen, args=([],))
            if not super().__getattribute__("_starting").locked():
                loser.start()
                loser.join()
        return value


@pytest.mark.parametrize(
    "release", [lambda runner: runner.release([]), lambda runner: runner.release_all(), lambda runner: runner.drop(Prepared((), None))]
)
def test_a_release_does_not_use_a_runner_that_another_thread_has_lost(release):
    made = Kept()
    runner = LosesItself(lambda: made)
    runner._runner()
    LosesItself.looks = 1
    release(runner)
    assert made.closed == 0, "it is looked at under the lock: nobody loses it meanwhile"
