"""What every runner keeps (``tasks.port.Runner``): in this process, and on Spark with one JVM for the whole module."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyspark import SparkContext

from applier.model.errors import FatalSinkError, JobAborted, ProtocolError, RangeChanged, SourceError
from applier.model.events import FoldedName, TableName
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.sinks.factory import open_sink
from applier.sinks.port import Sink
from applier.sinks.progress import Fence, ProgressCommit
from applier.sinks.settings import SinkSettings
from applier.sinks.write_outcome import WriteState
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.spark.runner import SparkRunner
from applier.spark.session import end_context, start_context
from applier.tasks.handover import RangeContent
from applier.tasks.listen import ListenOutcome, RangeFailure
from applier.tasks.plan import SMALL_SEGMENT_ROWS, PreparePlan, WritePlan
from applier.tasks.port import Runner
from applier.tasks.tolerance import STRICT, Tolerance
from tests.builders.planning import between
from tests.rig.class_archive import use_class_archive
from tests.rig.local_runner import LocalRunner
from tests.rig.numbered_rows import FIRST_TS, NumberedRows
from tests.rig.program import ROOT

ROWS, PARTITIONS, BUCKETS = 20, 3, 4
ALL = ROWS * PARTITIONS
END = FIRST_TS + ROWS - 1
"""The commit_ts of each partition's last row; row number n of each has FIRST_TS + n."""
SMALL, SHUFFLED = 1, SMALL_SEGMENT_ROWS + 1
"""Rows that a plan names: whether one task does everything, or the segment is shuffled."""
UNKNOWN = RangeId(Stream("feed", 99), Offset(0), Offset(1))

MakeRunner = Callable[[NumberedRows], Runner]
Plans = tuple[PreparePlan, WritePlan]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkContext]:
    use_class_archive()
    conf = {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.local.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]),
    }
    # As the applier does it: not in the main thread, whose handler of Ctrl-C a context replaces.
    with ThreadPoolExecutor(1) as pool:
        context = pool.submit(start_context, "contract", "local[2]", conf).result()
    yield context
    end_context(context)


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.slow)])
def make_runner(request: pytest.FixtureRequest) -> Iterator[MakeRunner]:
    made: list[Runner] = []

    def make(reader: NumberedRows) -> Runner:
        if request.param == "local":
            made.append(LocalRunner(reader, OPEN_PROTOCOL))
        else:
            made.append(SparkRunner(request.getfixturevalue("spark"), reader, OPEN_PROTOCOL))
        return made[-1]

    yield make
    for runner in made:
        runner.release_all()  # and not close(): the context is shared


@dataclass
class Stage:
    """One sink with one table, and the plans of its segments."""

    sink: Sink
    path: Path
    commits: int = field(default=0)

    def plan(self, outcomes: list[ListenOutcome], after: int = 0, upto: int = END, *, rows: int = SMALL, splits: int = 1) -> Plans:
        """Return how the segment is prepared and written: the arguments of ``apply``."""
        progress = self.sink.load()
        assert progress is not None
        prepare = PreparePlan(
            windows=(between(after=after, upto=upto),),
            ranges={report.range: RangeContent.of(report) for report in outcomes if isinstance(report, RangeReport)},
            tables=self.sink.describe([TableName("shop", "orders")]),
            rekeyed={},
            rows=rows,
            buckets=BUCKETS,
            bucket_splits=splits,
            dialect=self.sink.dialect,
        )
        known = frozenset({FoldedName("shop", "orders")})
        commit = ProgressCommit(checkpoint_ts=Ts(upto), positions={}, known_tables=known)
        return prepare, WritePlan(writer=self.sink.writer, fence=progress.fence, commit=commit)

    def ids(self) -> list[int]:
        with closing(sqlite3.connect(self.path)) as connection:
            return [number for (number,) in connection.execute('SELECT id FROM "shop.orders" ORDER BY id')]

    def checkpoint_ts(self) -> int:
        progress = self.sink.load()
        assert progress is not None
        return progress.checkpoint_ts

    def is_untouched(self) -> bool:
        return self.ids() == [] and self.checkpoint_ts() == 0


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    path = tmp_path / "replica.db"
    with open_sink(SinkSettings(url=f"sqlite:///{path}")) as sink:
        sink.migrate()
        sink.acquire()
        sink.begin(Ts(0))
        with closing(sqlite3.connect(path)) as connection:
            connection.execute('CREATE TABLE "shop.orders" (id INTEGER PRIMARY KEY, name TEXT)')
        yield Stage(sink, path)


def listen(runner: Runner, reader: NumberedRows, tolerance: Tolerance = STRICT) -> list[ListenOutcome]:
    return list(runner.listen(reader.tasks(PARTITIONS, BUCKETS, tolerance)))


def numbers(first: int, last: int) -> list[int]:
    """The ids of all partitions' rows number ``first`` to ``last``."""
    return sorted(partition * ROWS + number for partition in range(PARTITIONS) for number in range(first, last + 1))


def test_each_task_has_one_outcome_in_the_order_of_the_tasks(make_runner: MakeRunner) -> None:
    reader = NumberedRows(ROWS)
    tasks = list(reversed(reader.tasks(PARTITIONS, BUCKETS)))
    outcomes = make_runner(reader).listen(tasks)
    assert [outcome.range for outcome in outcomes] == [task.range for task in tasks]
    assert all(isinstance(outcome, RangeReport) and outcome.rows == ROWS for outcome in outcomes)


def test_nothing_is_listened_to_without_tasks(make_runner: MakeRunner) -> None:
    assert list(make_runner(NumberedRows(ROWS)).listen([])) == []


@pytest.mark.parametrize(("rows", "splits"), [(SMALL, 1), (SHUFFLED, 1), (SHUFFLED, 3)])
def test_a_segment_holds_the_rows_of_its_window_and_the_next_one_is_applied_from_the_same_ranges(
    make_runner: MakeRunner, stage: Stage, rows: int, splits: int
) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    outcomes = listen(runner, reader)
    middle = FIRST_TS + 7
    first = runner.apply(*stage.plan(outcomes, 0, middle, rows=rows, splits=splits))
    assert (first.state, first.rows, first.transactions) == (WriteState.COMMITTED, 8 * PARTITIONS, 8)
    assert (stage.ids(), stage.checkpoint_ts()) == (numbers(0, 7), middle)
    second = runner.apply(*stage.plan(outcomes, middle, END, rows=rows, splits=splits))
    assert (second.state, second.rows) == (WriteState.COMMITTED, ALL - first.rows)
    assert (stage.ids(), stage.checkpoint_ts()) == (numbers(0, ROWS - 1), END)


@pytest.mark.parametrize("rows", [SMALL, SHUFFLED])
def test_a_window_without_rows_moves_the_checkpoint(make_runner: MakeRunner, stage: Stage, rows: int) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    outcome = runner.apply(*stage.plan(listen(runner, reader), END, END + 5, rows=rows))
    assert (outcome.state, outcome.rows, stage.ids(), stage.checkpoint_ts()) == (WriteState.COMMITTED, 0, [], END + 5)


def test_a_range_that_cannot_be_read_fails_alone_with_the_sources_error_and_leaves_nothing_cached(
    make_runner: MakeRunner, stage: Stage
) -> None:
    reader = NumberedRows(ROWS, expired=1)
    runner = make_runner(reader)
    outcomes = listen(runner, reader)
    assert [isinstance(outcome, RangeFailure) for outcome in outcomes] == [False, True, False]
    failure = outcomes[1]
    assert isinstance(failure, RangeFailure)
    assert type(failure.error) is SourceError
    assert failure.error.facts == {"kind": "retention", "topic": "feed", "partition": 1, "offset": 0}
    plan, write_plan = stage.plan(outcomes)
    with_failed = replace(plan, ranges=plan.ranges | {failure.range: RangeContent(ROWS, 1)})
    refused = runner.apply(with_failed, write_plan)
    assert (refused.state, type(refused.error), stage.is_untouched()) == (WriteState.RELOAD, JobAborted, True)
    assert runner.apply(plan, write_plan).rows == ALL - ROWS


def test_s23_an_unreadable_record_fails_its_range_or_is_reported_if_that_is_tolerated(make_runner: MakeRunner) -> None:
    reader = NumberedRows(ROWS, rubbish=2)
    runner = make_runner(reader)
    strict = listen(runner, reader)[2]
    assert isinstance(strict, RangeFailure)
    assert isinstance(strict.error, ProtocolError)
    assert (strict.error.facts["partition"], strict.error.facts["offset"]) == (2, 0)
    tolerant = listen(runner, reader, Tolerance(unreadable=True))[2]
    assert isinstance(tolerant, RangeReport)
    assert tolerant.rows == ROWS - 1
    assert [str(event.place) for event in tolerant.rejected_events] == ["feed/2@0"]


def test_a_range_that_is_listened_to_again_takes_the_place_of_the_first(make_runner: MakeRunner, stage: Stage) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    assert listen(runner, reader) == listen(runner, reader)
    outcome = runner.apply(*stage.plan(listen(runner, reader)))
    assert (outcome.state, outcome.rows) == (WriteState.COMMITTED, ALL)


def test_released_ranges_cannot_be_applied_and_unknown_ones_are_ignored(make_runner: MakeRunner, stage: Stage) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    outcomes = listen(runner, reader)
    runner.release([UNKNOWN, outcomes[0].range])
    refused = runner.apply(*stage.plan(outcomes))
    assert (refused.state, type(refused.error), stage.is_untouched()) == (WriteState.RELOAD, JobAborted, True)
    # What is left of a batch holds the rows of all of its ranges; the engine releases a range only when A has passed its rows.
    assert runner.apply(*stage.plan(outcomes[1:])).state is WriteState.COMMITTED
    runner.release_all()
    assert runner.apply(*stage.plan(outcomes[1:])).state is WriteState.RELOAD


@pytest.mark.parametrize("rows", [SMALL, SHUFFLED])
def test_nothing_is_written_of_a_range_that_differs_from_its_report(make_runner: MakeRunner, stage: Stage, rows: int) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    outcomes = listen(runner, reader)
    plan, write_plan = stage.plan(outcomes, rows=rows)
    changed = plan.ranges[outcomes[1].range]._replace(rows=ROWS + 1)
    refused = runner.apply(replace(plan, ranges=plan.ranges | {outcomes[1].range: changed}), write_plan)
    assert (refused.state, type(refused.error), stage.is_untouched()) == (WriteState.RELOAD, RangeChanged, True)


@pytest.mark.parametrize("rows", [SMALL, SHUFFLED])
def test_an_error_of_the_sink_keeps_its_type_and_facts(make_runner: MakeRunner, stage: Stage, rows: int) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    plan = stage.plan(listen(runner, reader), rows=rows)
    with closing(sqlite3.connect(stage.path)) as connection:
        connection.execute('DROP TABLE "shop.orders"')
    failed = runner.apply(*plan)
    assert (failed.state, type(failed.error)) == (WriteState.FAILED, FatalSinkError)
    assert stage.checkpoint_ts() == 0


def test_an_older_fencing_token_writes_nothing(make_runner: MakeRunner, stage: Stage) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    plan, write_plan = stage.plan(listen(runner, reader))
    fence = Fence(write_plan.fence.epoch - 1, write_plan.fence.window_id)
    fenced = runner.apply(plan, replace(write_plan, fence=fence))
    assert (fenced.state, stage.is_untouched()) == (WriteState.FENCED, True)
