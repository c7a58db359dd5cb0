"""One failure, one count: lines at growing intervals, and no recovery that nothing proves."""

from dataclasses import replace

from applier.telemetry.failing import LONGEST_LINE_S, SHOWN_AFTER_S, Failed, FailureLog, Side

AWAY = Failed(error="the database is away", error_class="RetryableSinkError", gives_up_in_s=600)
INNER = Failed(error="deadlock", error_class="RetryableSinkError", is_inner=True, gives_up_in_s=600)
NO_BROKER = Failed(error="Kafka does not answer", error_class="SourceError", side=Side.SOURCE)


def lines(log, attempt, times):
    return [at for at in times if log.failed(attempt, at)]


def test_lines_come_at_growing_intervals_up_to_the_longest():
    assert lines(FailureLog(), AWAY, range(100, 100 + 400)) == [100, 101, 103, 107, 115, 131, 163, 223, 283, 343, 403, 463]
    assert LONGEST_LINE_S == 60


def test_attempts_inside_of_an_attempt_are_the_same_failure_with_one_count_and_one_deadline():
    log = FailureLog()
    for at in range(6):
        log.failed(INNER if at % 3 else AWAY, 100.0 + at)
    assert (log.shown.attempt, log.shown.since_s, log.shown.gives_up_at_s) == (2, 100.0, 700.0)


def test_the_next_attempt_is_the_one_that_the_last_failure_waits_for():
    log = FailureLog()
    log.failed(replace(AWAY, wait_s=5.0), 100.0)
    assert log.shown.next_attempt_at_s == 105.0
    log.failed(replace(INNER, wait_s=0.2), 105.0)
    assert log.shown.next_attempt_at_s == 105.2
    log.failed(AWAY, 106.0)
    assert log.shown.next_attempt_at_s is None


def test_a_deadlock_that_is_over_after_milliseconds_is_not_shown():
    log = FailureLog()
    assert lines(log, INNER, [100.0, 100.1]) == []
    assert log.shown is None
    assert log.worked(frozenset(Side), 100.2) is None
    assert lines(log, INNER, [200.0, 200.0 + SHOWN_AFTER_S]) == [201.0]
    assert log.worked(frozenset(Side), 203.0) == 3.0


def test_what_works_proves_nothing_about_another_side():
    log = FailureLog()
    log.failed(AWAY, 100.0)
    log.failed(NO_BROKER, 101.0)
    assert log.worked(frozenset({Side.SOURCE, Side.SPARK}), 110.0) is None
    assert log.shown is not None
    assert log.worked(frozenset({Side.REST}), 193.0) == 93.0
    assert log.shown is None


def test_a_failure_that_is_forgotten_has_not_recovered_and_the_next_one_counts_anew():
    log = FailureLog()
    log.failed(AWAY, 100.0)
    log.forget(150.0)
    assert log.worked(frozenset(Side), 160.0) is None
    assert log.failed(AWAY, 200.0)
    assert (log.shown.attempt, log.shown.since_s) == (1, 200.0)
