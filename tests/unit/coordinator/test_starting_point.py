import pytest

from applier.coordinator.starting_point import (
    check_beginning,
    refuse_rows_of_others,
    streams_that_begin_late,
    unknown_tables,
)
from applier.model.errors import NeedsOperator
from applier.model.events import FoldedName, TableName
from applier.model.position import Listing, PartitionExtent
from tests.timeline.scenario import P0, P1, P2

START_TS = 5
LISTING = Listing({P1: PartitionExtent(7, 9), P0: PartitionExtent(0, 9), P2: PartitionExtent(4, 9)})


def test_a_stream_without_a_position_whose_first_records_expired_begins_late():
    assert streams_that_begin_late(LISTING, [P2]) == [P1]


def test_a_source_that_holds_everything_since_start_ts_has_lost_nothing_of_the_replica():
    check_beginning([P1], LISTING, START_TS, lambda *asked: asked == (P1, 7, START_TS))


@pytest.mark.parametrize(("start_ts", "holds_all"), [(START_TS, False), (0, True)])
def test_anything_else_stops_and_names_the_gap(start_ts, holds_all):
    with pytest.raises(NeedsOperator) as stop:
        check_beginning([P1], LISTING, start_ts, lambda *_: holds_all)
    assert (stop.value.facts["partition"], stop.value.facts["missing_offsets"]) == (1, "0..6")
    assert "--accept-gap" in stop.value.remedy


def test_a_table_with_rows_of_others_is_refused_with_the_steps_from_a_dump():
    error = refuse_rows_of_others(TableName("S", "a"))
    assert error.facts == {"kind": "not_empty", "table": "S.a"}
    assert "start_ts" in error.remedy


def test_tables_are_unknown_once_by_folded_name_and_schemas_never():
    tables = [TableName("S", "a"), TableName("s", "A"), TableName("S", "b"), TableName("S", "")]
    assert unknown_tables(tables, frozenset({FoldedName("s", "b")})) == [TableName("s", "A")]
