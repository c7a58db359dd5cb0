"""What every runner keeps (``tasks.port.Runner``): in this process, and on Spark with one JVM for the whole module."""

import os
import sqlite3
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
from pyspark import SparkContext

from applier.model.errors import FatalSinkError, JobAborted, ProtocolError, RangeChanged, RetryableSinkError, SourceError
from applier.model.events import FoldedName, TableName
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.sinks.port import Sink
from applier.sinks.progress import Fence, ProgressCommit, WriteState
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.changefeed import ChangefeedKit
from applier.sources.claim_check.settings import ClaimCheckSettings
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.sources.port import Decoder, RangeReader
from applier.spark import batch as slices
from applier.spark import job
from applier.spark.runner import SparkRunner
from applier.spark.session import end_context, start_context
from applier.tasks.handover import RangeContent
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure
from applier.tasks.plan import SLICED_SEGMENT_ROWS, SMALL_SEGMENT_ROWS, PreparePlan, WritePlan
from applier.tasks.port import Prepared, Runner
from applier.tasks.tolerance import STRICT, Tolerance
from applier.upstream.row_lookup import TidbRowLookup
from applier.upstream.settings import UpstreamSettings
from tests.builders.handwritten import KEY, ONE, log_of
from tests.builders.planning import between
from tests.builders.wire import column, dump, head, record, text
from tests.rig.class_archive import use_class_archive
from tests.rig.fake_source import FakeSource
from tests.rig.local_runner import LocalRunner
from tests.rig.numbered_rows import FIRST_TS, NumberedRows
from tests.rig.program import ROOT
from tests.rig.tidb import tidb_server

ROWS, PARTITIONS, BUCKETS = 20, 3, 4
ALL = ROWS * PARTITIONS
END = FIRST_TS + ROWS - 1
"""The commit_ts of each partition's last row; row number n of each has FIRST_TS + n."""
SMALL, SHUFFLED = 1, SMALL_SEGMENT_ROWS + 1
"""Rows that a plan names: whether one task does everything, or the segment is shuffled."""
BOUNDS = (0, FIRST_TS + 7, FIRST_TS + 12, END)
"""Of three segments that are prepared together."""
KNOWN = frozenset({FoldedName("shop", "orders")})
UNKNOWN = RangeId(Stream("feed", 99), Offset(0), Offset(1))

MakeRunner = Callable[..., Runner]
"""From a reader, and a decoder if it is not the usual one."""
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

    def make(reader: RangeReader, decoder: Decoder = OPEN_PROTOCOL) -> Runner:
        if request.param == "local":
            made.append(LocalRunner(lambda: reader, decoder))
        else:
            made.append(SparkRunner(request.getfixturevalue("spark"), lambda: reader, decoder))
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
        commit = ProgressCommit(checkpoint_ts=Ts(upto), positions={}, known_tables=KNOWN)
        write_plan = WritePlan(writer=self.sink.writer, fence=progress.fence, commit=commit)
        return self.prepare_plan(outcomes, after, upto, rows=rows, splits=splits), write_plan

    def prepare_plan(self, outcomes: list[ListenOutcome], *bounds: int, rows: int = SHUFFLED, splits: int = 1) -> PreparePlan:
        """Return how the segments between the bounds are prepared."""
        return PreparePlan(
            windows=tuple(between(after=after, upto=upto) for after, upto in pairwise(bounds)),
            ranges={report.range: RangeContent.of(report) for report in outcomes if isinstance(report, RangeReport)},
            tables=self.sink.describe([TableName("shop", "orders")]),
            rekeyed={},
            rows=rows,
            buckets=BUCKETS,
            bucket_splits=splits,
            dialect=self.sink.dialect,
        )

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
    with open_sink(SinkSettings(url=f"sqlite:///{path}", lock_wait_timeout_s=3)) as sink:
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
    with_failed = replace(plan, ranges=plan.ranges | {failure.range: RangeContent(ROWS, 1, 0)})
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
    assert [str(event.position) for event in tolerant.rejected_events] == ["feed/2@0"]


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


@pytest.mark.parametrize("changed", [{"rows": ROWS + 1}, {"checksum": 1}], ids=["rows", "checksum"])
@pytest.mark.parametrize("rows", [SMALL, SHUFFLED])
def test_nothing_is_written_of_a_range_that_differs_from_its_report(
    make_runner: MakeRunner, stage: Stage, rows: int, changed: dict[str, int]
) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    outcomes = listen(runner, reader)
    plan, write_plan = stage.plan(outcomes, rows=rows)
    other = plan.ranges[outcomes[1].range]._replace(**changed)
    refused = runner.apply(replace(plan, ranges=plan.ranges | {outcomes[1].range: other}), write_plan)
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


# --- prepared segments -------------------------------------------------------------------------------------------------


def commit_of(stage: Stage, upto: int) -> WritePlan:
    """How a segment up to ``upto`` is written now."""
    progress = stage.sink.load()
    assert progress is not None
    return WritePlan(
        writer=stage.sink.writer, fence=progress.fence, commit=ProgressCommit(checkpoint_ts=Ts(upto), positions={}, known_tables=KNOWN)
    )


def prepared_in(runner: Runner, plan: PreparePlan) -> Prepared:
    prepared = runner.prepare(plan)
    assert isinstance(prepared, Prepared)
    return prepared


@pytest.mark.parametrize("splits", [1, 3])
def test_segments_that_were_prepared_together_are_written_one_after_the_other(make_runner: MakeRunner, stage: Stage, splits: int) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    plan = stage.prepare_plan(listen(runner, reader), *BOUNDS, splits=splits)
    prepared = prepared_in(runner, plan)
    assert len(prepared.parts) == len(plan.windows)
    assert stage.is_untouched()
    for number, upto in enumerate(BOUNDS[1:]):
        outcome = runner.write(prepared, number, commit_of(stage, upto))
        expected = numbers(0, upto - FIRST_TS)
        assert (outcome.state, stage.ids(), stage.checkpoint_ts()) == (WriteState.COMMITTED, expected, upto)
        assert outcome.transactions == upto - max(BOUNDS[number], FIRST_TS - 1)
    runner.drop(prepared)


def test_a_write_that_was_rolled_back_is_repeated_from_the_same_prepared_segment(make_runner: MakeRunner, stage: Stage) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    prepared = prepared_in(runner, stage.prepare_plan(listen(runner, reader), 0, END))
    with closing(sqlite3.connect(stage.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        locked = runner.write(prepared, 0, commit_of(stage, END))
        other.execute("ROLLBACK")
    assert (locked.state, type(locked.error)) == (WriteState.FAILED, RetryableSinkError)
    assert stage.is_untouched()
    outcome = runner.write(prepared, 0, commit_of(stage, END))
    assert (outcome.state, stage.ids()) == (WriteState.COMMITTED, numbers(0, ROWS - 1))


def test_the_error_of_one_segment_leaves_those_before_it_writable(make_runner: MakeRunner, stage: Stage) -> None:
    reader = NumberedRows(ROWS, unknown_column=ROWS // 2)
    runner = make_runner(reader)
    prepared = prepared_in(runner, stage.prepare_plan(listen(runner, reader), *BOUNDS))
    assert [segment.error is None for segment in prepared.parts] == [True, False, False]
    assert runner.write(prepared, 0, commit_of(stage, BOUNDS[1])).state is WriteState.COMMITTED
    refused = runner.write(prepared, 1, commit_of(stage, BOUNDS[2]))
    assert (refused.state, type(refused.error)) == (WriteState.FAILED, FatalSinkError)
    assert (stage.ids(), stage.checkpoint_ts()) == (numbers(0, BOUNDS[1] - FIRST_TS), BOUNDS[1])


@pytest.mark.parametrize("is_dropped", [True, False])
def test_prepared_segments_that_were_freed_are_lost(make_runner: MakeRunner, stage: Stage, *, is_dropped: bool) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    prepared = prepared_in(runner, stage.prepare_plan(listen(runner, reader), *BOUNDS))
    assert runner.write(prepared, 0, commit_of(stage, BOUNDS[1])).state is WriteState.COMMITTED
    runner.drop(prepared) if is_dropped else runner.release_all()
    lost = runner.write(prepared, 1, commit_of(stage, BOUNDS[2]))
    assert (lost.state, type(lost.error)) == (WriteState.RELOAD, JobAborted)
    assert stage.checkpoint_ts() == BOUNDS[1]
    runner.drop(prepared)


def test_prepared_segments_outlive_the_ranges_that_they_were_made_of(make_runner: MakeRunner, stage: Stage) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    outcomes = listen(runner, reader)
    prepared = prepared_in(runner, stage.prepare_plan(outcomes, 0, END))
    runner.release([outcome.range for outcome in outcomes])
    assert runner.write(prepared, 0, commit_of(stage, END)).rows == ALL


def test_ranges_that_are_not_cached_or_differ_from_their_reports_are_not_prepared(make_runner: MakeRunner, stage: Stage) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    outcomes = listen(runner, reader)
    plan = stage.prepare_plan(outcomes, *BOUNDS)
    changed = plan.ranges[outcomes[1].range]._replace(rows=ROWS + 1)
    prepared = prepared_in(runner, replace(plan, ranges=plan.ranges | {outcomes[1].range: changed}))
    for number, upto in enumerate(BOUNDS[1:]):
        refused = runner.write(prepared, number, commit_of(stage, upto))
        assert (refused.state, type(refused.error)) == (WriteState.RELOAD, RangeChanged)
    runner.release([outcomes[0].range])
    assert isinstance(runner.prepare(plan), JobAborted)
    assert stage.is_untouched()


@pytest.mark.parametrize("rows", [SMALL, SHUFFLED])
def test_ranges_that_were_listened_to_one_after_the_other_are_applied_together(make_runner: MakeRunner, stage: Stage, rows: int) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    tasks = reader.tasks(PARTITIONS, BUCKETS)
    outcomes = [outcome for task in tasks for outcome in runner.listen([task])]
    outcome = runner.apply(*stage.plan(outcomes, rows=rows))
    assert (outcome.state, outcome.rows, stage.ids()) == (WriteState.COMMITTED, ALL, numbers(0, ROWS - 1))


def test_segments_are_prepared_from_the_batches_of_several_calls(make_runner: MakeRunner, stage: Stage) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    first, *others = reader.tasks(PARTITIONS, BUCKETS)
    outcomes = [*runner.listen([first]), *runner.listen(others)]
    prepared = prepared_in(runner, stage.prepare_plan(outcomes, *BOUNDS))
    for number, upto in enumerate(BOUNDS[1:]):
        assert runner.write(prepared, number, commit_of(stage, upto)).state is WriteState.COMMITTED
    assert stage.ids() == numbers(0, ROWS - 1)


@pytest.mark.parametrize("rows", [SMALL, SHUFFLED])
def test_large_rows_are_found_wherever_the_tasks_run(make_runner: MakeRunner, stage: Stage, tmp_path: Path, rows: int) -> None:
    """A claim-check object, read by a listening task, and rows of upstream, read by preparing ones: settings cross, connections do not."""
    key, value = record((head(20), {"u": {"id": column(3, KEY, 1), "name": text("claimed")}}))
    (tmp_path / "a.json").write_bytes(dump({"key": b64encode(key).decode(), "value": b64encode(value).decode()}))
    placeholders = [(ONE, (head(21, ohk=True), {"u": {"id": column(3, KEY, number)}})) for number in range(2, 40)]
    claim = (ONE, (head(20, ccl="s3://elsewhere/a.json"), {"u": {"id": column(3, KEY, 1)}}))
    source = FakeSource(log_of(claim, *placeholders))
    with tidb_server() as upstream:
        upstream.create(1, "shop", "orders", {"id": "int(11)", "name": "text"}, ["id"])
        for number in range(2, 40):
            upstream.write(21, "shop", "orders", id=number, name=f"of upstream {number}")
        lookup = TidbRowLookup(UpstreamSettings(url=upstream.url))
        runner = make_runner(
            source.reader,
            ChangefeedKit(KafkaSettings(bootstrap_servers="unused", topics=("unused",), group_id="unused")).decoder(
                claim_check=ClaimCheckSettings(storage=str(tmp_path)), lookup=lookup
            ),
        )
        range_id = RangeId(ONE, Offset(0), Offset(39))
        outcomes = list(runner.listen([ListenTask(range=range_id, floor_ts=Ts(1), buckets=BUCKETS)]))
        written = runner.apply(*stage.plan(outcomes, rows=rows))
    assert (written.state, written.rows) == (WriteState.COMMITTED, 39)
    with closing(sqlite3.connect(stage.path)) as connection:
        found = dict(connection.execute('SELECT id, name FROM "shop.orders"').fetchall())
    assert found == {1: "claimed"} | {number: f"of upstream {number}" for number in range(2, 40)}


# --- segments between DDLs ---------------------------------------------------------------------------------------------

DDLS = (FIRST_TS + 3, FIRST_TS + 7, FIRST_TS + 8, FIRST_TS + 15)
"""Where segments end; the rows behind the last of them wait."""


@pytest.fixture
def divisions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Batches are divided however little it saves. Each division notes how many slices it makes."""
    made: list[int] = []

    def noted(bounds: Sequence[Ts]) -> object:
        made.append(len(bounds) - 1)
        return dividing(bounds)

    dividing = job.dividing
    monkeypatch.setattr(job, "dividing", noted)
    monkeypatch.setattr(slices, "COST_OF_A_JOB", -(10**9))
    return made


def between_ddls(stage: Stage, outcomes: list[ListenOutcome], number: int, **changed: object) -> Plans:
    """How the small segment before a DDL is applied, of which those behind it are known."""
    after = DDLS[number - 1] if number else 0
    plan, write_plan = stage.plan(outcomes, after, DDLS[number])
    return replace(plan, **{"later": tuple(map(Ts, DDLS[number + 1 :]))} | changed), write_plan


def test_segments_between_ddls_are_applied_from_a_batch_that_is_divided_once(
    make_runner: MakeRunner, stage: Stage, divisions: list[int]
) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    outcomes = listen(runner, reader)
    for number, upto in enumerate(DDLS):
        # Also those that would be prepared by several tasks elsewhere.
        rows = (ROWS, SLICED_SEGMENT_ROWS)[number % 2]
        outcome = runner.apply(*between_ddls(stage, outcomes, number, rows=rows))
        found = (outcome.state, stage.ids(), stage.checkpoint_ts())
        assert found == (WriteState.COMMITTED, numbers(0, upto - FIRST_TS), upto)
        assert outcome.transactions == upto - max(DDLS[number - 1] if number else 0, FIRST_TS - 1)
    assert divisions == [len(DDLS)] if isinstance(runner, SparkRunner) else cast("LocalRunner", runner).sliced == len(DDLS)
    # The last segment ends at a watermark, in no slice.
    assert runner.apply(*stage.plan(outcomes, DDLS[-1], END)).state is WriteState.COMMITTED
    assert stage.ids() == numbers(0, ROWS - 1)


def test_ranges_that_were_read_after_a_division_are_not_missed(make_runner: MakeRunner, stage: Stage, divisions: list[int]) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    first, *others = reader.tasks(PARTITIONS, BUCKETS)
    outcomes = list(runner.listen([first]))
    assert runner.apply(*between_ddls(stage, outcomes, 0)).rows == DDLS[0] - FIRST_TS + 1
    outcomes += runner.listen(others)
    assert runner.apply(*between_ddls(stage, outcomes, 1)).rows == PARTITIONS * (DDLS[1] - DDLS[0])
    again = replace(between(after=DDLS[1], upto=DDLS[2]), again=True)
    plan, write_plan = between_ddls(stage, outcomes, 2, windows=(again,))
    assert runner.apply(plan, write_plan).rows == PARTITIONS * (DDLS[2] - DDLS[1] + 1)
    assert (divisions or [len(DDLS)] * 2) == [len(DDLS)] * 2


def test_nothing_is_written_from_slices_of_ranges_that_are_released_or_differ_from_their_reports(
    make_runner: MakeRunner, stage: Stage, divisions: list[int]
) -> None:
    reader = NumberedRows(ROWS)
    runner = make_runner(reader)
    outcomes = listen(runner, reader)
    plan, write_plan = between_ddls(stage, outcomes, 0)
    other = plan.ranges[outcomes[1].range]._replace(checksum=1)
    refused = runner.apply(replace(plan, ranges=plan.ranges | {outcomes[1].range: other}), write_plan)
    assert (refused.state, type(refused.error), stage.is_untouched()) == (WriteState.RELOAD, RangeChanged, True)
    assert runner.apply(plan, write_plan).state is WriteState.COMMITTED
    runner.release([outcomes[0].range])
    lost = runner.apply(*between_ddls(stage, outcomes, 1))
    assert (lost.state, type(lost.error), stage.checkpoint_ts()) == (WriteState.RELOAD, JobAborted, DDLS[0])
    assert len(divisions) == isinstance(runner, SparkRunner)
