"""What a replica of many tables and DDLs costs grows as they do: twice as many cost twice as much, and not four times."""

import gc
import pickle
from itertools import cycle, islice

import pytest

from applier.coordinator import Policy
from applier.coordinator.barriers import groups_by_names
from applier.ddl import identity
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.position import Offset, Stream, Ts
from applier.model.range_report import RangeId, TableRows
from applier.planner.port import TableDescription
from applier.replica.sink_tables import rekeyed_tables
from applier.sources.column_flags import shape_of as described_shape
from applier.sources.compiled import ROWS_TO_REPLACE, CompiledShapes
from applier.sources.open_protocol import OPEN_PROTOCOL, matcher
from applier.tasks.listen import ListenTask, listen
from tests.builders.handwritten import ddl as wire_ddl
from tests.builders.handwritten import log_of, row
from tests.builders.wire import column
from tests.rig.operations import growth
from tests.timeline.scenario import Scenario, ddl, resolved
from tests.timeline.scenario import row as timeline_row

AT_MOST = 2.4
"""Twice as many; a heap and sorting cost a little more than that."""
STREAMS = tuple(Stream("t", partition) for partition in range(4))


def played(*, ddls, rows_per_table):
    """Prepare a scenario: that many tables are created by broadcast DDLs; each has its rows between two of them."""
    s = Scenario(*STREAMS)
    for number in range(ddls):
        create = ddl(10 * number + 1, f"CREATE TABLE `t{number}` (`id` INT PRIMARY KEY)", f"t{number}")
        for stream in STREAMS:
            s.write(stream, create)
        for place in range(rows_per_table):
            s.write(STREAMS[place % len(STREAMS)], timeline_row(10 * number + 2 + place, f"t{number}", place))
    for stream in STREAMS:
        s.write(stream, resolved(10 * ddls + 9))
    s.list()
    return s


def reported(s):
    """Read everything before what is counted: making reports is the listeners' work."""
    s.read()
    s.list()
    return s


def test_broadcast_ddls_cost_the_same_each_however_many_wait():
    assert growth(lambda size: reported(played(ddls=size, rows_per_table=0)).steps, 60) < AT_MOST


def test_rows_between_ddls_cost_what_lies_open_at_their_time():
    assert growth(lambda size: reported(played(ddls=size, rows_per_table=2)).steps, 40) < AT_MOST


def test_a_segment_costs_what_lies_open_at_its_time_however_many_are_handed_out_at_once_and_however_long_the_window_is():
    def cutting(size):
        s = Scenario(*STREAMS, policy=Policy(range_records=4, first_plan_bytes=10**9, plan_bytes=10**10, segment_rows=8))
        for stream in STREAMS:
            s.write(stream, *[timeline_row(ts) for ts in range(1, 4 * size + 1)], resolved(4 * size))
        s.list()
        while ranges := s.coordinator.plan():
            s.read(*ranges)
        s.list()

        def play():
            assert len(s.coordinator.segments_ahead(10**6)) == 2 * size
            assert len(s.steps()) == 2 * size

        return play

    assert growth(cutting, 40) < AT_MOST


def test_taking_in_many_ddls_is_linear():
    def taking(size):
        s = played(ddls=size, rows_per_table=0)
        ranges = s.coordinator.plan()
        return lambda: s.read(*ranges)

    assert growth(taking, 60) < AT_MOST


def copies_kept(partitions, ddls=40):
    """Read broadcast DDLs, each with a row behind it, and count what is kept of them until the watermark has passed."""
    streams = [Stream("t", partition) for partition in range(partitions)]
    s = Scenario(*streams, policy=Policy(first_plan_bytes=10**9, plan_bytes=10**10))
    for number in range(ddls):
        text = f"CREATE TABLE `kept{number}` (`id` INT PRIMARY KEY)"
        for stream in streams:
            # As they arrive: each report has its own.
            s.write(stream, ddl(10 * number + 1, text, f"kept{number}"), timeline_row(10 * number + 2, "t", 1))
    s.list()
    while ranges := s.coordinator.plan():
        s.read(*ranges)
        s.list()
    coordinator = s.coordinator
    del s
    gc.collect()
    kept = sum(type(one) is DdlEvent and one.query.startswith("CREATE TABLE `kept") for one in gc.get_objects())
    places = sum(map(len, coordinator._barriers._arrivals.values()))
    return kept, places


def test_what_is_kept_of_a_ddl_does_not_grow_with_the_partitions_that_hold_a_copy():
    assert copies_kept(2) == copies_kept(16) == (40, 40)


def test_many_ddls_of_one_ts_are_ordered_once():
    def at_one_ts(size):
        s = Scenario(*STREAMS)
        for stream in STREAMS:
            creates = (ddl(3, f"CREATE TABLE `t{n}` (`id` INT PRIMARY KEY)", f"t{n}") for n in range(size))
            s.write(stream, *creates, resolved(9))
        s.list()
        return reported(s).steps

    assert growth(at_one_ts, 60) < AT_MOST


def test_topics_that_share_no_names_are_separated_without_comparing_each_pair():
    def parting(size):
        ddls = {}
        queues = []
        for topic in ("a", "b"):
            events = [ddl(3, f"CREATE TABLE `{topic}{n}` (`id` INT)", f"{topic}{n}") for n in range(size)]
            queues.append(tuple(identity(event) for event in events))
            ddls |= dict(zip(queues[-1], events, strict=True))
        return lambda: groups_by_names(queues, ddls)

    assert growth(parting, 60) < AT_MOST


def test_the_keys_of_many_tables_are_compared_table_by_table():
    def comparing(size):
        tables = [
            TableRows(TableName("shop", f"T{n}"), ("id",), 1, Ts(1), Ts(1), Offset(0), bytes_key)
            for n in range(size)
            for bytes_key in ((), ("id",))
        ]
        described = {
            FoldedName("shop", f"t{n}"): TableDescription(
                schema="shop", table=f"T{n}", columns=(), unique_keys=(("id",),), primary_key=("id",)
            )
            for n in range(size)
        }
        assert len(rekeyed_tables(tables, described)) == size
        return lambda: rekeyed_tables(tables, described)

    assert growth(comparing, 100) < AT_MOST


def shape_of(number):
    return described_shape("shop", f"t{number}", (("id", 3, 11),))


@pytest.mark.parametrize("shapes", [5, 10, 11, 40])
def test_shapes_that_take_turns_are_not_compiled_at_every_row(shapes):
    compiled = []
    cache = CompiledShapes(compiled.append, 10)
    rows = ROWS_TO_REPLACE * shapes
    for number in islice(cycle(range(shapes)), rows):
        cache.get(shape_of(number))
    assert len(compiled) <= min(shapes, 10) + rows // ROWS_TO_REPLACE
    assert len(compiled) >= min(shapes, 10)


def test_a_shape_with_many_rows_replaces_the_oldest():
    cache = CompiledShapes(lambda shape: shape.table, 2)
    assert [cache.get(shape_of(n)) for n in range(3)] == ["t0", "t1", None]
    found = [cache.get(shape_of(2)) for _ in range(ROWS_TO_REPLACE)]
    assert (found[0], found[-1]) == (None, "t2")
    assert set(cache.kept()) == {"t1", "t2"}


def read_tables(tables, rows_each):
    log = log_of(
        *[(STREAMS[0], row(20, f"t{n}", id=column(3, 11, i), n=column(3, 65, i))) for i in range(rows_each) for n in range(tables)]
    )

    class Reader:
        def read(self, ranges):
            yield ranges[0], [(Offset(offset), each.key, each.value) for offset, each in enumerate(log)]

    task = ListenTask(range=RangeId(STREAMS[0], Offset(0), Offset(len(log))), floor_ts=Ts(1), buckets=2)

    def work():
        *_, report = listen([task], Reader(), OPEN_PROTOCOL)
        return report

    return work


@pytest.fixture
def small_cache(monkeypatch):
    """A process that has room for ten compiled shapes."""
    compiled = []

    def compile_one(shape):
        compiled.append(shape)
        return matcher._compile_matcher(shape)

    monkeypatch.setattr(matcher, "_matchers", CompiledShapes(compile_one, 10))
    return compiled


def test_a_report_names_each_shape_once_however_many_there_are(small_cache):
    report = read_tables(50, 4)()
    assert (len(report.tables), report.rows) == (50, 200)
    assert {table.rows for table in report.tables} == {4}
    assert len(small_cache) == 10


def test_the_copies_of_a_ddl_travel_once_with_the_reports_of_a_task():
    def reported(partitions):
        streams = [Stream("t", partition) for partition in range(partitions)]
        text = f"CREATE TABLE `wide` (`id` INT PRIMARY KEY, `{'c' * 60}` INT) COMMENT '{'x' * 900}'"
        log = {stream: log_of(*[(stream, wire_ddl(20 + number, text, f"t{number}")) for number in range(50)]) for stream in streams}

        class Reader:
            def read(self, ranges):
                for one in ranges:
                    yield one, [(Offset(offset), each.key, each.value) for offset, each in enumerate(log[one.stream])]

        tasks = [ListenTask(range=RangeId(stream, Offset(0), Offset(50)), floor_ts=Ts(1), buckets=2) for stream in streams]
        reports = tuple(listen(tasks, Reader(), OPEN_PROTOCOL))
        assert [len(report.ddls) for report in reports] == [50] * partitions
        return len(pickle.dumps(reports))

    assert reported(8) < 1.6 * reported(1)


def test_rows_of_many_tables_cost_the_same_each(small_cache):
    read_tables(12, 1)()
    assert growth(lambda size: read_tables(size, 4), 50) < AT_MOST
    assert len(small_cache) == 10
