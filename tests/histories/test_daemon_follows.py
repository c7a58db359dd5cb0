"""The daemon in this process: it follows a log that grows, through faults of source and sink, and ends when it is asked to."""

import time
from concurrent.futures import Future
from threading import Thread

import pytest

from applier.model.errors import ApplierError, FatalSinkError, Fenced, NeedsOperator, SourceError
from applier.model.failure import FailureKind
from applier.replica import lanes as listening
from applier.replica import state as topic_identity
from applier.replica.shutdown import Shutdown
from applier.run import daemon
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.telemetry.observer import SilentObserver
from tests.rig.absent_database import AbsentDatabase
from tests.rig.fake_source import FakeSource, MemoryReader
from tests.rig.faulty_sink import Faults, FaultySink
from tests.rig.followed_feed import LiveSource, assert_identical, follow, world
from tests.rig.local_replica import sqlite_replica
from tests.rig.seeds import seeds

pytestmark = pytest.mark.usefixtures("without_waiting")


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


def test_an_idle_run_looks_rarely_at_partitions_whose_listing_costs_much(tmp_path, monkeypatch):
    """A tenth of a second of CPU each: as much as 10,000 partitions."""
    monkeypatch.setattr(daemon, "IDLE_S", 0.001)
    shutdown, looks = Shutdown(), []

    class Costly(FakeSource):
        def listing(self):
            began = time.thread_time()
            while time.thread_time() - began < 0.1:
                pass
            looks.append(time.monotonic())
            if len(looks) == 5:
                shutdown.request()
            return super().listing()

    sqlite_replica(tmp_path, Costly([], partitions={"feed": 1})).follow(shutdown)
    # Two begin the replica, before and after it has read its place; between the others the run is idle.
    assert looks[4] - looks[2] > 2 * 0.1 / listening.IDLE_SHARE


@pytest.mark.parametrize("looks", [3, 8, 20])
def test_a_run_that_is_taken_over_before_it_looks_at_its_progress_writes_no_more(looks, tmp_path):
    _, producer, log = world(526)
    left = []

    class FrozenBeforeItLooks:
        """Another run becomes the owner before one look at the progress, and no heartbeat has shown it yet."""

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


class Recreated(LiveSource):
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

    def ids(self):
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


def test_a_topic_that_is_created_again_under_a_run_stops_it_before_anything_of_it_is_applied(tmp_path, monkeypatch):
    monkeypatch.setattr(topic_identity, "CHECK_INTERVAL_S", 0.0)
    monkeypatch.setattr(daemon, "SAVE_INTERVAL_S", 3600.0)  # nothing is written beside what is applied
    assert stopped_by(Recreated, tmp_path).facts["kind"] == "recreated"


class GoneForOneLook(Recreated):
    """The topic is not there at that look."""

    def listing(self):
        found = super().listing()
        if self._looks == self._at:
            raise SourceError("kafka does not know the topic", kind=FailureKind.UNREACHABLE)
        return found


def test_a_topic_that_was_not_there_at_one_look_is_compared_with_the_old_one_before_anything_more_is_applied(tmp_path, monkeypatch):
    monkeypatch.setattr(topic_identity, "CHECK_INTERVAL_S", 3600.0)
    monkeypatch.setattr(daemon, "SAVE_INTERVAL_S", 3600.0)  # nothing is written beside what is applied
    stopped_by(GoneForOneLook, tmp_path)


class Shorter(LiveSource):
    """Created again after the run has begun: the next offset is beyond its end, and readers call that gone."""

    asked = 0

    @property
    def reader(self):
        return MemoryReader(self._records, dict.fromkeys(self._records, 1))

    def ids(self):
        self.asked += 1
        return {stream.topic: "new" if self.asked > 1 else "old" for stream in self._records}


def test_records_that_are_gone_because_the_topic_was_created_again_are_distinguished_from_expired_ones(tmp_path):
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


def test_a_shutdown_is_heeded_before_the_next_step_and_the_next_run_continues_from_there(tmp_path):
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
            raise SourceError("Kafka does not answer", kind=FailureKind.UNREACHABLE)
        return super().listing()


class Events(SilentObserver):
    """Remembers the names of the events."""

    def __init__(self, events):
        self._events = events

    def note(self, event, /, **facts):
        self._events.append(event)


@pytest.mark.parametrize("is_away", [False, True], ids=["idle", "waiting for kafka"])
def test_a_run_that_is_taken_over_while_nothing_arrives_ends_by_its_next_heartbeat(is_away, tmp_path):
    *_, log = world(531)
    source, shutdown = QuietSource(log), Shutdown()
    events = []
    replica = sqlite_replica(tmp_path, source, observer=Events(events))
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
        assert events.count("owner_lost") == 1
    finally:
        shutdown.request()
        thread.join()


def wait_for(is_so):
    give_up = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < give_up
        time.sleep(0.02)
