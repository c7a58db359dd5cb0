"""Three lanes work at once; a failure of one of them loses nothing of the others, and throws away what cannot be trusted."""

import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from threading import Event, Timer
from types import SimpleNamespace

import pytest

from applier.coordinator import Policy
from applier.coordinator.step import ApplySegment, Segment
from applier.model.errors import InvariantViolation, JobAborted, NeedsOperator, Remedy, RowRefused, SourceError, SparkSessionLost
from applier.model.failure import FailureKind
from applier.model.position import NO_TS, Offset, Stream, Ts
from applier.model.range_report import RangeId
from applier.model.segment import SegmentWindow
from applier.planner import QuarantinePolicy
from applier.planner.table_check import Acceptance
from applier.replica import lanes as preparing
from applier.replica.context import LOOK_S, Components, EngineSettings, Lane, wait_for_any
from applier.replica.engine import Engine
from applier.replica.lanes import Preparing
from applier.replica.shutdown import Shutdown
from applier.replica.sink_tables import SinkTables
from applier.sinks.progress import WriteOutcome, WriteState
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.start import StartPoint
from applier.tasks.listen import RangeFailure
from applier.tasks.port import Prepared
from applier.tasks.prepare import PreparedPart, Rendered
from applier.telemetry.monitor import Monitor
from applier.telemetry.observer import SilentObserver
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, ddl, log_of, resolved, row, rows_of
from tests.builders.wire import column
from tests.rig.fake_source import FakeSource
from tests.rig.gated_runner import LONG_S, GatedRunner
from tests.rig.local_replica import STRICT

ROWS = 14
FIRST_TS, LAST_TS = 20, 19 + ROWS
PER_SEGMENT, SEGMENTS_AT_ONCE = 2, 4
CREATED = [(ONE, CREATE_SCHEMA), (ONE, ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY)"))]
RELOADED = WriteOutcome(state=WriteState.RELOAD, error=JobAborted("Spark job aborted"))


def rows(first, last):
    return [(ONE, row(FIRST_TS + number, id=column(3, KEY, number))) for number in range(first, last)]


class Run:
    """One replica in this process, cycle by cycle. Segments of two rows; everything that is closed is prepared ahead."""

    def __init__(self, tmp_path, sink, **settings):
        self.path, self.sink = tmp_path, sink
        log = log_of(*CREATED, *rows(0, ROWS), (ONE, resolved(LAST_TS + 1)), (ONE, row(LAST_TS + 2, id=column(3, KEY, ROWS))))
        self.source = FakeSource(log, hidden=True)
        self.source.advance(len(log) - 1)
        self.runner = GatedRunner(lambda: self.source.reader, self.source.decoder)
        self.shutdown = Shutdown()
        components = Components(self.source, sink, self.runner)
        policy = Policy(segment_rows=PER_SEGMENT, first_plan_bytes=1 << 20, plan_bytes=1 << 24)
        made = EngineSettings(policy=policy, buckets=2, ahead_rows=1, **settings)
        self.monitor = Monitor(SilentObserver())
        self.engine = Engine(components, made, self.monitor, self.shutdown)
        self.engine.begin(StartPoint(NO_TS), accept_gap=False)
        self.epoch = self.engine.progress.fence.epoch

    def until(self, is_so):
        give_up = time.monotonic() + LONG_S
        while not is_so():
            assert time.monotonic() < give_up, self.runner.calls
            self.engine.cycle()

    def finish(self):
        self.until(lambda: self.engine.progress.checkpoint_ts > LAST_TS)

    def shown(self):
        return self.monitor.state().phase

    def show_more(self):
        """Let the source show one more row."""
        self.source.advance(1)

    @property
    def ids(self):
        return [number for (number,) in rows_of(self.path)]

    @property
    def is_reloaded(self):
        return self.engine.progress.fence.epoch > self.epoch


@pytest.fixture
def make(tmp_path, monkeypatch):
    monkeypatch.setattr(preparing, "MAX_SEGMENTS", SEGMENTS_AT_ONCE)
    with open_sink(SinkSettings(url=f"sqlite:///{tmp_path}/replica.db")) as sink:
        sink.migrate()
        sink.acquire()
        made = []

        def run(**settings):
            made.append(Run(tmp_path, sink, **settings))
            return made[-1]

        yield run
        for one in made:
            one.engine.close()


def test_every_segment_is_written_from_what_was_prepared_ahead_and_nothing_is_kept_behind_it(make):
    run = make()
    run.finish()
    assert run.ids == list(range(ROWS))
    assert run.runner.numbers("apply") == []
    assert run.runner.numbers("write") == sorted(upto for plan in run.runner.numbers("prepare") for upto in plan)
    assert len(run.runner.numbers("write")) >= ROWS // PER_SEGMENT
    assert run.runner.kept_jobs == 0
    assert not run.is_reloaded


def test_the_next_ranges_are_read_while_a_segment_is_written(make):
    run = make()
    run.runner.hold("write")
    run.until(lambda: run.runner.numbers("write"))
    run.show_more()
    listened = len(run.runner.numbers("listen"))
    run.until(lambda: len(run.runner.numbers("listen")) > listened)
    assert len(run.runner.numbers("write")) == 1, "one segment at a time"
    assert run.ids == []
    run.runner.let_go("write")
    run.finish()
    assert run.ids == list(range(ROWS))


def test_a_write_that_lasts_is_shown_as_long_as_it_does_whatever_is_read_meanwhile(make):
    run = make()
    run.runner.hold("write")
    run.until(lambda: run.runner.numbers("write"))
    run.show_more()
    for _ in range(4):
        run.engine.cycle()
        assert run.shown() == "writing"
    run.runner.let_go("write")
    run.finish()
    run.until(lambda: run.shown() == "idle")


@pytest.mark.parametrize("hangs", ["prepare", "write"])
def test_a_segment_that_hangs_is_no_progress_whatever_is_read_and_looked_at_meanwhile(make, hangs):
    run = make()
    run.runner.hold(hangs)
    run.until(lambda: run.runner.numbers(hangs))
    began = time.monotonic()
    run.show_more()
    while time.monotonic() < began + 1:
        run.engine.cycle()
    assert len(run.runner.numbers("listen")) > 1
    assert run.monitor.without_progress_s() > 0.8
    assert run.shown() == {"prepare": "preparing", "write": "writing"}[hangs]
    run.runner.let_go(hangs)
    run.finish()
    assert run.monitor.without_progress_s() < 0.8


def test_prepared_segments_are_written_while_the_next_ones_are_prepared(make):
    run = make()
    run.until(lambda: run.runner.numbers("write"))
    run.runner.hold("prepare")
    run.until(lambda: len(run.runner.numbers("prepare")) > 1)
    run.until(lambda: len(run.ids) == PER_SEGMENT * SEGMENTS_AT_ONCE)
    run.runner.let_go("prepare")
    run.finish()
    assert run.ids == list(range(ROWS))
    assert run.runner.numbers("apply") == []


def test_a_segment_that_is_being_prepared_is_waited_for_and_not_applied_beside(make):
    run = make()
    run.runner.hold("prepare")
    run.until(lambda: run.runner.numbers("prepare"))
    for _ in range(3):
        run.engine.cycle()
    assert run.runner.numbers("write") == run.runner.numbers("apply") == []
    run.runner.let_go("prepare")
    run.finish()
    assert run.ids == list(range(ROWS))


def test_ranges_that_cannot_be_read_while_a_segment_is_written_cost_that_segment_nothing(make):
    run = make()
    run.runner.hold("write")
    run.until(lambda: run.runner.numbers("write"))
    run.show_more()
    range_id = RangeId(ONE, Offset(ROWS + 3), Offset(ROWS + 4))
    run.runner.answers["listen"].append([RangeFailure(range_id, SourceError("Kafka does not answer", kind=FailureKind.UNREACHABLE))])
    with pytest.raises(SourceError, match="does not answer"):
        run.until(lambda: False)
    run.runner.let_go("write")
    run.finish()
    assert run.ids == list(range(ROWS))
    assert not run.is_reloaded


def test_a_listening_job_that_is_lost_throws_everything_away_after_the_write_has_ended(make):
    run = make()
    run.runner.hold("write")
    run.until(lambda: run.runner.numbers("write"))
    run.show_more()
    run.runner.answers["listen"].append([RangeFailure(RangeId(ONE, Offset(ROWS + 3), Offset(ROWS + 4)), JobAborted("Spark job aborted"))])
    Timer(2 * LOOK_S, run.runner.let_go, ["write"]).start()
    run.until(lambda: run.is_reloaded)
    assert run.ids == [0, 1], "what was written meanwhile is read back from the sink"
    assert (run.engine.recovery.reloads, run.engine.recovery.is_failing) == (0, False), "and the replica has moved"
    run.finish()
    assert run.ids == list(range(ROWS))


def test_a_preparing_job_that_fails_is_a_reason_to_reload_and_everything_is_read_again(make):
    run = make()
    run.runner.answers["prepare"].append(JobAborted("Spark job aborted"))
    run.finish()
    assert run.is_reloaded
    assert run.ids == list(range(ROWS))
    assert run.runner.kept_jobs == 0


def test_a_session_that_is_lost_while_preparing_ends_the_cycle_and_the_next_one_reloads(make):
    run = make()
    run.runner.answers["prepare"].append(SparkSessionLost("gone"))
    with pytest.raises(SparkSessionLost):
        run.until(lambda: False)
    assert isinstance(run.engine.recovery.cause, SparkSessionLost)
    run.finish()
    assert run.is_reloaded
    assert run.ids == list(range(ROWS))


@pytest.mark.parametrize("busy", ["listen", "prepare"])
def test_after_a_write_with_an_unknown_outcome_every_lane_is_waited_for_before_state_is_loaded(make, busy):
    run = make()
    run.runner.hold("write")
    run.until(lambda: run.runner.numbers("write"))
    run.until(lambda: len(run.runner.ended) == len(run.runner.calls) - 2)  # but the write, and the release at the beginning
    before = len(run.runner.numbers(busy))
    run.runner.hold(busy)
    if busy == "listen":
        run.show_more()
    run.until(lambda: len(run.runner.numbers(busy)) > before or busy == "prepare")
    prepared = run.runner.kept_jobs
    run.runner.answers["write"].append(RELOADED)
    run.runner.let_go("write")
    Timer(3 * LOOK_S, run.runner.let_go, [busy]).start()
    run.until(lambda: run.is_reloaded)
    assert prepared > 0
    assert run.runner.kept_jobs == 0, "what was prepared before is of no use"
    run.finish()
    assert run.ids == list(range(ROWS))


@pytest.mark.parametrize("busy", ["listen", "prepare"])
def test_a_shutdown_does_not_wait_for_what_is_read_or_prepared(make, busy):
    run = make()
    run.runner.hold(busy)
    run.until(lambda: run.runner.numbers(busy))
    run.shutdown.request()
    began = time.monotonic()
    run.engine.cycle()
    run.engine.save_progress()
    run.engine.close()
    assert time.monotonic() - began < LONG_S / 4
    assert run.sink.load() == run.engine.progress
    run.runner.let_go(busy)


def test_a_shutdown_confirms_the_segment_that_is_being_written_and_begins_no_other(make):
    run = make()
    run.runner.hold("write")
    run.until(lambda: run.runner.numbers("write"))
    run.shutdown.request()
    Timer(2 * LOOK_S, run.runner.let_go, ["write"]).start()
    run.engine.cycle()
    run.engine.save_progress()
    assert run.ids == [0, 1]
    assert len(run.runner.numbers("write")) == 1
    assert run.engine.progress.checkpoint_ts == run.runner.numbers("write")[0]
    assert run.sink.load() == run.engine.progress


def test_positions_are_left_to_the_segment_that_is_being_written(make):
    run = make()
    run.runner.hold("write")
    run.until(lambda: run.runner.numbers("write"))
    before = run.sink.load()
    run.engine.save_progress()
    assert run.sink.load() == before
    run.runner.let_go("write")
    run.finish()


def test_a_write_at_a_shutdown_whose_outcome_is_unknown_is_looked_up_in_the_sink(make):
    run = make()
    run.runner.hold("write")
    run.until(lambda: run.runner.numbers("write"))
    run.runner.answers["write"].append(RELOADED)
    run.shutdown.request()
    run.runner.let_go("write")
    run.engine.save_progress()
    assert run.is_reloaded
    assert run.ids == []
    assert run.sink.load() == run.engine.progress


@pytest.fixture
def refusing(make):
    """A run whose first write waits, and whose database refuses one row of the third segment."""

    def run(**policy):
        made = make(quarantined=QuarantinePolicy(**policy), accept=Acceptance(STRICT))
        made.runner.hold("write")
        made.until(lambda: made.runner.numbers("write"))
        with closing(sqlite3.connect(made.path / "replica.db")) as connection:
            connection.execute(
                "CREATE TRIGGER strict BEFORE INSERT ON \"shop.orders\" WHEN NEW.id = 5 BEGIN SELECT RAISE(ABORT, 'refused'); END"
            )
        made.runner.let_go("write")
        return made

    return run


def test_a_row_that_the_database_refuses_in_a_prepared_segment_is_looked_for_and_quarantined(refusing):
    run = refusing(refused=True)
    run.finish()
    (entry,) = run.sink.bookkeeping.quarantine.entries()
    assert entry.event.commit_ts == FIRST_TS + 5
    assert run.ids == [number for number in range(ROWS) if number != 5]
    (traced,) = run.runner.numbers("apply")
    assert traced in run.runner.numbers("write"), "first as it was prepared, then with its rows"
    assert not run.is_reloaded


def test_a_refused_row_of_a_prepared_segment_is_named_before_the_run_stops(refusing):
    run = refusing()
    with pytest.raises(RowRefused) as caught:
        run.finish()
    assert (caught.value.facts["offset"], caught.value.facts["commit_ts"]) == (len(CREATED) + 5, FIRST_TS + 5)
    assert run.ids == list(range(4)), "the segments before it are written"
    (traced,) = run.runner.numbers("apply")
    assert traced == run.runner.numbers("write")[-1]


def test_a_segment_whose_tables_were_taken_for_wrong_is_written_again_with_the_right_ones(make, monkeypatch):
    run = make()
    error = NeedsOperator("an index that upstream does not have", remedy=Remedy("test.remedy", "Drop it"))
    run.runner.answers["write"].append(WriteOutcome(state=WriteState.FAILED, error=error))
    asked = []
    monkeypatch.setattr(SinkTables, "explained", lambda _, found, tables: asked.append(found) or tables)
    run.finish()
    assert asked == [error]
    assert run.runner.numbers("apply") == run.runner.numbers("write")[:1]
    assert run.ids == list(range(ROWS))
    assert not run.is_reloaded


def test_a_segment_that_could_not_be_prepared_ahead_is_prepared_again_when_it_is_its_turn(make):
    run = make()
    prepare = run.runner.prepare

    def failing(plan):
        # What is known only now: the tables as the segment before has explained them. An error is also that of all segments behind it.
        error = NeedsOperator("an index that upstream does not have", remedy=Remedy("test.remedy", "Drop it"))
        return prepare(plan)._replace(parts=tuple(PreparedPart((Rendered(n, 0, error=error),)) for n in range(len(plan.windows))))

    run.runner.prepare = failing
    run.finish()
    assert run.ids == list(range(ROWS))
    assert run.runner.numbers("write") == []
    assert run.runner.kept_jobs == 0
    assert not run.is_reloaded


def test_what_was_prepared_before_a_ddl_that_came_late_is_not_written_behind_it():
    state = SimpleNamespace(tables=SimpleNamespace(changes=0))
    lane = Preparing(None, state, None)
    lane._pending = (AHEAD,)
    lane.lane.start(lambda: Prepared((PreparedPart(()),), "made"))
    lane.take()
    assert lane.of(STEP) is not None
    state.tables.changes += 1
    assert lane.of(STEP) is None
    lane.lane.close()


def test_what_an_operator_must_decide_in_a_prepared_segment_stops_the_run_at_that_segment(make):
    run = make()
    run.runner.answers["write"].append(
        WriteOutcome(state=WriteState.FAILED, error=NeedsOperator("no key", remedy=Remedy("test.remedy", "Add one")))
    )
    with pytest.raises(NeedsOperator):
        run.finish()
    assert run.ids == []


# --- which segment was prepared ----------------------------------------------------------------------------------------

RANGES = (RangeId(ONE, Offset(0), Offset(5)),)
AHEAD = Segment(window=SegmentWindow(after_ts=Ts(5), upto_ts=Ts(9)), ranges=RANGES, tables=(), rows=3)
STEP = ApplySegment(segment=AHEAD, positions={})


def lane_of(*segments):
    lane = Preparing(SimpleNamespace(components=SimpleNamespace(runner=Dropping())), None, None)
    lane._pending = segments
    return lane


def test_a_segment_is_known_by_its_bounds_and_ranges():
    assert lane_of(AHEAD).is_pending(STEP)


@pytest.mark.parametrize(
    "other",
    [
        replace(AHEAD, ranges=(*RANGES, RangeId(Stream("feed", 1), Offset(0), Offset(5)))),
        replace(AHEAD, ranges=(RangeId(ONE, Offset(0), Offset(6)),)),
        replace(AHEAD, window=replace(AHEAD.window, upto_ts=Ts(8))),
        replace(AHEAD, window=replace(AHEAD.window, after_ts=Ts(4))),
        replace(AHEAD, window=replace(AHEAD.window, again=True)),
    ],
    ids=["another range", "a longer range", "another end", "another beginning", "with the group at its beginning"],
)
def test_a_segment_that_was_cut_again_or_is_applied_again_is_not_the_prepared_one(other):
    assert not lane_of(AHEAD).is_pending(ApplySegment(segment=other, positions={}))


def test_segments_that_were_prepared_for_other_ranges_are_applied_anew_and_freed(make, monkeypatch):
    monkeypatch.setattr(Segment, "__eq__", lambda *_: False)
    run = make()
    run.finish()
    assert run.runner.numbers("write") == []
    assert run.runner.numbers("apply")
    assert run.ids == list(range(ROWS))
    run.until(lambda: not run.engine.cycle())
    assert run.runner.kept_jobs == 0


class Dropping:
    """A runner that is only asked to drop."""

    def __init__(self):
        self.dropped = []

    def drop(self, prepared):
        self.dropped.append(prepared)


def test_segments_that_were_cut_anew_take_the_place_of_the_prepared_ones_which_are_freed_with_the_last_of_their_job():
    lane = lane_of()
    runner = lane._run.components.runner
    later = replace(AHEAD, window=SegmentWindow(after_ts=Ts(9), upto_ts=Ts(12)))
    first, second, third = (Prepared((), name) for name in ("first", "second", "third"))

    def take(segments, prepared):
        lane._pending = segments
        lane.lane.start(lambda: prepared)
        wait_for_any([lane.lane], LONG_S)
        assert lane.take() is None

    take((AHEAD, later), first)
    take((replace(AHEAD, ranges=()),), second)
    assert runner.dropped == []
    take((replace(later, ranges=()),), third)
    assert runner.dropped == [first]
    assert lane.of(STEP) is None
    lane.written(STEP)
    assert runner.dropped == [first, second]
    lane.written(replace(STEP, segment=later))
    assert runner.dropped == [first, second, third]
    lane.lane.close()


# --- one lane ------------------------------------------------------------------------------------------------------------


def test_a_lane_gives_what_its_work_gives_once():
    lane = Lane("test")
    assert not lane.is_busy
    lane.start(lambda: 7)
    wait_for_any([lane, Lane("idle")], LONG_S)
    assert (lane.is_busy, lane.is_done, lane.result()) == (True, True, 7)
    assert (lane.is_busy, lane.is_done) == (False, False)
    with pytest.raises(InvariantViolation):
        lane.result()
    lane.close()


def test_a_lane_raises_what_its_work_raises_and_forgets_what_is_discarded():
    lane = Lane("test")
    lane.start(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        lane.result()
    lane.start(lambda: 1 // 0)
    lane.discard(Event())
    lane.discard(Event())
    assert not lane.is_busy
    lane.close()


def test_discarded_work_is_not_waited_for_at_a_shutdown():
    lane, gate, end = Lane("test"), Event(), Event()
    lane.start(lambda: gate.wait(LONG_S))
    Timer(LOOK_S, end.set).start()
    lane.discard(end)
    assert not lane.is_busy
    gate.set()
    lane.close()
