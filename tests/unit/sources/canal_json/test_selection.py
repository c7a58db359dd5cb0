"""What the selection excludes and renames, on the hot path as in the full parse; runs of several tables and operations."""

import pytest

from applier.model.errors import ProtocolError
from applier.model.events import ExcludedTable, PlacedRow, RowKind, TableName
from applier.model.position import Offset, Stream
from applier.selection import TableSelection
from applier.selection.selection import EventFilter, Route
from applier.selection.table_filter import TableFilter
from applier.sources.canal_json import CanalJsonDecoder
from applier.sources.port import Record
from applier.tasks.tolerance import Tolerance, TolerantPlacer
from tests.builders.canal_json import TS, dump, row, watermark
from tests.rig.placing import place_records

STREAM = Stream("changefeed", 0)
OTHERS = TableSelection(TableFilter.parse(["*.*", "!d.log"]))
ROUTED = TableSelection(routes=(Route.parse("d.t", "there.{table}_2"),))
NO_DELETES = TableSelection(event_filters=(EventFilter.parse(TableFilter.parse(["d.*"]), ["delete"]),))


def records(*documents):
    return [Record(Offset(number), None, one if isinstance(one, bytes) else dump(one)) for number, one in enumerate(documents)]


def placed(selection, *documents):
    placer = CanalJsonDecoder(selection=selection).placer(STREAM)
    return [(offset, event) for (offset, _), event in place_records(placer, records(*documents))]


def log(ts=TS, **others):
    return row(table="log", ts=ts, **others)


def test_rows_of_an_excluded_table_are_named_and_not_read():
    found = placed(OTHERS, log(), row(), log(TS + 1), log(TS + 2), row(), watermark(), log(TS + 3))
    tables = [(offset, event) for offset, event in found if isinstance(event, ExcludedTable)]
    name = TableName("d", "log")
    # One by one until the beginning of its rows is known, then once for a run.
    assert tables == [(0, ExcludedTable(TS, name)), (3, ExcludedTable(TS + 2, name)), (6, ExcludedTable(TS + 3, name))]
    assert [offset for offset, event in found if isinstance(event, PlacedRow)] == [1, 4]


def test_an_excluded_row_may_be_unreadable():
    bad = dump(log()).replace(b'"varchar"', b'"geometry"')
    assert [offset for offset, event in placed(OTHERS, log(), bad, row()) if isinstance(event, PlacedRow)] == [2]


def test_rows_have_their_name_in_the_sink():
    found = placed(ROUTED, *[row(), row("DELETE"), row(table="u"), row(pk=())] * 2)
    assert [str(event.shape.name) for _, event in found] == ["there.t_2", "there.t_2", "d.u", "there.t_2"] * 2
    assert found[0][1].shape is found[4][1].shape
    assert found[0][1].shape.upstream_name == TableName("d", "t")


def test_an_event_filter_is_asked_row_by_row():
    found = placed(NO_DELETES, *[row(), row("DELETE"), row("UPDATE", old={"b": "x"})] * 2)
    assert [(offset, event.kind) for offset, event in found] == [(number, RowKind.UPSERT) for number in (0, 2, 3, 5)]


def test_runs_of_several_tables_operations_and_types_keep_their_order():
    documents = [
        document
        for number in range(100)
        for document in (
            row(columns={"a": ("int", str(number))}),
            row("UPDATE", columns={"a": ("int", str(number)), "b": ("text", "x")}, old={"b": "y"}, table="u"),
            row("DELETE", columns={"a": ("varchar" if number % 7 else "char(3)", str(number))}),
            row("UPDATE", columns={"a": ("int", str(number))}, old={"a": "-1"} if number % 5 == 0 else {}),
        )
    ]
    together = placed(TableSelection(), *documents)
    alone = [
        (number, event)
        for number, document in enumerate(documents)
        for _, event in CanalJsonDecoder().placer(STREAM).place_each(number, None, dump(document))
    ]
    assert together == alone


@pytest.mark.parametrize("division", [1, 2, 3, 7, 300])
def test_however_the_records_are_divided_the_events_are_the_same(division):
    documents = [row(columns={"a": ("int", str(number))}) for number in range(5)]
    documents += [row(columns={"a": ("int", "7"), "b": ("int", "bad")})] * 2 + [row(columns={"a": ("bigint", "9")})] * 3 + [watermark()]
    given = records(*documents)
    placer = CanalJsonDecoder().placer(STREAM)
    found = [one for start in range(0, len(given), division) for one in place_records(placer, given[start : start + division])]
    assert found == place_records(CanalJsonDecoder().placer(STREAM), given)


def test_an_unreadable_row_in_a_run_is_found_at_its_place_and_may_be_tolerated():
    documents = [row(columns={"a": ("int", str(number))}) for number in range(20)]
    documents[13] = row(columns={"a": ("int", "x")})
    with pytest.raises(ProtocolError) as caught:
        placed(TableSelection(), *documents)
    assert (caught.value.facts["offset"], caught.value.facts["column"]) == (13, "a")
    placer = TolerantPlacer(STREAM, Tolerance(unreadable=True), CanalJsonDecoder())
    found = place_records(placer, records(*documents))
    assert [type(event).__name__ for _, event in found].count("RejectedEvent") == 1
    assert len(found) == 20
