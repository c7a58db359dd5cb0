"""What a run does after a failure: the errors that count, the reloads that are counted, the waits."""

import pytest

from applier.model.errors import (
    Fenced,
    JobAborted,
    NeedsOperator,
    RetryableSinkError,
    SinkFull,
    SourceError,
    SparkSessionLost,
    UnknownOutcome,
)
from applier.model.failure import FailureKind
from applier.model.position import NO_TS, Ts
from applier.replica.recovery import (
    MAX_WAIT_S,
    Recovery,
    checkpoint_mismatch,
    ends_listening,
    is_transient,
    may_be_recreated,
    most_urgent,
    reason,
    unknown_write,
)
from applier.sinks.progress import Fence, Progress, ProgressCommit, WriteOutcome, WriteState

FENCE = Fence(4, 1)
LOST = JobAborted("a job is lost")
AWAY = SourceError("away", kind=FailureKind.UNREACHABLE)
GONE = SourceError("gone", kind=FailureKind.RETENTION)
SPARK = SparkSessionLost("the JVM has ended")


def test_the_first_reload_comes_at_once_and_later_ones_after_a_random_wait_up_to_a_limit():
    recovery = Recovery(max_reloads=15)
    assert recovery.next_wait_s(LOST) == 0.0
    waits = [recovery.next_wait_s(LOST) for _ in range(14)]
    assert all(0 <= wait_s <= min(0.1 * 2 ** (nth + 2), MAX_WAIT_S) for nth, wait_s in enumerate(waits))
    assert len(set(waits)) > 1


@pytest.mark.parametrize(
    ("cause", "kind"), [(LOST, JobAborted), (RetryableSinkError("lock"), UnknownOutcome), (OSError("x"), UnknownOutcome)]
)
def test_one_reload_too_many_in_a_row_ends_the_run(cause, kind):
    recovery = Recovery(max_reloads=2)
    for _ in range(2):
        recovery.next_wait_s(cause)
    with pytest.raises(kind, match="too often") as caught:
        recovery.next_wait_s(cause)
    assert caught.value.__cause__ is cause
    assert caught.value.remedy


def test_only_a_replica_that_moves_starts_the_count_again():
    recovery = Recovery(max_reloads=1)
    recovery.next_wait_s(LOST)
    recovery.reloaded()
    assert (recovery.cause, recovery.is_failing, recovery.reloads) == (None, True, 1)
    recovery.moved()
    assert (recovery.is_failing, recovery.reloads) == (False, 0)
    assert recovery.next_wait_s(LOST) == 0.0


def test_positions_that_could_not_be_saved_cost_a_reload_but_leave_no_doubt():
    recovery = Recovery()
    recovery.reload_for(AWAY)
    assert (recovery.cause, recovery.is_failing) == (AWAY, False)
    recovery.mark_failing(AWAY)
    assert recovery.is_failing


def test_a_lost_job_is_no_reason_to_stop_and_anything_else_is():
    recovery = Recovery()
    assert recovery.after_listening(LOST) is LOST
    assert recovery.cause is None
    with pytest.raises(SourceError):
        recovery.after_listening(GONE)
    assert recovery.cause is None
    with pytest.raises(SparkSessionLost):
        recovery.after_listening(SPARK)
    assert recovery.cause is SPARK


def test_what_is_not_transient_decides_before_what_costs_the_cache_and_before_single_ranges():
    order = [GONE, SPARK, LOST, AWAY]
    for first, error in enumerate(order):
        assert most_urgent(list(reversed(order[first:]))) is error


@pytest.mark.parametrize("error", [AWAY, LOST, SPARK, RetryableSinkError("x"), SinkFull("x"), UnknownOutcome("x")])
def test_these_errors_are_transient(error):
    assert is_transient(error)
    assert ends_listening(error, is_merge=True)


@pytest.mark.parametrize("error", [GONE, NeedsOperator("x"), Fenced("x"), OSError("x")])
def test_other_errors_are_not_transient(error):
    assert not is_transient(error)


def test_a_merge_whose_records_have_expired_does_not_matter():
    assert not ends_listening(GONE, is_merge=True)
    assert ends_listening(GONE, is_merge=False)


def test_an_expired_range_may_be_one_of_a_recreated_topic():
    assert may_be_recreated(GONE)
    assert not may_be_recreated(AWAY)


def test_a_write_with_an_unknown_outcome_has_a_cause_and_a_fenced_one_ends_the_run():
    ended = UnknownOutcome("connection lost")
    assert unknown_write(WriteOutcome(state=WriteState.RELOAD, error=ended), FENCE) is ended
    assert unknown_write(WriteOutcome(state=WriteState.RELOAD), FENCE).message == "fencing token mismatch"
    assert unknown_write(WriteOutcome(state=WriteState.COMMITTED), FENCE) is None
    assert unknown_write(WriteOutcome(state=WriteState.ALREADY), FENCE) is None
    with pytest.raises(Fenced) as caught:
        unknown_write(WriteOutcome(state=WriteState.FENCED), FENCE)
    assert caught.value.facts == {"epoch": 4}


@pytest.mark.parametrize(("ts", "is_known"), [(7, True), (6, False), (8, False)])
def test_a_checkpoint_that_is_not_the_committed_one_is_an_unknown_outcome(ts, is_known):
    progress = Progress(fence=FENCE, checkpoint_ts=Ts(ts), start_ts=NO_TS, positions={}, topic_ids={}, known_tables=frozenset())
    assert (checkpoint_mismatch(progress, ProgressCommit(checkpoint_ts=Ts(7), positions={})) is None) is is_known


def test_the_reason_of_a_reload_has_no_words_of_other_libraries():
    assert reason(OSError("password=hunter2")) == {"reason": "OSError"}
    assert reason(JobAborted("a job is lost", cause="MemoryError", code=7)) == {"reason": "a job is lost", "cause": "MemoryError"}
