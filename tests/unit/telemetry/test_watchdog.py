"""A run that makes no progress is reported."""

from queue import Queue
from threading import Event

from applier.telemetry.watchdog import ReportRule, Watchdog


class Run:
    def __init__(self, *silences):
        self._silences = iter(silences)
        self.reported = Queue()
        self.is_spent = Event()

    def without_progress_s(self):
        silent_s = next(self._silences, None)
        if silent_s is None:
            self.is_spent.set()
        return silent_s or 0.0

    def report_no_progress(self, silent_s):
        self.reported.put(silent_s)


def test_a_report_comes_after_a_minute_and_then_after_twice_as_long_each_time():
    rule = ReportRule(60)
    assert [second for second in range(600) if rule.is_due(second)] == [60, 120, 240, 480]


def test_after_a_step_the_time_without_progress_starts_again():
    rule = ReportRule(60)
    assert [rule.is_due(silent_s) for silent_s in (60, 100, 0.1, 59, 60)] == [True, False, False, False, True]


def test_the_watchdog_reports_from_its_own_thread_and_ends_with_its_block():
    run = Run(10, 61, 70, 130)
    with Watchdog(run, wait=lambda is_over: is_over.wait(0.001)) as watchdog:
        assert run.is_spent.wait(60)
    assert list(run.reported.queue) == [61, 130]
    assert not watchdog._thread.is_alive()
