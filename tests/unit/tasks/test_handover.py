"""Whole or not at all: whatever hand-over between two tasks is cut short, wherever, nothing of the segment is committed.

The bytes are those of PySpark's serializers, which take the end of a broken stream for the end of the data.
"""

import sqlite3
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, replace
from io import SEEK_END, BytesIO
from itertools import pairwise

import pytest
from pyspark.serializers import AutoBatchedSerializer, CPickleSerializer

from applier.model.errors import DamagedData, FatalSinkError, IncompleteInput, JobAborted, RangeChanged, SourceError
from applier.model.events import FoldedName, TableName
from applier.model.failure import FailureKind
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId, RangeReport
from applier.model.seal import seal
from applier.planner import TransactionSet
from applier.planner.keyless import AmbiguousRows
from applier.planner.port import Phase, Statement
from applier.sinks import write_transaction as held_statements
from applier.sinks.progress import ProgressCommit, WriteOutcome, WriteState
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.open_protocol import OPEN_PROTOCOL
from applier.sources.port import Record
from applier.spark.batch import SERIALIZER
from applier.spark.job import by_part
from applier.tasks import listen as listening
from applier.tasks.handover import Failure, RangeContent, RangesEnd, RoutedEnd, received, routed_chunks
from applier.tasks.listen import ListenTask, RangeFailure
from applier.tasks.plan import REPORTS, SMALL_SEGMENT_ROWS, PreparePlan, WritePlan, deal, divide, partition_of
from applier.tasks.prepare import ANNOUNCED, PreparedPart, Rendered, render, reroute, selected_chunks
from applier.tasks.write import apply_small, write
from tests.builders.planning import between

ROWS = 4
PARTITIONS = 4
BUCKETS = 2
ALL = PARTITIONS * ROWS
GROUPS = [[(0, 1), (2,)], [(3,)]]
"""Two batches: the ranges of each listening task of the one, and of the only task of the other."""
TASKS = sum(len(groups) for groups in GROUPS)
BOUNDS = [0, 11, 1000]
"""Of two segments; the first two rows of each partition are in the first."""
SMALL, LARGE = 1, 10_000
"""Rows that the plan names: whether one task does everything, or the segment is prepared first."""
SERIALIZERS = [SERIALIZER, AutoBatchedSerializer(CPickleSerializer())]


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


def by_address(addressed):
    """Give each partition of a shuffle what was addressed to it."""
    partitions = defaultdict(list)
    for address, element in addressed:
        partitions[address].append(element)
    return partitions


def dealt(partitions):
    """What one listening task sends."""
    return list(deal([ListenTask(range=range_of(p), floor_ts=Ts(1), buckets=BUCKETS) for p in partitions], Written(), OPEN_PROTOCOL))


@pytest.fixture(scope="module")
def cached():
    """What listeners have cached: task by task the elements of each partition, a few chunks per bucket."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listening, "CHUNK_BYTES", 60)
        return [by_address(dealt(group)) for groups in GROUPS for group in groups]


@pytest.fixture(scope="module")
def reports(cached):
    return [outcome for task in cached for outcomes in task[REPORTS] for outcome in outcomes]


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
def plan(sink, reports):
    """Two segments, unless ``bounds`` says otherwise."""

    def make(rows=LARGE, bounds=BOUNDS, splits=1, rekeyed=()):
        return PreparePlan(
            windows=tuple(between(after=after, upto=upto) for after, upto in pairwise(bounds)),
            ranges={report.range: RangeContent.of(report) for report in reports},
            tables=sink.describe([TableName("shop", "orders")]),
            rekeyed=dict.fromkeys(rekeyed, ("id",)),
            rows=rows,
            buckets=BUCKETS,
            bucket_splits=splits,
            dialect=sink.dialect,
        )

    return make


@pytest.fixture
def rerouted(plan):
    """Plans whose rows change their bucket, for either reason."""
    return [plan(splits=2), plan(rekeyed=[FoldedName("shop", "orders")])]


@pytest.fixture
def target(sink):
    """How a segment up to ``upto`` is written now."""

    def make(upto=BOUNDS[1]):
        commit = ProgressCommit(checkpoint_ts=Ts(upto), positions={}, known_tables=frozenset({FoldedName("shop", "orders")}))
        return WritePlan(writer=sink.writer, fence=sink.load().fence, commit=commit)

    return make


def rows_of(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute('SELECT COUNT(*) FROM "shop.orders"').fetchone()[0]


def through(data, serializer):
    return serializer.load_stream(BytesIO(data))


def sent(elements, serializer=SERIALIZER):
    """The bytes of elements; those of a shuffle are framed one by one."""
    stream = BytesIO()
    for batch in [[element] for element in elements] if serializer is SERIALIZER else [elements]:
        serializer.dump_stream(iter(batch), stream)
    return stream.getvalue()


def cuts(elements, serializer=SERIALIZER):
    """Every way in which a stream of elements can be cut short."""
    whole = sent(elements, serializer)
    assert list(through(whole, serializer)) == list(elements)
    for size in range(len(whole)):
        yield through(whole[:size], serializer)


def changes(elements):
    """Every way in which one byte of a stream of elements can change; one bit of it."""
    whole = sent(elements)
    # The sign of the last length: below zero, the rest of the stream is read, which is the last element as it was sent.
    last_length = len(whole) - len(sent(elements[-1:]))
    for at in range(len(whole)):
        if at == last_length and at % 8 == 7:
            continue
        yield through(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :], SERIALIZER)


def without(elements, number):
    return [*elements[:number], *elements[number + 1 :]]


def instead(lists, number, other):
    return [other if at == number else one for at, one in enumerate(lists)]


def buckets_of(cached):
    """What each task that prepares is fed: the bucket's partition of all batches."""
    return [[element for task in cached for element in task[partition_of(bucket)]] for bucket in range(BUCKETS)]


def rendered(plan, feeds):
    """What all preparing tasks deliver, by address. ``feeds``: the input of each."""
    return together(by_address(render(plan, number, selected_chunks(plan, feed, 1), OPEN_PROTOCOL)) for number, feed in enumerate(feeds))


def together(deliveries):
    return by_address((address, item) for delivered in deliveries for address, items in delivered.items() for item in items)


def routed(plan, feeds):
    """What each reducer is sent by the tasks that change the buckets of rows."""
    found = by_address(item for bucket, feed in enumerate(feeds) for item in reroute(plan, bucket, feed))
    return [found[reducer] for reducer in range(plan.reducers)]


def rendered_routed(plan, feeds):
    """What the tasks behind the routing ones deliver, by address."""
    return together(by_address(render(plan, number, routed_chunks(feed, plan.buckets), OPEN_PROTOCOL)) for number, feed in enumerate(feeds))


class OneFeed:
    """What all preparing tasks deliver while the input of one of them varies: the others are run once."""

    def __init__(self, plan, feeds, victim, chunks):
        self.plan, self.victim, self.chunks = plan, victim, chunks
        self.others = [by_address(self.run(number, feed)) for number, feed in enumerate(feeds) if number != victim]

    def run(self, number, feed):
        return render(self.plan, number, self.chunks(self.plan, feed), OPEN_PROTOCOL)

    def delivered(self, feed):
        return together([by_address(self.run(self.victim, feed)), *self.others])


def cached_chunks(plan, feed):
    return selected_chunks(plan, feed, 1)


def routed_chunks_of(plan, feed):
    return routed_chunks(feed, plan.buckets)


def segments_of(plan, delivered):
    segments = by_part(delivered[ANNOUNCED], plan)
    assert segments is not None
    return segments


def committed(plan, target, delivered, number=0):
    """Write one of the segments that were delivered."""
    return write(target, segments_of(plan, delivered)[number], delivered[number + 1], Written())


def is_refused(outcome, kinds=IncompleteInput):
    return outcome.state is WriteState.RELOAD and isinstance(outcome.error, kinds)


def are_refused(plan, target, delivered):
    return all(is_refused(committed(plan, target, delivered, number)) for number in range(len(plan.windows)))


# --- what is whole -----------------------------------------------------------------------------------------------------


def test_whole_segments_are_written_one_after_the_other(plan, target, cached, path, sink):
    prepared = plan()
    delivered = rendered(prepared, buckets_of(cached))
    for number, upto in enumerate(BOUNDS[1:]):
        outcome = committed(prepared, target(upto), delivered, number)
        assert (outcome.state, outcome.rows, outcome.transactions) == (WriteState.COMMITTED, ALL // 2, ROWS // 2)
        assert (rows_of(path), sink.load().checkpoint_ts) == (ALL // 2 * (number + 1), upto)


def test_whole_segments_whose_rows_change_their_bucket_are_written(rerouted, target, cached, path):
    for prepared in rerouted:
        delivered = rendered_routed(prepared, routed(prepared, buckets_of(cached)))
        for number in range(2):
            outcome = committed(prepared, target(), delivered, number)
            assert (outcome.state, outcome.rows) == (WriteState.COMMITTED, ALL // 2)
        assert rows_of(path) == ALL


def test_a_segment_without_rows_in_its_ranges_is_whole_too(plan, target, cached, path):
    empty = plan(bounds=[900, 1000])
    outcome = committed(empty, target(1000), rendered(empty, buckets_of(cached)))
    assert (outcome.state, rows_of(path)) == (WriteState.COMMITTED, 0)


def test_a_batch_may_hold_ranges_that_the_plan_does_not_need(plan, target, cached, path):
    needed = plan(bounds=[0, 1000])
    needed = replace(needed, ranges={range_id: content for range_id, content in needed.ranges.items() if range_id != range_of(1)})
    assert committed(needed, target(1000), rendered(needed, buckets_of(cached))).state is WriteState.COMMITTED


def test_the_plan_says_how_many_tasks_prepare(plan):
    assert (plan(SMALL_SEGMENT_ROWS).is_small, plan(SMALL_SEGMENT_ROWS + 1).is_small) == (True, False)
    assert (plan().reducers, plan(splits=3).reducers) == (BUCKETS, BUCKETS * 3)
    assert [made.is_rerouted for made in (plan(), plan(splits=3), plan(rekeyed=[FoldedName("shop", "orders")]))] == [False, True, True]


# --- markers -----------------------------------------------------------------------------------------------------------


def test_each_listening_task_ends_each_bucket_with_what_it_has_sent_it_and_reports_last(cached, reports):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listening, "CHUNK_BYTES", 60)
        assert dealt((0, 1))[-1][0] == REPORTS
    for task, group in zip(cached, [group for groups in GROUPS for group in groups], strict=True):
        for bucket in range(BUCKETS):
            *chunks, end = task[partition_of(bucket)]
            assert isinstance(end, RangesEnd)
            assert (end.chunks, end.bytes) == (len(chunks), sum(len(chunk.data) for chunk in chunks))
            assert [range_id for range_id, _ in end.contents] == [range_of(partition) for partition in group]
            assert {chunk.bucket for chunk in chunks} <= {bucket}
    assert [report.range for report in reports] == [range_of(partition) for partition in range(PARTITIONS)]


def test_each_routing_task_ends_each_reducer_with_what_it_has_sent_it(rerouted, cached):
    for prepared in rerouted:
        for feed in routed(prepared, buckets_of(cached)):
            ends = [element for element in feed if isinstance(element, RoutedEnd)]
            assert sorted(end.bucket for end in ends) == list(range(BUCKETS))
            assert sum(end.chunks for end in ends) == len(feed) - BUCKETS
            assert sum(end.bytes for end in ends) == sum(len(element) for element in feed if isinstance(element, bytes))


def test_each_part_of_a_segment_is_announced_to_the_driver_and_to_the_writer_behind_what_it_counts(plan, cached):
    prepared = plan()
    for reducer, feed in enumerate(buckets_of(cached)):
        delivered = by_address(render(prepared, reducer, selected_chunks(prepared, feed, 1), OPEN_PROTOCOL))
        for number in range(2):
            *items, end = delivered[number + 1]
            announced = delivered[ANNOUNCED][number]
            assert announced == end
            assert (end.part, end.reducer) == (number, reducer)
            statements = [item for item in items if isinstance(item, Statement)]
            assert (end.statements, end.rows) == (len(statements), sum(statement.rows for statement in statements))
            assert end.size == sum(len(statement.text) + len(statement.data) for statement in statements)
            assert end.sets == sum(isinstance(item, TransactionSet) for item in items)


# --- from the listeners to those who prepare ---------------------------------------------------------------------------


@pytest.mark.parametrize("serializer", SERIALIZERS, ids=str)
def test_cached_ranges_that_one_task_is_fed_are_all_there_or_nothing_is_written(plan, target, cached, path, serializer):
    small, writing = plan(SMALL, bounds=[0, 1000]), target(1000)
    elements = [element for feed in buckets_of(cached) for element in feed]
    for size, cut in enumerate(cuts(elements, serializer)):
        assert is_refused(apply_small(small, writing, cut, Written(), OPEN_PROTOCOL)), size
    assert rows_of(path) == 0
    assert apply_small(small, writing, elements, Written(), OPEN_PROTOCOL).rows == ALL


@pytest.mark.parametrize("victim", range(BUCKETS))
@pytest.mark.parametrize("serializer", SERIALIZERS, ids=str)
def test_a_cached_bucket_is_whole_or_no_segment_is_written(plan, target, cached, path, serializer, victim):
    prepared, feeds, writing = plan(), buckets_of(cached), target()
    tasks = OneFeed(prepared, feeds, victim, cached_chunks)
    for size, cut in enumerate(cuts(feeds[victim], serializer)):
        assert are_refused(prepared, writing, tasks.delivered(cut)), size
    assert rows_of(path) == 0


@pytest.mark.parametrize("victim", range(BUCKETS))
def test_a_cached_bucket_whose_rows_change_it_is_whole_or_every_reducer_is_told(rerouted, cached, victim):
    feed = buckets_of(cached)[victim]
    for prepared in rerouted:
        for size, cut in enumerate(cuts(feed)):
            sent_to = by_address(reroute(prepared, victim, cut))
            assert sorted(sent_to) == list(range(prepared.reducers)), size
            for elements in sent_to.values():
                assert not any(isinstance(element, RoutedEnd) for element in elements)
                assert isinstance(elements[-1], Failure)
                assert type(elements[-1].error) is IncompleteInput


def test_the_cached_elements_of_one_listening_task_are_whole_or_no_segment_is_written(plan, target, cached, path):
    prepared, writing = plan(), target()
    for bucket in range(BUCKETS):
        tasks = OneFeed(prepared, buckets_of(cached), bucket, cached_chunks)
        for victim in range(TASKS):
            whole = cached[victim][partition_of(bucket)]
            for kept in range(len(whole)):
                # What one map output lacks is missing in the middle: the outputs of the other tasks come behind it.
                others = [whole[:kept] if number == victim else task[partition_of(bucket)] for number, task in enumerate(cached)]
                assert are_refused(prepared, writing, tasks.delivered([element for feed in others for element in feed]))
    assert rows_of(path) == 0


def test_a_block_of_the_cache_that_is_missing_in_the_middle_is_missed_wherever_it_was(plan, rerouted, target, cached, path):
    prepared, feeds = plan(), buckets_of(cached)
    for number, feed in enumerate(feeds):
        for missing in range(len(feed)):
            short = instead(feeds, number, without(feed, missing))
            assert are_refused(prepared, target(), rendered(prepared, short))
            for other in rerouted:
                assert are_refused(other, target(), rendered_routed(other, routed(other, short)))
    small, elements = plan(SMALL, bounds=[0, 1000]), [element for feed in feeds for element in feed]
    for missing in range(len(elements)):
        assert is_refused(apply_small(small, target(1000), without(elements, missing), Written(), OPEN_PROTOCOL))
    assert rows_of(path) == 0


def test_a_block_of_the_cache_that_arrives_twice_makes_no_whole_segment(plan, rerouted, target, cached, path):
    prepared, feeds = plan(), buckets_of(cached)
    for number, feed in enumerate(feeds):
        for twice in [*([element] for element in feed), feed, feed[-1:], cached[0][partition_of(number)]]:
            doubled = instead(feeds, number, [*feed, *twice])
            assert are_refused(prepared, target(), rendered(prepared, doubled))
            for other in rerouted:
                assert are_refused(other, target(), rendered_routed(other, routed(other, doubled)))
    assert rows_of(path) == 0


def test_a_batch_that_is_missing_whole_is_missed(plan, target, cached, path):
    prepared = plan()
    for gone in range(TASKS):
        assert are_refused(prepared, target(), rendered(prepared, buckets_of(without(cached, gone))))
    assert are_refused(prepared, target(), rendered(prepared, [[], []]))
    assert rows_of(path) == 0


def test_the_error_names_the_range_that_is_missing(plan, cached):
    prepared = plan()
    first, *_ = rendered(prepared, buckets_of(cached[:-1]))[ANNOUNCED]
    assert (first.error.facts["topic"], first.error.facts["partition"], first.error.facts["offset"]) == ("feed", PARTITIONS - 1, 0)
    assert first.error.remedy


# --- a changed byte ----------------------------------------------------------------------------------------------------

DAMAGED = IncompleteInput | DamagedData
"""The length of an element is before it: where that is changed, the element is cut."""


def test_cached_ranges_of_which_one_bit_has_changed_are_not_written(plan, target, cached, path):
    small, writing = plan(SMALL, bounds=[0, 1000]), target(1000)
    elements = [element for feed in buckets_of(cached) for element in feed]
    kinds = set()
    for at, changed in enumerate(changes(elements)):
        outcome = apply_small(small, writing, changed, Written(), OPEN_PROTOCOL)
        assert is_refused(outcome, DAMAGED), at
        kinds.add(type(outcome.error))
    assert (rows_of(path), kinds) == (0, {IncompleteInput, DamagedData})


def test_every_reducer_is_told_of_a_changed_bit_in_the_cache(rerouted, cached):
    feed = buckets_of(cached)[0]
    for prepared in rerouted:
        for at, changed in enumerate(changes(feed)):
            for elements in by_address(reroute(prepared, 0, changed)).values():
                assert isinstance(elements[-1].error, DAMAGED), at


def test_routed_chunks_of_which_one_bit_has_changed_are_not_written(rerouted, target, cached, path):
    prepared, writing = rerouted[0], target()
    feeds = routed(prepared, buckets_of(cached))
    tasks = OneFeed(prepared, feeds, 0, routed_chunks_of)
    for at, changed in enumerate(changes(feeds[0])):
        assert is_refused(committed(prepared, writing, tasks.delivered(changed)), DAMAGED), at
    assert rows_of(path) == 0


def test_statements_of_which_one_bit_has_changed_are_not_written(plan, target, cached, path):
    prepared = plan()
    delivered = rendered(prepared, buckets_of(cached))
    segment, writing = segments_of(prepared, delivered)[0], target()
    for at, changed in enumerate(changes(delivered[1])):
        assert is_refused(write(writing, segment, changed, Written()), DAMAGED), at
    assert rows_of(path) == 0


def test_announcements_of_which_one_bit_has_changed_are_not_taken(plan, cached):
    announced = rendered(plan(), buckets_of(cached))[ANNOUNCED]
    for at, changed in enumerate(changes(announced)):
        try:
            assert by_part(received(changed), plan()) is None, at
        except DamagedData:
            continue


def test_held_statements_of_which_a_byte_has_changed_are_not_written(monkeypatch):
    monkeypatch.setattr(held_statements, "HELD_BYTES", 0)
    statements = [Statement(Phase.REPLACE, "orders", text, 1, 10, 10) for text in (b"a", b"b")]
    # Not the length of the last one: it is read to the end of the file, and whole, where that says more.
    for at in range(len(seal(statements[0])) + held_statements.LENGTH_BYTES):
        held = held_statements.HeldStatements()
        for statement in statements:
            held.add(statement)
        held._file.seek(at)
        changed = held._file.read(1)[0] ^ 1 << at % 8
        held._file.seek(at)
        held._file.write(bytes([changed]))
        held._file.seek(0, SEEK_END)
        with pytest.raises(DamagedData):
            list(held)


# --- a second reading ------------------------------------------------------------------------------------------------------


def read_again(cached, victim, change):
    """What is cached once the bucket ends of one listening task are others: Spark has run it again."""
    task = by_address(
        (address, change(element) if isinstance(element, RangesEnd) else element)
        for address, elements in cached[victim].items()
        for element in elements
    )
    return instead(cached, victim, task)


def failed_again(end):
    """Its first range has failed the second time; what was read of it before is there."""
    failure = RangeFailure(end.contents[0][0], SourceError("Kafka does not answer", kind=FailureKind.UNREACHABLE))
    return end._replace(contents=end.contents[1:], failures=(failure,))


def with_other_content(end):
    (range_id, content), *others = end.contents
    return end._replace(contents=((range_id, content._replace(checksum=content.checksum ^ 1)), *others))


@pytest.mark.parametrize("victim", range(TASKS))
def test_the_cached_failure_of_a_range_is_not_its_content_and_it_is_read_again(plan, rerouted, target, cached, path, victim):
    feeds = buckets_of(read_again(cached, victim, failed_again))
    delivered = [rendered(plan(), feeds), *(rendered_routed(other, routed(other, feeds)) for other in rerouted)]
    outcomes = [committed(made, target(), one) for made, one in zip([plan(), *rerouted], delivered, strict=True)]
    elements = [element for feed in feeds for element in feed]
    outcomes.append(apply_small(plan(SMALL, bounds=[0, 1000]), target(1000), elements, Written(), OPEN_PROTOCOL))
    for outcome in outcomes:
        assert (outcome.state, type(outcome.error), outcome.error.facts["cause"]) == (
            WriteState.RELOAD, JobAborted, "Kafka does not answer"
        )  # fmt: skip
    assert rows_of(path) == 0


@pytest.mark.parametrize("victim", range(TASKS))
def test_a_range_that_failed_in_one_batch_and_is_whole_in_another_is_not_missing(plan, rerouted, target, cached, victim):
    first, second = buckets_of(read_again(cached, victim, failed_again)), buckets_of(cached)
    range_id = next(end for end in cached[victim][partition_of(0)] if isinstance(end, RangesEnd)).contents[0][0]

    def only(element):
        return element._replace(contents=tuple(one for one in element.contents if one[0] == range_id))

    later = [[only(element) if isinstance(element, RangesEnd) else element for element in feed] for feed in second]
    feeds = [[*one, *other] for one, other in zip(first, later, strict=True)]
    for made, delivered in [(plan(), rendered(plan(), feeds)), *((o, rendered_routed(o, routed(o, feeds))) for o in rerouted)]:
        assert committed(made, target(), delivered).state is WriteState.COMMITTED


def test_the_failure_of_a_range_that_the_plan_does_not_name_is_harmless(plan, target, cached):
    needed = plan(bounds=[0, 1000])
    needed = replace(needed, ranges={range_id: content for range_id, content in needed.ranges.items() if range_id != range_of(0)})
    outcome = committed(needed, target(1000), rendered(needed, buckets_of(read_again(cached, 0, failed_again))))
    assert outcome.state is WriteState.COMMITTED


@pytest.mark.parametrize("victim", range(TASKS))
def test_a_range_that_is_read_again_and_differs_is_a_reason_to_reload(plan, rerouted, target, cached, path, victim):
    feeds = buckets_of(read_again(cached, victim, with_other_content))
    for made, delivered in [(plan(), rendered(plan(), feeds)), *((o, rendered_routed(o, routed(o, feeds))) for o in rerouted)]:
        outcome = committed(made, target(), delivered)
        assert (outcome.state, type(outcome.error)) == (WriteState.RELOAD, RangeChanged)
    assert rows_of(path) == 0


def test_a_range_that_has_changed_in_one_bucket_only_is_noticed_there(plan, target, cached):
    feeds = buckets_of(cached)
    changed = instead(feeds, 1, buckets_of(read_again(cached, 0, with_other_content))[1])
    outcome = committed(plan(), target(), rendered(plan(), changed))
    assert (outcome.state, type(outcome.error)) == (WriteState.RELOAD, RangeChanged)


# --- from the routing tasks to those who prepare -----------------------------------------------------------------------


@pytest.mark.parametrize("serializer", SERIALIZERS, ids=str)
def test_what_a_reducer_is_sent_is_whole_or_no_segment_is_written(rerouted, target, cached, path, serializer):
    writing = target()
    for prepared in rerouted:
        feeds = routed(prepared, buckets_of(cached))
        for victim, feed in enumerate(feeds):
            tasks = OneFeed(prepared, feeds, victim, routed_chunks_of)
            for size, cut in enumerate(cuts(feed, serializer)):
                assert are_refused(prepared, writing, tasks.delivered(cut)), size
    assert rows_of(path) == 0


def test_a_routed_block_that_is_missing_or_arrives_twice_is_noticed_wherever_it_was(rerouted, target, cached, path):
    for prepared in rerouted:
        feeds = routed(prepared, buckets_of(cached))
        for victim, feed in enumerate(feeds):
            for number, element in enumerate(feed):
                for other in (without(feed, number), [*feed, element]):
                    assert are_refused(prepared, target(), rendered_routed(prepared, instead(feeds, victim, other)))
    assert rows_of(path) == 0


def test_every_reducer_gets_the_error_of_a_routing_task(rerouted, cached):
    for prepared in rerouted:
        for feed in routed(prepared, buckets_of(cached[:-1])):
            assert [type(element.error) for element in feed if isinstance(element, Failure)] == [IncompleteInput] * BUCKETS


# --- from the listeners to those who divide, and on to one task --------------------------------------------------------

SLICES = (0, 10, 11, 12, 1000)
"""Segments between DDLs: one row of each partition is in the first two of them and in the third, and the last row is in the last."""


def divided(feeds):
    """What the tasks that divide the buckets send to each slice."""
    found = by_address(item for feed in feeds for item in divide(SLICES, feed))
    return {number: found[number] for number in range(1, len(SLICES))}


def applied(plan, target, number, elements):
    """Write the segment of one slice."""
    bounds = SLICES[number - 1 : number + 1]
    return apply_small(plan(SMALL, bounds=bounds), target(bounds[1]), elements, Written(), OPEN_PROTOCOL)


def test_each_segment_is_written_from_its_slice_and_there_is_nothing_else_in_it(plan, target, cached, path, sink):
    slices = divided(buckets_of(cached))
    assert sorted(slices) == [1, 2, 3, 4]
    for number, elements in slices.items():
        chunks = [element for element in elements if not isinstance(element, RangesEnd)]
        assert all(SLICES[number - 1] < chunk.min_ts <= chunk.max_ts <= SLICES[number] for chunk in chunks)
        outcome = applied(plan, target, number, elements)
        assert (outcome.state, outcome.rows) == (WriteState.COMMITTED, PARTITIONS)
        assert (rows_of(path), sink.load().checkpoint_ts) == (PARTITIONS * number, SLICES[number])


def error_of(made, elements):
    """What whoever reads a slice finds wrong with it; None: it is whole."""
    try:
        list(selected_chunks(made, elements, BUCKETS))
    except JobAborted as error:
        return error
    return None


def test_a_slice_is_whole_or_nothing_is_written(plan, target, cached, path):
    elements, made = divided(buckets_of(cached))[1], plan(SMALL, bounds=SLICES[:2])
    assert error_of(made, elements) is None
    for size, cut in enumerate(cuts(elements)):
        assert isinstance(error_of(made, cut), IncompleteInput), size
    for number, element in enumerate(elements):
        for other in (without(elements, number), [*elements, element]):
            assert is_refused(applied(plan, target, 1, other))
    length_of_last = len(sent(elements[:-1]))
    for at, changed in enumerate(changes(elements)):
        # Where that length says more, the element is read to the end of the stream, and is whole.
        if at not in range(length_of_last, length_of_last + 4):
            assert isinstance(error_of(made, changed), DAMAGED), at
    assert rows_of(path) == 0


def test_a_bucket_that_is_divided_is_whole_or_no_slice_is(plan, cached):
    feeds = buckets_of(cached)
    others, made = divided(feeds[1:]), plan(SMALL, bounds=[0, 1000])
    for spoiled, kinds in ((cuts(feeds[0]), IncompleteInput), (changes(feeds[0]), DAMAGED)):
        for at, feed in enumerate(spoiled):
            found = by_address(divide(SLICES, feed))
            for number, other in others.items():
                assert isinstance(error_of(made, [*found[number], *other]), kinds), at


def test_what_a_listening_task_has_sent_is_missed_in_each_slice_if_one_bucket_lacks_it_or_has_it_twice(plan, target, cached, path):
    for victim in range(TASKS):
        for bucket in range(BUCKETS):
            for times in (0, 2):
                feeds = buckets_of(cached)
                own = [task[partition_of(bucket)] * (times if number == victim else 1) for number, task in enumerate(cached)]
                slices = divided(instead(feeds, bucket, [element for feed in own for element in feed]))
                assert all(is_refused(applied(plan, target, number, elements)) for number, elements in slices.items())
    assert rows_of(path) == 0


@pytest.mark.parametrize("victim", range(TASKS))
def test_a_range_of_a_slice_must_have_the_content_of_its_report_and_its_failure_is_not_its_content(plan, target, cached, path, victim):
    for change, error in ((with_other_content, RangeChanged), (failed_again, JobAborted)):
        slices = divided(buckets_of(read_again(cached, victim, change)))
        for number, elements in slices.items():
            outcome = applied(plan, target, number, elements)
            assert (outcome.state, type(outcome.error)) == (WriteState.RELOAD, error)
    assert rows_of(path) == 0


# --- from those who prepare to the driver and to the writer ------------------------------------------------------------


@pytest.mark.parametrize(("serializer", "number"), [(SERIALIZERS[0], 0), (SERIALIZERS[1], 1)], ids=str)
def test_what_the_writer_is_sent_is_whole_or_nothing_is_written(plan, target, cached, path, serializer, number):
    prepared = plan()
    delivered = rendered(prepared, buckets_of(cached))
    segment, writing = segments_of(prepared, delivered)[number], target()
    for size, cut in enumerate(cuts(delivered[number + 1], serializer)):
        assert is_refused(write(writing, segment, cut, Written())), size
    assert rows_of(path) == 0
    assert committed(prepared, target(), delivered, number).rows == ALL // 2


def test_the_announcements_to_the_driver_are_whole_or_nothing_is_prepared(plan, rerouted, cached):
    for prepared, delivered in [
        (plan(), rendered(plan(), buckets_of(cached))),
        *((other, rendered_routed(other, routed(other, buckets_of(cached)))) for other in rerouted),
    ]:
        announced = delivered[ANNOUNCED]
        assert len(announced) == prepared.reducers * 2
        for cut in cuts(announced):
            assert by_part(received(cut), prepared) is None
        for number, element in enumerate(announced):
            assert by_part(without(announced, number), prepared) is None
            assert by_part([*announced, element], prepared) is None


def test_an_element_for_the_writer_that_is_missing_or_arrives_twice_is_noticed_wherever_it_was(plan, target, cached, path):
    prepared = plan()
    delivered = rendered(prepared, buckets_of(cached))
    for number in range(2):
        segment, elements = segments_of(prepared, delivered)[number], delivered[number + 1]
        for at, element in enumerate(elements):
            for other in (without(elements, at), [*elements, element], [*without(elements, at), elements[at - 1]]):
                assert is_refused(write(target(), segment, other, Written()))
    assert rows_of(path) == 0


def test_the_elements_of_another_segment_are_not_taken_for_those_of_this_one(plan, target, cached, path):
    prepared = plan(bounds=[0, 10, 1000])
    delivered = rendered(prepared, buckets_of(cached))
    segment = segments_of(prepared, delivered)[0]
    assert is_refused(write(target(), segment, delivered[2], Written()))
    assert rows_of(path) == 0


def test_a_part_that_was_prepared_again_with_other_statements_is_not_what_was_announced(plan, target, cached, path):
    prepared, other = plan(), plan(bounds=[0, 12, 1000])
    segment = segments_of(prepared, rendered(prepared, buckets_of(cached)))[0]
    assert is_refused(write(target(), segment, rendered(other, buckets_of(cached))[1], Written()))
    assert rows_of(path) == 0


def test_the_error_of_the_writer_says_how_much_has_arrived(plan, target, cached, path, sink):
    prepared = plan()
    delivered = rendered(prepared, buckets_of(cached))
    elements = [element for element in delivered[1] if not isinstance(element, Statement)]
    outcome = write(target(), segments_of(prepared, delivered)[0], elements, Written())
    assert is_refused(outcome)
    assert (outcome.error.facts["statements"], outcome.error.facts["announced_statements"]) == (0, BUCKETS)
    assert (rows_of(path), sink.load().checkpoint_ts) == (0, 0)


def test_nothing_is_asked_of_the_writer_for_a_segment_that_could_not_be_prepared(plan, target, cached):
    class Untouched:
        def write(self, fence, statements, commit, quarantined=None):
            raise AssertionError("the writer was asked")

    delivered = rendered(plan(), [[], []])
    assert is_refused(committed(plan(), replace(target(), writer=Untouched()), delivered))


def test_an_error_of_the_rows_says_more_than_what_is_missing_beside_it(target):
    errors = [IncompleteInput("cut"), FatalSinkError("the table is missing")]
    for order in (errors, errors[::-1]):
        segment = PreparedPart(tuple(Rendered(0, reducer, error=error) for reducer, error in enumerate(order)))
        outcome = write(target(), segment, [], Written())
        assert (outcome.state, type(outcome.error)) == (WriteState.FAILED, FatalSinkError)


def test_of_equal_rows_in_several_buckets_those_of_the_earliest_commit_are_named(target):
    places = [("shop.a", 7), ("shop.b", 6), ("shop.c", 6)]
    errors = [AmbiguousRows.of({"table": table, "commit_ts": ts}, rows=2) for table, ts in places]
    for order in (errors, errors[::-1]):
        segment = PreparedPart(tuple(Rendered(0, reducer, error=error) for reducer, error in enumerate(order)))
        assert segment.error.facts["commit_ts"] == 6
        assert segment.error.facts["tables"] == write(target(), segment, [], Written()).error.facts["tables"] == "shop.b, shop.c"
    assert PreparedPart((Rendered(0, 0, error=IncompleteInput("cut")), Rendered(0, 1, error=errors[0]))).error is errors[0]


# --- deletes first -----------------------------------------------------------------------------------------------------


class Noted:
    """A writer that notes the order of statements."""

    def __init__(self):
        self.ran = []

    def write(self, fence, statements, commit, quarantined=None):
        try:
            self.ran.extend(statements)
        except IncompleteInput as error:
            return WriteOutcome(state=WriteState.FAILED, error=error)
        return WriteOutcome(state=WriteState.COMMITTED)


def parts_with_deletes(*reads):
    """Two reducers' parts of one segment: each its ``reads``, a delete, two REPLACEs, and its end."""
    parts = []
    for reducer in range(2):
        phases = (*reads, Phase.DELETE, *[Phase.REPLACE] * 2)
        statements = [Statement(phase, "orders", b"%d %d" % (phase, reducer), 1, 10, 10) for phase in phases]
        size = sum(len(statement.text) for statement in statements)
        parts.append([*statements, Rendered(0, reducer, len(phases), len(reads), 1, len(phases), size)])
    return parts


@pytest.mark.parametrize("held_bytes", [held_statements.HELD_BYTES, 0], ids=["in memory", "in a file"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_all_deletes_run_before_any_replace_whatever_the_order_in_which_parts_arrive(monkeypatch, target, held_bytes, order):
    monkeypatch.setattr(held_statements, "HELD_BYTES", held_bytes)
    parts, noted = parts_with_deletes(), Noted()
    segment = PreparedPart(tuple(part[-1] for part in parts))
    elements = [element for number in order for element in parts[number]]
    assert write(replace(target(), writer=noted), segment, elements, Written()).state is WriteState.COMMITTED
    assert [statement.phase for statement in noted.ran] == [Phase.DELETE] * 2 + [Phase.REPLACE] * 4
    assert sorted(noted.ran) == sorted(element for element in elements if isinstance(element, Statement))


@pytest.mark.parametrize("held_bytes", [held_statements.HELD_BYTES, 0], ids=["in memory", "in a file"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_is_read_is_read_before_anything_is_deleted_or_replaced_whatever_the_order_of_the_parts(
    monkeypatch, target, held_bytes, order
):
    monkeypatch.setattr(held_statements, "HELD_BYTES", held_bytes)
    parts, noted = parts_with_deletes(Phase.READ, Phase.READ), Noted()
    segment = PreparedPart(tuple(part[-1] for part in parts))
    elements = [element for number in order for element in parts[number]]
    assert write(replace(target(), writer=noted), segment, elements, Written()).state is WriteState.COMMITTED
    assert [statement.phase for statement in noted.ran] == [Phase.READ] * 4 + [Phase.DELETE] * 2 + [Phase.REPLACE] * 4
    assert sorted(noted.ran) == sorted(element for element in elements if isinstance(element, Statement))


def test_nothing_is_deleted_or_replaced_and_nothing_is_whole_where_a_read_is_missing(target):
    first, (_, *rest) = parts_with_deletes(Phase.READ)
    noted, segment = Noted(), PreparedPart((first[-1], rest[-1]))
    assert is_refused(write(replace(target(), writer=noted), segment, [*first, rest[0], *rest], Written()))
    assert [statement.phase for statement in noted.ran] == [Phase.READ]


def test_no_replace_runs_and_nothing_is_whole_where_a_delete_is_missing_even_if_another_statement_makes_up_the_counts(target):
    first, (_, *rest) = parts_with_deletes()
    noted, segment = Noted(), PreparedPart((first[-1], rest[-1]))
    assert is_refused(write(replace(target(), writer=noted), segment, [*first, rest[0], *rest], Written()))
    assert [statement.phase for statement in noted.ran] == [Phase.DELETE]


@pytest.mark.parametrize("held_bytes", [held_statements.HELD_BYTES, 0, 7])
def test_held_statements_come_back_in_their_order(monkeypatch, held_bytes):
    monkeypatch.setattr(held_statements, "HELD_BYTES", held_bytes)
    statements = [Statement(Phase.REPLACE, "orders", b"%d" % number, 1, 10, 10, data=b"x" * (number % 3)) for number in range(20)]
    held = held_statements.HeldStatements()
    for statement in statements:
        held.add(statement)
    assert list(held) == statements


def test_the_report_of_each_range_says_what_its_buckets_announce(cached, reports):
    for task in cached:
        for bucket in range(BUCKETS):
            end = task[partition_of(bucket)][-1]
            for range_id, content in end.contents:
                (report,) = [report for report in reports if isinstance(report, RangeReport) and report.range == range_id]
                assert content == RangeContent.of(report)
