"""A run that gives no sign of life is not silent about it."""

from queue import Queue
from threading import Event

from applier.telemetry.watchdog import SilenceRule, Watchdog


class Run:
    def __init__(self, *silences):
        self._silences = iter(silences)
        self.told = Queue()
        self.is_spent = Event()

    def silent_s(self):
        silent_s = next(self._silences, None)
        if silent_s is None:
            self.is_spent.set()
        return silent_s or 0.0

    def tell_silence(self, silent_s):
        self.told.put(silent_s)


def test_a_word_comes_after_a_minute_and_then_after_twice_as_long_each_time():
    rule = SilenceRule(60)
    assert [second for second in range(600) if rule.is_due(second)] == [60, 120, 240, 480]


def test_after_a_sign_of_life_silence_begins_anew():
    rule = SilenceRule(60)
    assert [rule.is_due(silent_s) for silent_s in (60, 100, 0.1, 59, 60)] == [True, False, False, False, True]


def test_a_vigil_tells_from_its_own_thread_while_the_run_says_nothing_and_ends_with_its_block():
    run = Run(10, 61, 70, 130)
    with Watchdog(run, wait=lambda is_over: is_over.wait(0.001)) as vigil:
        assert run.is_spent.wait(60)
    assert list(run.told.queue) == [61, 130]
    assert not vigil._thread.is_alive()
