"""What a daemon tries again: transient errors, as long as nothing succeeds, and not after a shutdown was requested."""

import time

import pytest

from applier.model.errors import (
    ConfigError,
    FatalSinkError,
    Fenced,
    JobAborted,
    NeedsOperator,
    ProtocolError,
    RangeChanged,
    RetryableSinkError,
    SourceError,
    SparkRestartedTooOften,
    SparkSessionLost,
    UnknownOutcome,
)
from applier.model.failure import FailureKind
from applier.replica.recovery import is_transient
from applier.replica.shutdown import Shutdown
from applier.run import daemon as module
from applier.run.daemon import retrying


class NoteBook:
    def __init__(self):
        self.notes = []

    def changed(self):
        pass

    def note(self, message, /, **facts):
        self.notes.append((message, facts))


@pytest.fixture
def quickly(monkeypatch):
    monkeypatch.setattr(module, "FIRST_WAIT_S", 0.0)
    monkeypatch.setattr(module, "JITTER_S", 0.001)
    monkeypatch.setattr(module, "LONGEST_WAIT_S", 0.001)


@pytest.mark.parametrize(
    "error",
    [RetryableSinkError("m"), UnknownOutcome("m"), JobAborted("m"), SparkSessionLost("m"), SourceError("m", kind=FailureKind.UNREACHABLE)],
)
def test_errors_that_may_pass_are_transient(error):
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        FatalSinkError("m"),
        Fenced("m"),
        NeedsOperator("m"),
        ConfigError("m"),
        ProtocolError("m"),
        RangeChanged("m"),
        SparkRestartedTooOften("m"),
        SourceError("m", kind=FailureKind.RETENTION),
        ValueError("m"),
    ],
)
def test_errors_that_would_happen_again_are_not_transient(error):
    assert not is_transient(error)


def test_each_retry_is_noted_with_class_and_reason_until_it_succeeds(quickly):
    book, left = NoteBook(), [RetryableSinkError("locked", code=1205), SourceError("away", kind=FailureKind.UNREACHABLE, cause="refused")]
    for attempt in retrying(Shutdown(), 60, book):
        with attempt:
            if left:
                raise left.pop(0)
    assert [(message, facts["error"], facts["reason"], facts["attempt"]) for message, facts in book.notes] == [
        ("retry", "RetryableSinkError", "locked", 1),
        ("retry", "SourceError", "away", 2),
    ]
    assert book.notes[0][1]["code"] == 1205
    assert book.notes[1][1]["cause"] == "refused"


def fail_with(error, tries, shutdown, retry_for_s):
    for attempt in retrying(shutdown, retry_for_s, NoteBook()):
        with attempt:
            tries.append(1)
            raise error


def failing(shutdown, retry_for_s, error):
    tries = []
    with pytest.raises(type(error)) as caught:
        fail_with(error, tries, shutdown, retry_for_s)
    assert caught.value is error
    return len(tries)


def test_an_error_that_would_happen_again_is_raised_at_once():
    assert failing(Shutdown(), 600, NeedsOperator("m")) == 1


def test_the_last_error_is_raised_when_the_time_is_over(quickly):
    assert failing(Shutdown(), 0, RetryableSinkError("m")) == 1
    assert failing(Shutdown(), 0.05, RetryableSinkError("m")) > 1


def test_the_last_wait_ends_at_the_deadline_that_the_log_names(monkeypatch):
    monkeypatch.setattr(module, "FIRST_WAIT_S", 60.0)
    began = time.monotonic()
    assert failing(Shutdown(), 0.1, RetryableSinkError("m")) == 2
    assert time.monotonic() - began < 30


def test_nothing_is_retried_after_a_shutdown_request():
    shutdown = Shutdown()
    shutdown.request()
    assert failing(shutdown, 600, RetryableSinkError("m")) == 1
