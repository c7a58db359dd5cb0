"""A job that listens ahead is waited for, but not after a shutdown request."""

from contextlib import nullcontext
from threading import Event, Thread

import pytest

from applier.spark.listen_ahead import ListenAhead


class Slow:
    """A runner whose job ends on request."""

    def __init__(self, outcome=()):
        self.begun, self.may_end, self.jobs = Event(), Event(), []
        self._outcome = outcome

    def listen(self, tasks):
        self.jobs.append(tasks)
        self.begun.set()
        assert self.may_end.wait(300)
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def release(self, ranges):
        assert not list(ranges)


@pytest.fixture
def ending():
    made = []

    def make(runner):
        end = Event()
        made.append((runner, ListenAhead(runner, nullcontext, end)))
        return made[-1][1], end

    yield make
    for runner, ahead in made:
        runner.may_end.set()
        ahead.close()


def in_time(call):
    """Call in a thread, so that a wait without end is seen; return what came back."""
    found = []
    thread = Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(60)
    assert found
    return found[0]


@pytest.mark.parametrize("wait_for", [ListenAhead.finish, ListenAhead.discard])
def test_a_job_is_not_waited_for_after_a_shutdown_request(wait_for, ending):
    runner = Slow()
    ahead, end = ending(runner)
    ahead.start(["range"])
    assert runner.begun.wait(60)
    Thread(target=end.set).start()
    assert not in_time(lambda: wait_for(ahead))
    assert not runner.may_end.is_set()


def test_a_job_is_waited_for_and_its_outcomes_or_its_error_come_back(ending):
    for outcome in (["report"], ValueError("a defect")):
        runner = Slow(outcome)
        ahead, _ = ending(runner)
        ahead.start(["range"])
        assert runner.begun.wait(60)
        Thread(target=runner.may_end.set).start()
        if isinstance(outcome, Exception):
            with pytest.raises(ValueError, match="a defect"):
                ahead.finish()
        else:
            assert ahead.finish() == outcome
        assert ahead.finish() == ()


def test_a_job_that_has_not_begun_when_it_is_closed_does_not_begin(ending):
    runner = Slow()
    ahead, end = ending(runner)
    ahead.start(["first"])
    assert runner.begun.wait(60)
    end.set()
    ahead.discard()
    ahead.start(["second"])
    ahead.close()
    runner.may_end.set()
    ahead._pool.shutdown(wait=True)
    assert runner.jobs == [["first"]]
