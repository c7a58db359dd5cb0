"""Spark is started by the first range, in the thread that listens; closing meanwhile leaves nothing behind."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from applier.errors import InvariantViolation
from applier.spark.lazy import LazyRunner


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
