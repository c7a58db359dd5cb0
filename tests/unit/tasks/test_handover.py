"""Whole or not at all: whatever hand-over between two tasks is cut short, wherever, nothing of the segment is committed.

The bytes are those of PySpark's serializers, which take the end of a broken stream for the end of the data.
"""

import sqlite3
from contextlib import closing
from dataclasses import dataclass, replace
from io import BytesIO

import pytest
from pyspark.serializers import AutoBatchedSerializer, BatchedSerializer, CPickleSerializer

from applier.model.errors import FatalSinkError, IncompleteInput, InvariantViolation, JobAborted, RangeChanged, SourceError
from applier.model.events import FoldedName, TableName
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId
from applier.planner.statement import Phase, Statement
from applier.sinks.factory import open_sink
from applier.sinks.progress import ProgressCommit
from applier.sinks.settings import SinkSettings
from applier.sinks.write_outcome import WriteState
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.sources.port import Record
from applier.tasks import listen as listening
from applier.tasks.handover import DistributionEnd, Failure, RangeContent, Rendered, received
from applier.tasks.listen import ListenTask, RangeFailure, listen
from applier.tasks.plan import SMALL_SEGMENT_ROWS, ApplyPlan
from applier.tasks.prepare import FAILED, RENDERED, render, select
from applier.tasks.write import write
from tests.builders.planning import between

ROWS = 4
PARTITIONS = 3
BUCKETS = 2
ALL = PARTITIONS * ROWS
ONE_PER_FRAME = BatchedSerializer(CPickleSerializer(), 1)
SERIALIZERS = [ONE_PER_FRAME, AutoBatchedSerializer(CPickleSerializer())]
SMALL, LARGE = 1, 10_000
"""Rows that the plan names: whether one task does everything, or the segment is shuffled."""


@dataclass(frozen=True)
class Written:
    """A reader: each record is one row of its own commit_ts; ids do not repeat over partitions."""

    def read(self, ranges):
        for range_id in ranges:
            yield range_id, [record(range_id.stream.partition, number) for number in range(range_id.start, range_id.end)]


def record(partition, number):
    key = b'{"ts":%d,"scm":"shop","tbl":"orders","t":1}' % (10 + number)
    value = b'{"u":{"id":{"t":3,"h":true,"f":11,"v":%d}}}' % (partition * ROWS + number)
    return Record(Offset(number), (1).to_bytes(8, "big") + len(key).to_bytes(8, "big") + key, len(value).to_bytes(8, "big") + value)


def range_of(partition):
    return RangeId(Stream("feed", partition), Offset(0), Offset(ROWS))


@pytest.fixture(scope="module")
def cached():
    """What listeners have cached, range by range: a few chunks, and the report."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listening, "CHUNK_BYTES", 60)
        tasks = [ListenTask(range=range_of(partition), floor_ts=Ts(1), buckets=BUCKETS) for partition in range(PARTITIONS)]
        return [list(listen([task], Written(), OPEN_PROTOCOL)) for task in tasks]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "replica.db"


@pytest.fixture
def sink(path):
    with open_sink(SinkSettings(url=f"sqlite:///{path}")) as sink:
        sink.migrate()
        sink.acquire()
        sink.begin(Ts(0))
        with closing(sqlite3.connect(path)) as connection:
            connection.execute('CREATE TABLE "shop.orders" (id INTEGER PRIMARY KEY)')
        yield sink


@pytest.fixture
def plan(sink, cached):
    def make(rows=LARGE):
        return ApplyPlan(
            window=between(upto=1000),
            ranges={elements[-1].range: RangeContent.of(elements[-1]) for elements in cached},
            tables=sink.describe([TableName("shop", "orders")]),
            rekeyed={},
            rows=rows,
            buckets=BUCKETS,
            dialect=sink.dialect,
            writer=sink.writer,
            fence=sink.load().fence,
            commit=ProgressCommit(checkpoint_ts=Ts(1000), positions={}, known_tables=frozenset({FoldedName("shop", "orders")})),
        )

    return make


def rows_of(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute('SELECT COUNT(*) FROM "shop.orders"').fetchone()[0]


def through(data, serializer):
    return serializer.load_stream(BytesIO(data))


def sent(elements, serializer=ONE_PER_FRAME):
    stream = BytesIO()
    serializer.dump_stream(iter(elements), stream)
    return stream.getvalue()


def selected(plan, cached):
    """Run one select task per range; return what each reducer gets."""
    sent = [element for elements in cached for element in select(plan, elements)]
    return [[element for element in sent if element[0] == reducer] for reducer in range(plan.reducers)]


def rendered(plan, buckets):
    return [item for reducer, bucket in enumerate(buckets) for item in render(plan, reducer, bucket, OPEN_PROTOCOL)]


def committed(plan, planned):
    return write(plan, sorted(planned, key=lambda item: item[0]), Written())


def is_refused(outcome):
    return outcome.state is WriteState.RELOAD and isinstance(outcome.error, IncompleteInput)


@pytest.mark.parametrize("rows", [SMALL, LARGE])
def test_a_whole_segment_is_written(plan, cached, path, rows):
    outcome = committed(plan(rows), rendered(plan(rows), selected(plan(rows), cached)))
    assert (outcome.state, outcome.rows, rows_of(path)) == (WriteState.COMMITTED, ALL, ALL)


@pytest.mark.parametrize("serializer", SERIALIZERS, ids=str)
def test_cached_ranges_that_one_task_is_fed_are_all_there_or_nothing_is_written(plan, cached, path, serializer):
    small = plan(SMALL)
    whole = sent([element for elements in cached for element in elements], serializer)
    for size in range(len(whole)):
        bucket = list(select(small, through(whole[:size], serializer)))
        assert is_refused(committed(small, render(small, 0, bucket, OPEN_PROTOCOL))), size
    assert rows_of(path) == 0
    assert committed(small, render(small, 0, select(small, through(whole, serializer)), OPEN_PROTOCOL)).rows == ALL


@pytest.mark.parametrize("victim", range(PARTITIONS))
def test_a_cached_range_of_a_shuffled_segment_is_whole_or_nothing_is_written(plan, cached, path, victim):
    large, whole = plan(), sent(cached[victim])
    for size in range(len(whole)):
        feeds = [through(whole[:size], ONE_PER_FRAME) if number == victim else elements for number, elements in enumerate(cached)]
        assert is_refused(committed(large, rendered(large, selected(large, feeds)))), size
    assert rows_of(path) == 0


@pytest.mark.parametrize("victim", range(BUCKETS))
@pytest.mark.parametrize("serializer", SERIALIZERS, ids=str)
def test_what_a_reducer_is_sent_is_whole_or_nothing_is_written(plan, cached, path, serializer, victim):
    large = plan()
    buckets = selected(large, cached)
    whole = sent(buckets[victim], serializer)
    for size in range(len(whole)):
        feeds = [through(whole[:size], serializer) if number == victim else bucket for number, bucket in enumerate(buckets)]
        assert is_refused(committed(large, rendered(large, feeds))), size
    assert rows_of(path) == 0


@pytest.mark.parametrize("serializer", SERIALIZERS, ids=str)
def test_what_the_writer_is_sent_is_whole_or_nothing_is_written(plan, cached, path, serializer):
    large = plan()
    whole = sent(rendered(large, selected(large, cached)), serializer)
    for size in range(len(whole)):
        assert is_refused(committed(large, received(through(whole[:size], serializer)))), size
    assert rows_of(path) == 0
    assert committed(large, received(through(whole, serializer))).rows == ALL


def test_no_statement_runs_before_every_reducers_marker_has_arrived(plan, cached):
    class Untouched:
        def write(self, fence, statements, commit, quarantined=None):
            raise AssertionError("the writer was asked")

    large = replace(plan(), writer=Untouched())
    planned = rendered(large, selected(large, cached))
    for marker in [item for item in planned if isinstance(item[1], Rendered)]:
        assert is_refused(committed(large, [item for item in planned if item is not marker]))


def test_a_block_that_is_missing_in_the_middle_is_missed_wherever_it_was(plan, cached, path):
    large = plan()
    buckets = selected(large, cached)
    for number, bucket in enumerate(buckets):
        for missing in range(len(bucket)):
            feeds = [*buckets[:number], bucket[:missing] + bucket[missing + 1 :], *buckets[number + 1 :]]
            assert is_refused(committed(large, rendered(large, feeds)))
    planned = rendered(large, buckets)
    for missing in range(len(planned)):
        assert is_refused(committed(large, planned[:missing] + planned[missing + 1 :]))
    assert rows_of(path) == 0


def test_statements_that_are_lost_on_the_writers_own_disk_are_missed_before_commit(plan, cached, path, sink):
    large = plan()
    planned = sorted(rendered(large, selected(large, cached)), key=lambda item: item[0])
    assert sum(isinstance(item[1], Statement) for item in planned) == BUCKETS
    outcome = write(large, iter(planned[:-1]), Written())
    assert is_refused(outcome)
    assert outcome.error.facts["statements"] < outcome.error.facts["announced_statements"]
    assert (rows_of(path), sink.load().checkpoint_ts) == (0, 0)


def test_a_range_or_a_reducer_that_arrives_twice_is_no_whole_segment(plan, cached, path):
    large = plan()
    assert is_refused(committed(large, rendered(large, selected(large, [*cached, cached[0]]))))
    buckets = selected(large, cached)
    assert is_refused(committed(large, [*rendered(large, buckets), *render(large, 0, buckets[0], OPEN_PROTOCOL)]))
    assert rows_of(path) == 0


def test_the_error_names_the_range_that_is_missing(plan, cached):
    large = plan()
    (_, failure), *_ = [item for item in rendered(large, selected(large, cached[:-1])) if item[0] == FAILED]
    assert failure.error.facts["topic"] == "feed"
    assert failure.error.facts["partition"] == PARTITIONS - 1
    assert failure.error.facts["offset"] == 0
    assert failure.error.remedy


def test_the_cached_failure_of_a_range_is_not_its_content_and_it_is_read_again(plan, cached, path):
    large = plan()
    *chunks, report = cached[0]
    lost_race = [chunks[0], RangeFailure(report.range, SourceError("Kafka does not answer", kind="unreachable"))]
    outcome = committed(large, rendered(large, selected(large, [lost_race, *cached[1:]])))
    assert (outcome.state, type(outcome.error), outcome.error.facts["cause"]) == (WriteState.RELOAD, JobAborted, "Kafka does not answer")
    assert rows_of(path) == 0


def test_a_range_that_is_read_again_and_differs_is_a_reason_to_reload(plan, cached):
    large = plan()
    *chunks, report = cached[0]
    outcome = committed(large, rendered(large, selected(large, [[*chunks[1:], report], *cached[1:]])))
    assert (outcome.state, type(outcome.error)) == (WriteState.RELOAD, RangeChanged)


def test_a_range_of_another_segment_is_a_defect(plan, cached):
    large = plan()
    foreign = replace(cached[0][-1], range=RangeId(Stream("other", 0), Offset(0), Offset(1)))
    outcome = committed(large, rendered(large, selected(large, [[*cached[0], foreign], *cached[1:]])))
    assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, InvariantViolation)


def test_an_error_of_the_rows_says_more_than_what_is_missing_beside_it(plan, cached):
    large = plan()
    planned = [(FAILED, Failure(IncompleteInput("cut"))), (FAILED, Failure(FatalSinkError("the table is missing")))]
    outcome = committed(large, planned)
    assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, FatalSinkError)


def test_a_segment_without_rows_in_its_ranges_is_whole_too(plan, cached, path):
    empty = replace(plan(), window=between(after=900, upto=1000))
    outcome = committed(empty, rendered(empty, selected(empty, cached)))
    assert (outcome.state, rows_of(path)) == (WriteState.COMMITTED, 0)


def test_markers_are_sent_to_every_reducer_and_come_behind_what_they_count(plan, cached):
    large = plan()
    for bucket in selected(large, cached):
        assert [number for _, item in bucket if isinstance(item, DistributionEnd) for number in item.ranges] == list(range(PARTITIONS))
        assert sum(item.chunks for _, item in bucket if isinstance(item, DistributionEnd)) == len(bucket) - PARTITIONS
    keys = [key for key, _ in rendered(large, selected(large, cached))]
    assert keys.count(RENDERED) == BUCKETS
    assert keys[-1] == RENDERED
    assert max(FAILED, RENDERED) < min(Phase)


def test_the_plan_says_how_many_tasks_render(plan):
    assert (plan(SMALL_SEGMENT_ROWS).reducers, plan(SMALL_SEGMENT_ROWS + 1).reducers) == (1, BUCKETS)
    assert replace(plan(), bucket_splits=3).reducers == BUCKETS * 3
