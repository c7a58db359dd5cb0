"""A run learns from its heartbeat that it has lost its replica, whatever its main thread waits for."""

from dataclasses import dataclass
from queue import Queue

from applier.model.errors import Fenced
from applier.replica.recovery import OwnerWatch

PATIENCE_S = 60


@dataclass
class Sink:
    heartbeat_error: Exception | None = None


def test_a_lost_replica_is_reported_once_from_another_thread():
    sink, reported = Sink(), Queue()
    watch = OwnerWatch(sink, reported.put)
    watch.start()
    sink.heartbeat_error = lost = Fenced("another run has taken over the replica")
    assert reported.get(timeout=PATIENCE_S) is lost
    watch.stop()
    assert reported.empty()


def test_a_run_that_owns_its_replica_is_left_alone():
    reported = Queue()
    watch = OwnerWatch(Sink(), reported.put)
    watch.start()
    watch.stop()
    assert reported.empty()


def test_a_watch_that_was_never_started_can_be_stopped():
    OwnerWatch(Sink(Fenced("lost")), Queue().put).stop()
