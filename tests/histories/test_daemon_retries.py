"""The daemon waits for a database that is away, and stops when its patience is over: whatever was being done."""

from dataclasses import dataclass, replace

import pytest
import stamina

from applier.model.errors import JobAborted, RetryableSinkError
from applier.replica import recovery
from applier.replica.shutdown import Shutdown
from applier.run import daemon
from applier.sinks.progress import WriteOutcome, WriteState
from applier.telemetry.observer import SilentObserver
from tests.rig.absent_database import AbsentDatabase
from tests.rig.faulty_sink import Faults, FaultySink
from tests.rig.followed_feed import LiveSource, assert_identical, follow, world
from tests.rig.local_replica import sqlite_replica

pytestmark = pytest.mark.usefixtures("without_waiting")


@pytest.mark.parametrize("since", [9, 15, 22])
def test_a_database_that_is_away_for_a_while_is_waited_for_wherever_that_begins(since, tmp_path):
    history, producer, log = world(520)
    replica = sqlite_replica(
        tmp_path, LiveSource(log), wrap=lambda sink: AbsentDatabase(sink, since, 4, RetryableSinkError("the database is away"))
    )
    follow(replica, producer)
    assert_identical(replica, history, producer)


def test_a_database_that_stays_away_stops_the_run_when_the_time_is_over_and_the_next_one_continues(tmp_path):
    history, producer, log = world(521)
    replica = sqlite_replica(
        tmp_path, LiveSource(log), wrap=lambda sink: AbsentDatabase(sink, 15, 10**9, RetryableSinkError("the database is away"))
    )
    with pytest.raises(RetryableSinkError, match="away"):
        follow(replica, producer, retry_for_s=0.5)
    replica.wrap = lambda sink: sink
    replica.source = LiveSource(log)
    follow(replica, producer)
    assert_identical(replica, history, producer)


def test_a_write_that_is_always_refused_stops_the_run_when_the_time_is_over_though_everything_else_works(tmp_path):
    _, producer, log = world(524)

    class Refused(Faults):
        writes = 0

        def draw(self):
            self.writes += 1
            return self._noted("refused") if self.writes > 10 else None

    faults = Refused(524)
    replica = sqlite_replica(tmp_path, LiveSource(log), wrap=lambda sink: FaultySink(sink, faults))
    with pytest.raises(RetryableSinkError, match="deadlock"):
        follow(replica, producer, retry_for_s=1.0)


@dataclass(frozen=True)
class OneOutcome:
    """Writes no rows; it crosses to tasks as a pickle."""

    outcome: WriteOutcome

    def write(self, fence, statements, commit, quarantined=None):
        return self.outcome


class WithoutRows:
    """A sink that works, but every write of rows ends with one outcome."""

    def __init__(self, sink, outcome):
        self._sink, self.writer = sink, OneOutcome(outcome)

    def __getattr__(self, name):
        return getattr(self._sink, name)


class GivesUp(SilentObserver):
    """Remembers the notes; after ``limit`` retries it ends a run that would continue for ever."""

    def __init__(self, shutdown, limit):
        self._shutdown, self._limit, self.notes = shutdown, limit, []

    def note(self, message, /, **facts):
        self.notes.append((message, facts))
        if len(self.of("retry")) == self._limit:
            self._shutdown.request()

    def of(self, message):
        return [facts for noted, facts in self.notes if noted == message]


@pytest.fixture
def saving_always(monkeypatch):
    """Positions that grew are saved after every cycle; a write of rows is tried once."""
    monkeypatch.setattr(daemon, "SAVE_INTERVAL_S", 0.0)
    monkeypatch.setattr(daemon, "PACE_S", 0.0)
    stamina.set_testing(True, attempts=1)


def follow_without_rows(tmp_path, outcome, *, retry_for_s, limit, pace_s=0.0, pace=1):
    """Follow a log that outlasts the test into a sink that takes no rows; return how it ended, and what was noted."""
    _, _, log = world(532, transactions=300)
    shutdown, saved = Shutdown(), []

    class Saves(WithoutRows):
        def save(self, fence, commit, quarantined=None):
            found = self._sink.save(fence, commit, quarantined)
            saved.append(commit.checkpoint_ts)
            return found

    observer = GivesUp(shutdown, limit)
    replica = sqlite_replica(tmp_path, LiveSource(log, pace=pace), wrap=lambda sink: Saves(sink, outcome), observer=observer)
    settings = replica.settings
    replica.settings = lambda: replace(settings(), pace_s=pace_s)
    with pytest.raises(type(outcome.error)) as caught:
        replica.follow(shutdown, retry_for_s=retry_for_s)
    assert not shutdown.is_requested
    assert saved.count(saved[-1]) > 2
    return caught.value, observer


def test_saved_positions_do_not_make_a_segment_that_cannot_be_written_look_better(tmp_path, saving_always):
    refused = WriteOutcome(state=WriteState.FAILED, error=RetryableSinkError("lock wait"))
    error, observer = follow_without_rows(tmp_path, refused, retry_for_s=3.0, limit=30)
    assert error.message == "lock wait"
    assert [facts["attempt"] for facts in observer.of("retry")] == list(range(1, len(observer.of("retry")) + 1))


def test_a_pause_before_the_next_reading_does_not_count_as_a_success(tmp_path, saving_always):
    refused = WriteOutcome(state=WriteState.FAILED, error=RetryableSinkError("lock wait"))
    error, observer = follow_without_rows(tmp_path, refused, retry_for_s=2.0, limit=30, pace_s=0.3, pace=8)
    assert error.message == "lock wait"
    assert len(observer.of("retry")) > 1
    assert [facts["attempt"] for facts in observer.of("retry")] == list(range(1, len(observer.of("retry")) + 1))


def test_a_job_that_is_always_lost_ends_the_run_though_positions_are_saved_between_and_each_loss_is_a_retry_with_its_cause(
    tmp_path, saving_always, monkeypatch
):
    monkeypatch.setattr(recovery.Recovery.__init__, "__defaults__", (3,))
    lost = WriteOutcome(state=WriteState.RELOAD, error=JobAborted("Spark job aborted", cause="MemoryError"))
    error, observer = follow_without_rows(tmp_path, lost, retry_for_s=0.0, limit=12)
    assert isinstance(error, JobAborted)
    assert [(facts["error"], facts["reason"], facts["attempt"]) for facts in observer.of("retry")] == [
        ("JobAborted", "Spark job aborted", attempt) for attempt in (1, 2, 3)
    ]
    assert [(facts["reason"], facts["cause"]) for facts in observer.of("recovering")] == [("Spark job aborted", "MemoryError")] * 3


def test_a_database_that_is_away_when_only_positions_are_saved_is_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(daemon, "SAVE_INTERVAL_S", 0.0)
    stamina.set_testing(True, attempts=1)
    history, producer, log = world(525)
    refused = []

    class AwayForPositions:
        def __init__(self, sink):
            self._sink = sink

        def __getattr__(self, name):
            return getattr(self._sink, name)

        def save(self, fence, commit, quarantined=None):
            if commit.checkpoint_ts == self._sink.load().checkpoint_ts and len(refused) < 3:
                refused.append(commit)
                raise RetryableSinkError("the database is away")
            return self._sink.save(fence, commit, quarantined)

    replica = sqlite_replica(tmp_path, LiveSource(log), wrap=AwayForPositions)
    follow(replica, producer)
    assert len(refused) == 3
    assert_identical(replica, history, producer)
