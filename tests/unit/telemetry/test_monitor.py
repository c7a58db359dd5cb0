"""What becomes of what the engine does: log lines, and the one state that others read."""

import logging
from dataclasses import dataclass, replace
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from applier.cli.display import PlainObserver
from applier.model.position import NO_TS, Stream, Ts
from applier.sinks.progress import Fence, Progress
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.timeline import StoredTimeline
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.telemetry.failing import Side
from applier.telemetry.log import configure_logging
from applier.telemetry.log_event import LogEvent
from applier.telemetry.monitor import CHECKPOINT_LOG_S, LOOK_S, Clock, Monitor, MonitorSettings
from applier.telemetry.observer import SilentObserver
from applier.telemetry.run_state import Counts
from applier.telemetry.wording import time_text
from tests.builders.run_state import status

FEED = Stream("feed", 0)
STALLED = "watermark_stalled"
RELEASED = "watermark_resumed"


class Time:
    def __init__(self):
        self.now_s, self.unix_s = 100.0, 1_700_000_000.0

    def passes(self, seconds):
        self.now_s += seconds
        self.unix_s += seconds


@dataclass
class FakeCoordinator:
    streams: tuple = ()
    watermark: Ts = NO_TS
    pending_ddls: tuple = ()
    cached_bytes: int = 0

    @property
    def holding_stream(self):
        return self.streams[0].stream if self.streams else None


class NoteBook(SilentObserver):
    def __init__(self):
        self.notes, self.states = [], []

    def note(self, message, /, **facts):
        self.notes.append((message, facts))

    def update(self, state):
        self.states.append(state)


def progress(ts):
    fence = Fence(4, 1)
    return Progress(fence=fence, checkpoint_ts=Ts(ts), start_ts=NO_TS, positions={}, topic_ids={}, known_tables=frozenset())


@pytest.fixture
def world(caplog):
    caplog.set_level(logging.INFO, "applier")
    time, book = Time(), NoteBook()
    monitor = Monitor(
        book, MonitorSettings(replica="orders", stall_after_s=60), Clock(now_s=lambda: time.now_s, unix_s=lambda: time.unix_s)
    )
    return SimpleNamespace(time=time, book=book, monitor=monitor, log=caplog)


def begun(world, *streams, ts=5):
    coordinator = FakeCoordinator(streams or (status(FEED, ts),), Ts(ts))
    world.monitor.opened(TSO_TIMELINE)
    world.book.states.clear()
    world.monitor.watch(SimpleNamespace(coordinator=coordinator, progress=progress(ts)))


def logged(world, message="checkpoint_advanced"):
    return [record for record in world.log.records if record.getMessage() == message]


def test_before_the_replica_is_owned_only_the_phase_is_shown(world):
    world.monitor.changed()
    assert [(state.phase, state.epoch) for state in world.book.states] == [("starting", None)]
    world.monitor.enter("waiting for the replica lock")
    assert [(state.phase, state.epoch) for state in world.book.states[1:]] == [("waiting for the replica lock", None)]


def test_settling_a_ddl_of_an_earlier_run_at_the_start_is_a_phase(world):
    world.time.passes(3600)
    with world.monitor.during("ddl"):
        assert (world.monitor.state().phase, world.monitor.state().progress_s) == ("ddl", world.time.now_s)
    assert world.monitor.state().phase == "starting"


def test_the_state_is_made_of_the_tally_the_coordinator_and_the_progress(world):
    begun(world)
    world.monitor.tally.applied(12, 3)
    world.monitor.tally.rebuilt()
    world.monitor.enter("writing")
    state = world.monitor.state()
    assert (state.replica, state.phase, state.counts, state.epoch, state.checkpoint_ts) == (
        "orders",
        "writing",
        Counts(rows=12, transactions=3, rebuilds=1),
        4,
        5,
    )
    assert (state.streams.holding, [stream.status for stream in state.streams.each]) == (FEED, [status(FEED, 5)])
    assert world.book.states == [state]


def test_streams_are_looked_at_now_and_then_and_the_phase_always(world):
    begun(world)
    world.monitor.changed()
    begun(world, status(FEED, 9))
    world.monitor.enter("ddl")
    assert (world.monitor.state().phase, world.monitor.state().streams.each[0].status.resolved_ts) == ("ddl", 5)
    world.time.passes(LOOK_S)
    world.monitor.changed()
    assert world.monitor.state().streams.each[0].status.resolved_ts == 9


def test_checkpoints_are_logged_once_in_a_while_and_the_last_one_at_the_end(world):
    for ts in range(1, 26):
        begun(world, ts=ts)
        world.monitor.changed()
        world.time.passes(1)
    world.monitor.finish()
    assert CHECKPOINT_LOG_S == 10
    assert [record.checkpoint_ts for record in logged(world)] == [1, 11, 21, 25]


def test_a_checkpoint_that_stands_still_is_logged_once(world):
    begun(world)
    for _ in range(100):
        world.monitor.changed()
        world.time.passes(1)
    world.monitor.finish()
    assert len(logged(world)) == 1


def test_retries_are_counted_by_class_and_seen_at_once(world):
    for error in ("SourceError", "RetryableSinkError", "SourceError"):
        world.monitor.note(LogEvent.RETRY, error=error, attempt=1)
    assert world.monitor.state().retries == (("RetryableSinkError", 1), ("SourceError", 2))
    assert world.monitor.state().phase == "failing"
    world.monitor.worked(*Side)
    assert world.monitor.state().phase == "starting"


def test_every_event_counts_as_progress_and_reaches_observer_and_log(world):
    world.time.passes(50)
    world.monitor.note(LogEvent.REPLICA_RESUMED, checkpoint_ts=7, process=12)
    assert world.monitor.state().progress_s == 150.0
    assert world.book.notes == [("replica_resumed", {"checkpoint_ts": 7, "process": 12})]
    (record,) = logged(world, "replica_resumed")
    assert (record.checkpoint_ts, record.process_) == (7, 12)


def test_s13_a_stall_is_logged_once_and_its_end_once(world):
    for _ in range(200):
        begun(world, status(FEED, 5))
        world.monitor.changed()
        world.time.passes(1)
    assert world.monitor.state().streams.stall.stream == FEED
    assert [message for message, _ in world.book.notes] == [STALLED]
    assert [record.levelno for record in logged(world, STALLED)] == [logging.WARNING]
    begun(world, status(FEED, 6))
    world.monitor.changed()
    assert world.monitor.state().streams.stall is None
    assert world.book.notes == [(STALLED, {"stream": "feed/0", "resolved_ts": 5, "silent_s": 60.0}), (RELEASED, {"stream": "feed/0"})]


def test_a_stall_that_moves_to_another_stream_is_over_for_the_first_one(world):
    other = Stream("feed", 1)
    for holding in [FEED, FEED, other]:
        for _ in range(70):
            begun(world, *sorted((status(FEED, 5), status(other, 5)), key=lambda each: each.stream != holding))
            world.monitor.changed()
            world.time.passes(1)
    assert [(message, facts["stream"]) for message, facts in world.book.notes] == [
        (STALLED, "feed/0"),
        (RELEASED, "feed/0"),
        (STALLED, "feed/1"),
    ]


def test_counts_of_replays_continue_after_a_reload(world):
    for replays, fallbacks in ((3, 1), (5, 1), (0, 0), (2, 4)):
        begun(world, replace(status(FEED, 5), replays=replays, fallbacks=fallbacks))
        world.monitor.changed()
        world.time.passes(LOOK_S)
    (stream,) = world.monitor.state().streams.each
    assert (stream.replays, stream.fallbacks) == (7, 5)


def test_a_checkpoint_in_the_future_is_not_ready(world):
    begun(world, ts=(int(world.time.unix_s) + 7200) * 1000 << 18)
    world.monitor.changed()
    assert world.monitor.state().lag_s(world.time.unix_s) == -7200
    assert not world.monitor.state().is_ready


def test_after_the_end_it_is_not_ready_any_more(world):
    begun(world)
    world.monitor.changed()
    assert world.monitor.state().is_ready
    world.monitor.quarantined(3)
    world.monitor.finish()
    assert (world.monitor.state().is_ready, world.monitor.state().phase, world.monitor.state().quarantined) == (False, "stopped", 3)


def test_a_run_that_loses_its_replica_in_the_middle_of_an_update_is_not_ready_any_more(world):
    class LostMeanwhile(FakeCoordinator):
        @property
        def watermark(self):
            world.monitor.unready()  # the owner watch does so in its own thread, at any moment
            return Ts(5)

        @watermark.setter
        def watermark(self, ts):
            del ts

    begun(world)
    world.monitor.changed()
    assert world.monitor.state().is_ready
    world.monitor.watch(SimpleNamespace(coordinator=LostMeanwhile((status(FEED, 5),)), progress=progress(5)))
    world.monitor.changed()
    assert not world.monitor.state().is_ready


def test_no_progress_is_reported_with_what_the_run_was_about_to_do(world):
    begun(world)
    with world.monitor.during("ddl", "ALTER TABLE t ADD c INT"):
        world.time.passes(75)
        world.monitor.report_no_progress(world.monitor.without_progress_s())
    assert world.book.notes == [("no_progress", {"phase": "ddl", "silent_s": 75.0, "ddl": "ALTER TABLE t ADD c INT"})]
    (record,) = logged(world, "no_progress")
    assert record.levelno == logging.WARNING


def test_a_failure_is_one_line_with_its_count_and_its_end_and_one_when_it_is_over(world):
    monitor = Monitor(world.book, MonitorSettings(retry_for_s=600), Clock(now_s=lambda: world.time.now_s, unix_s=lambda: world.time.unix_s))
    for _ in range(30):
        monitor.note(LogEvent.RETRY, error="RetryableSinkError", reason="the database failed", attempt=1, wait_s=1.0)
        world.time.passes(1)
    retries = logged(world, "retry")
    assert [(record.levelno, record.attempt, record.failing_for_s) for record in retries] == [
        (logging.WARNING, attempt, attempt - 1.0) for attempt in (1, 2, 4, 8, 16)
    ]
    assert {record.gives_up_at for record in retries} == {"2023-11-14 22:23:20.000Z"}
    assert (monitor.state().phase, monitor.state().failing.attempt, monitor.state().is_ready) == ("failing", 30, False)
    assert world.book.states[-1].failing.attempt == 30
    assert world.book.states[-1].failing.next_attempt_at_s == world.time.unix_s
    monitor.worked(Side.SOURCE)
    assert logged(world, "recovered") == []
    monitor.worked(Side.REST)
    monitor.worked(Side.REST)
    assert [(record.levelno, record.after_s) for record in logged(world, "recovered")] == [(logging.INFO, 30.0)]
    assert monitor.state().failing is None


def test_a_pause_is_no_recovery(world):
    world.monitor.note(LogEvent.RETRY, error="RetryableSinkError", reason="the database failed")
    world.monitor.pause("anna@box", 5.0)
    assert (world.monitor.state().phase, world.monitor.state().paused.said_by) == ("paused", "anna@box")
    world.monitor.worked(*Side)
    world.monitor.resume()
    assert logged(world, "recovered") == []
    assert world.monitor.state().phase == "starting"


def test_spark_that_starts_is_a_phase_with_its_own_clock(world):
    world.monitor.enter("listening")
    world.time.passes(10)
    with world.monitor.starting_spark():
        assert (world.monitor.state().phase, world.monitor.state().phase_since_s) == ("starting Spark", world.time.unix_s)
        world.monitor.enter("writing")
        assert world.monitor.state().phase == "writing"
    world.monitor.enter("listening")
    assert world.monitor.state().phase == "listening"


def test_a_run_that_has_lost_its_replica_stays_fenced(world):
    world.monitor.unready(is_fenced=True)
    world.monitor.unready()
    assert world.monitor.state().is_fenced


PLACE = BinlogPosition(0, 42, 157).number
OF_A_BINLOG = StoredTimeline(base_name="mariadb-bin", known_at=PLACE, known_ms=1_700_000_000_000)


def test_two_replicas_of_two_kinds_in_one_process_are_each_shown_in_their_own_words(capsys):
    """Each in the log, on the plain screen and in its state, whichever was opened last."""
    root, level = list(logging.getLogger().handlers), logging.getLogger("applier").level
    configure_logging(logging.INFO)
    console = Console(file=StringIO(), width=400)
    replicas = {TSO_TIMELINE: 1_700_000_000_000 << 18, OF_A_BINLOG: PLACE}
    monitors = {timeline: Monitor(PlainObserver(console)) for timeline in replicas}
    for timeline, ts in replicas.items():
        monitors[timeline].opened(timeline)
        monitors[timeline].watch(SimpleNamespace(coordinator=FakeCoordinator(), progress=progress(ts)))
    try:
        for timeline, ts in replicas.items():
            monitors[timeline].note(LogEvent.STATE_RELOADED, checkpoint_ts=ts)
            logging.getLogger("applier").setLevel(logging.ERROR)  # the screen shows what the log does not
            monitors[timeline].note(LogEvent.STATE_RELOADED, checkpoint_ts=ts)
            logging.getLogger("applier").setLevel(logging.INFO)
    finally:
        logging.getLogger().handlers[:] = root
        logging.getLogger("applier").setLevel(level)

    of_topics, of_log = "2023-11-14 22:13:20.000Z", "mariadb-bin.000042:157 (2023-11-14 22:13:20.000Z)"
    logs = [line.split("checkpoint_", 1)[1] for line in capsys.readouterr().err.splitlines()]
    assert logs == [f"ts={replicas[TSO_TIMELINE]} ({of_topics})", f"position='{of_log}'"]
    shown = [line.split("checkpoint_", 1)[1] for line in console.file.getvalue().splitlines()]
    assert shown == [f"ts={replicas[TSO_TIMELINE]} ({of_topics})", f"position={of_log}"]
    assert [time_text(Ts(ts), monitors[timeline].state().timeline) for timeline, ts in replicas.items()] == [of_topics, of_log]
