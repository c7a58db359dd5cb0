"""The daemon in this process: it follows a log that grows, through faults of source and sink, and ends when it is asked to."""

import time
from concurrent.futures import Future
from dataclasses import dataclass, replace
from threading import Thread

import pytest
import stamina

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.oracle import compare, open_oracle
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.model.errors import ApplierError, FatalSinkError, Fenced, JobAborted, NeedsOperator, RetryableSinkError, SourceError
from applier.replica import recovery, topic_identity
from applier.replica.shutdown import Shutdown
from applier.run import daemon
from applier.sinks.factory import open_sink
from applier.sinks.settings import SinkSettings
from applier.sinks.write_outcome import WriteOutcome, WriteState
from applier.telemetry import SilentObserver
from tests.rig.fake_source import FakeSource, MemoryReader
from tests.rig.faulty_sink import Faults, FaultySink
from tests.rig.local_replica import sqlite_replica
from tests.rig.seeds import seeds


@pytest.fixture(autouse=True)
def without_waiting():
    stamina.set_testing(True, attempts=100)
    yield
    stamina.set_testing(False)


class LiveSource(FakeSource):
    """Grows at each look. ``away`` are looks that find no broker."""

    def __init__(self, log, *, pace=40, away=()):
        super().__init__(log, hidden=True)
        self.advance(1)
        self._pace, self._away, self._looks = pace, set(away), 0

    def listing(self):
        self._looks += 1
        if self._looks in self._away:
            raise SourceError("Kafka does not answer", kind="unreachable")
        self.advance(self._pace)
        return super().listing()


class EndsAt(SilentObserver):
    """Wishes the end when a checkpoint is reached."""

    def __init__(self, shutdown, ts):
        self._shutdown, self._ts = shutdown, ts

    def update(self, state):
        if state.checkpoint_ts == self._ts:
            self._shutdown.request()


def follow(replica, producer, **options):
    shutdown = Shutdown()
    replica.observer = EndsAt(shutdown, producer.final_ts)
    replica.follow(shutdown, **options)


def world(seed, transactions=40):
    history = History(seed, HistoryOptions(transactions=transactions, ddl_share=0.2))
    producer = Producer(history, replace(ProducerOptions.drawn(seed), partitions=1 + seed % 4))
    return history, producer, list(producer.log())


def assert_identical(replica, history, producer):
    oracle = open_oracle("sqlite:///:memory:")
    try:
        oracle.apply(history, producer.final_ts)
        assert compare(oracle, replica.url) == []
    finally:
        oracle.close()
    assert len(replica.done_ddls()) == sum(len(step.ddls) for step in history if step.ts < producer.final_ts)


@pytest.mark.parametrize("seed", seeds(range(500, 506), daily=3))
def test_a_log_that_grows_is_followed_to_its_end_and_the_offsets_are_shown(seed, tmp_path):
    history, producer, log = world(seed)
    source = LiveSource(log)
    replica = sqlite_replica(tmp_path, source)
    follow(replica, producer)
    assert_identical(replica, history, producer)
    assert source.shown_offsets.keys() == {record.stream for record in log}


@pytest.mark.parametrize("seed", seeds(range(510, 514), daily=2))
def test_refused_writes_lost_answers_and_an_absent_broker_are_survived(seed, tmp_path):
    history, producer, log = world(seed)
    faults = Faults(seed, rate=0.1)
    replica = sqlite_replica(tmp_path, LiveSource(log, away={3, 4, 7}), wrap=lambda sink: FaultySink(sink, faults))
    follow(replica, producer)
    assert sum(faults.counts.values()) > 0
    assert_identical(replica, history, producer)


class AbsentDatabase:
    """A sink whose database is away for some calls in a row, from the ``since``-th write on: whatever is asked of it."""

    def __init__(self, sink, since, calls, error):
        self._sink, self._left, self._absent, self._error = sink, since, calls, error

    def __getattr__(self, name):
        found = getattr(self._sink, name)
        if name not in {"load", "raise_epoch", "save", "describe", "settle", "run_ddl", "ledger"}:
            return found

        def call(*args, **options):
            self._left -= 1
            if self._left <= 0 and self._absent > 0:
                self._absent -= 1
                raise self._error
            return found(*args, **options)

        return call


@pytest.mark.parametrize("since", [9, 15, 22])
def test_a_database_that_is_away_for_a_while_is_waited_for_wherever_that_begins(since, tmp_path):
    history, producer, log = world(520)
    replica = sqlite_replica(
        tmp_path, LiveSource(log), wrap=lambda sink: AbsentDatabase(sink, since, 4, RetryableSinkError("the database is away"))
    )
    follow(replica, producer)
    assert_identical(replica, history, producer)


def test_a_database_that_stays_away_stops_the_run_when_the_time_is_over_and_the_next_one_goes_on(tmp_path):
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
    """Remembers the notes; after ``limit`` retries it ends a run that would go on for ever."""

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


def follow_without_rows(tmp_path, outcome, *, retry_for_s, limit):
    """Follow a log that outlasts the test into a sink that takes no rows; return how it ended, and what was noted."""
    _, _, log = world(529, transactions=300)
    shutdown, saved = Shutdown(), []

    class Saves(WithoutRows):
        def save(self, fence, commit, quarantined=None):
            found = self._sink.save(fence, commit, quarantined)
            saved.append(commit.checkpoint_ts)
            return found

    observer = GivesUp(shutdown, limit)
    replica = sqlite_replica(tmp_path, LiveSource(log, pace=1), wrap=lambda sink: Saves(sink, outcome), observer=observer)
    with pytest.raises(type(outcome.error)) as caught:
        replica.follow(shutdown, retry_for_s=retry_for_s)
    assert not shutdown.is_requested
    assert saved.count(saved[-1]) > 2
    return caught.value, observer


def test_saved_positions_do_not_make_a_segment_that_cannot_be_written_look_better(tmp_path, saving_always):
    refused = WriteOutcome(state=WriteState.FAILED, error=RetryableSinkError("lock wait"))
    error, observer = follow_without_rows(tmp_path, refused, retry_for_s=1.0, limit=12)
    assert error.message == "lock wait"
    assert [facts["attempt"] for facts in observer.of("retry")] == list(range(1, len(observer.of("retry")) + 1))


def test_a_job_that_is_always_lost_ends_the_run_though_positions_are_saved_between_and_each_loss_is_a_retry_with_its_cause(
    tmp_path, saving_always, monkeypatch
):
    monkeypatch.setattr(recovery.Recovery.__init__, "__defaults__", (3,))
    lost = WriteOutcome(state=WriteState.REBUILD, error=JobAborted("Spark job aborted", cause="MemoryError"))
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


@pytest.mark.parametrize("looks", [3, 8, 20])
def test_a_run_that_is_taken_over_before_it_looks_at_its_progress_writes_no_more(looks, tmp_path):
    _, producer, log = world(526)
    left = []

    class FrozenBeforeItLooks:
        """Another run becomes the owner before one look at the progress, and no heartbeat has told of it yet."""

        def __init__(self, sink):
            self._sink, self._looks = sink, 0

        def __getattr__(self, name):
            return getattr(self._sink, name)

        def heartbeat_lost(self):
            return None

        def load(self, **options):
            self._looks += 1
            if self._looks == looks:
                with open_sink(SinkSettings(url=replica.url)) as successor:
                    successor.acquire(take_over=True)
                    left.append(successor.load())
            return self._sink.load(**options)

    replica = sqlite_replica(tmp_path, LiveSource(log), wrap=FrozenBeforeItLooks)
    with pytest.raises(Fenced):
        follow(replica, producer)
    with open_sink(SinkSettings(url=replica.url)) as looking:
        assert [looking.load()] == left


class MadeAnew(LiveSource):
    """The topic is deleted and recreated between two looks, and has outgrown the old one already."""

    def __init__(self, log, at, url):
        super().__init__(log)
        self._at, self._url, self.left = at, url, []

    @property
    def is_new(self):
        return self._looks >= self._at

    def listing(self):
        found = super().listing()
        if self._looks == self._at:
            with open_sink(SinkSettings(url=self._url)) as looking:
                self.left.append(looking.load())
        return found

    def topic_ids(self):
        return {stream.topic: "new" if self.is_new else "old" for stream in self._records}


def stopped_by(kind, tmp_path):
    """Follow a topic that is recreated; return what stops the run, before anything of the new topic is applied."""
    _, producer, log = world(527)
    source = kind(log, 6, f"sqlite:///{tmp_path}/replica.db")
    replica = sqlite_replica(tmp_path, source)
    with pytest.raises(NeedsOperator, match="recreated") as caught:
        follow(replica, producer)
    with open_sink(SinkSettings(url=replica.url)) as looking:
        assert [looking.load()] == source.left
    return caught.value


def test_a_topic_that_is_made_anew_under_a_run_stops_it_before_anything_of_it_is_applied(tmp_path, monkeypatch):
    monkeypatch.setattr(topic_identity, "CHECK_INTERVAL_S", 0.0)
    monkeypatch.setattr(daemon, "SAVE_INTERVAL_S", 3600.0)  # nothing is written beside what is applied
    assert stopped_by(MadeAnew, tmp_path).facts["kind"] == "recreated"


class GoneForAMoment(MadeAnew):
    """The topic is not there at that look."""

    def listing(self):
        found = super().listing()
        if self._looks == self._at:
            raise SourceError("kafka does not know the topic", kind="unreachable")
        return found


def test_a_topic_that_was_not_there_at_one_look_is_compared_with_the_old_one_before_anything_more_is_applied(tmp_path, monkeypatch):
    monkeypatch.setattr(topic_identity, "CHECK_INTERVAL_S", 3600.0)
    monkeypatch.setattr(daemon, "SAVE_INTERVAL_S", 3600.0)  # nothing is written beside what is applied
    stopped_by(GoneForAMoment, tmp_path)


class Shorter(LiveSource):
    """Made anew after the run has begun: what was to be read is beyond its end, and readers call that gone."""

    asked = 0

    @property
    def reader(self):
        return MemoryReader(self._records, dict.fromkeys(self._records, 1))

    def topic_ids(self):
        self.asked += 1
        return {stream.topic: "new" if self.asked > 1 else "old" for stream in self._records}


def test_records_that_are_gone_because_the_topic_was_made_anew_are_told_apart_from_expired_ones(tmp_path):
    _, producer, log = world(528)
    with pytest.raises(NeedsOperator, match="recreated"):
        follow(sqlite_replica(tmp_path, Shorter(log)), producer)


def test_what_would_fail_again_stops_the_run_at_once(tmp_path):
    _, producer, log = world(522)
    replica = sqlite_replica(
        tmp_path, LiveSource(log), wrap=lambda sink: AbsentDatabase(sink, 12, 10**9, FatalSinkError("the table is missing"))
    )
    with pytest.raises(FatalSinkError, match="missing"):
        follow(replica, producer)


def test_a_wish_to_end_is_heeded_before_the_next_step_and_the_next_run_goes_on_from_there(tmp_path):
    history, producer, log = world(523)
    shutdown = Shutdown()

    class EndsAfterTwoDdls(SilentObserver):
        def update(self, state):
            if state.counts.ddls == 2:
                shutdown.request()

    replica = sqlite_replica(tmp_path, FakeSource(log), observer=EndsAfterTwoDdls())
    replica.follow(shutdown)
    assert len(replica.done_ddls()) == 2
    replica.catch_up()
    assert_identical(replica, history, producer)


class QuietSource(FakeSource):
    """Shows a whole log, and is away while ``is_away``."""

    is_away = False

    def listing(self):
        if self.is_away:
            raise SourceError("Kafka does not answer", kind="unreachable")
        return super().listing()


@pytest.mark.parametrize("is_away", [False, True], ids=["idle", "waiting for kafka"])
def test_a_run_that_is_taken_over_while_nothing_arrives_ends_by_its_next_heartbeat(is_away, tmp_path):
    *_, log = world(531)
    source, shutdown = QuietSource(log), Shutdown()
    replica = sqlite_replica(tmp_path, source)
    ended = Future()

    def run():
        try:
            ended.set_result(replica.follow(shutdown, retry_for_s=600))
        except ApplierError as error:
            ended.set_exception(error)

    thread = Thread(target=run)
    thread.start()
    try:
        wait_for(lambda: ended.done() or (replica.monitor is not None and replica.monitor.state().is_ready))
        assert not ended.done() or ended.result()
        source.is_away = is_away
        with open_sink(SinkSettings(url=replica.url, name=replica.name, lease_s=2.0)) as other:
            other.acquire(take_over=True)
            with pytest.raises(Fenced, match="another run owns"):
                ended.result(timeout=10)
        assert not replica.monitor.state().is_ready
    finally:
        shutdown.request()
        thread.join()


def wait_for(is_so):
    give_up = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.02)
