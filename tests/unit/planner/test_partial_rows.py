"""Rows whose images lack columns of the sink: laid over whole ones, filled with defaults, or completed from the sink's row."""

import json
import pickle
from collections.abc import Mapping
from typing import Any

import pytest

from applier.model.errors import FatalSinkError, NeedsOperator
from applier.planner.port import Phase, TableDescription
from tests.builders.partial_rows import A_AND_B, BARE, FILLED, ONLY_A, ONLY_B, ONLY_C, ONLY_KEY, drop, part, ran
from tests.builders.planning import (
    INT,
    ORDERS,
    TEXT,
    Row,
    between,
    gone,
    packed,
    plan,
    put,
    shape,
    sink_column,
    sink_table,
)


def result(*rows: Row, sink: Mapping[int, Mapping[str, Any]] | None = None, table: TableDescription = FILLED) -> dict[int, dict[str, Any]]:
    statements, _ = plan(packed(*rows), tables=[table])
    return ran(statements, sink or {})


def test_s21_a_row_of_a_column_selector_never_resets_a_column_that_it_does_not_list() -> None:
    sink = {1: {"id": 1, "a": "old a", "b": "old b", "c": "old c"}}
    assert result(part(5, 1, shape=ONLY_A), sink=sink) == {1: {"id": 1, "a": "a5", "b": "old b", "c": "old c"}}


def test_what_is_missing_is_read_by_key_before_anything_of_the_segment_is_written() -> None:
    statements, _ = plan(packed(part(5, 1, shape=ONLY_A), part(6, 2), drop(7, 3)), tables=[FILLED])
    by_phase = sorted(statements, key=lambda one: one.phase)
    assert [(one.phase, one.rows) for one in by_phase] == [(Phase.READ, 1), (Phase.DELETE, 1), (Phase.REPLACE, 1)]
    assert json.loads(by_phase[0].text) == ["read b,c by", "orders", ["id"], [[1]]]
    assert (by_phase[0].min_ts, by_phase[0].max_ts) == (5, 5)
    assert by_phase[0].size > len(by_phase[0].text)
    assert pickle.loads(pickle.dumps(by_phase)) == by_phase  # noqa: S301 - our own bytes


def test_partial_rows_are_laid_over_the_latest_whole_row_in_order() -> None:
    rows = [part(5, 1), part(6, 1, shape=ONLY_A), part(7, 1, shape=ONLY_B)]
    for order in (rows, rows[::-1]):
        statements, _ = plan(packed(*order), tables=[BARE])
        assert [one.phase for one in statements] == [Phase.REPLACE]
        assert ran(statements, {}) == {1: {"id": 1, "a": "a6", "b": "b7", "c": "c5"}}


def test_partial_rows_with_different_columns_supersede_one_another_column_by_column() -> None:
    rows = [part(5, 1, shape=ONLY_C), part(6, 1, shape=ONLY_A), part(7, 1, shape=A_AND_B), part(8, 1, shape=ONLY_A)]
    assert result(*rows, table=BARE) == {1: {"id": 1, "a": "a8", "b": "b7", "c": "c5"}}
    assert result(*rows[::-1], table=BARE) == {1: {"id": 1, "a": "a8", "b": "b7", "c": "c5"}}


def test_a_whole_row_supersedes_the_partial_rows_before_it() -> None:
    assert result(part(5, 1, shape=ONLY_A), part(6, 1)) == {1: {"id": 1, "a": "a6", "b": "b6", "c": "c6"}}
    assert result(part(6, 1), part(5, 1, shape=ONLY_A)) == {1: {"id": 1, "a": "a6", "b": "b6", "c": "c6"}}


def test_a_delete_supersedes_the_partial_rows_before_it() -> None:
    sink = {1: {"id": 1, "a": "old a", "b": "old b", "c": "old c"}}
    assert result(part(5, 1, shape=ONLY_A), drop(6, 1), sink=sink) == {}


def test_a_row_that_was_deleted_before_takes_defaults_and_nothing_of_the_old_row() -> None:
    sink = {1: {"id": 1, "a": "old a", "b": "old b", "c": "old c"}}
    expected = {1: {"id": 1, "a": "a6", "b": "default of b", "c": "default of c"}}
    assert result(part(4, 1), drop(5, 1), part(6, 1, shape=ONLY_A), sink=sink) == expected


def test_within_one_commit_ts_the_delete_comes_before_the_partial_row() -> None:
    """A split update: the producer writes a delete and an insert, because a unique key has changed."""
    sink = {1: {"id": 1, "a": "old a", "b": "old b", "c": "old c"}}
    expected = {1: {"id": 1, "a": "a5", "b": "default of b", "c": "default of c"}}
    assert result(part(5, 1, shape=ONLY_A, offset=1), drop(5, 1, offset=2), sink=sink) == expected


def test_a_row_that_the_sink_lacks_takes_defaults_also_where_only_its_key_is_sent() -> None:
    defaults = {name: f"default of {name}" for name in "abc"}
    assert result(part(5, 1, shape=ONLY_A)) == {1: {"id": 1} | defaults | {"a": "a5"}}
    assert result(part(5, 1, shape=ONLY_KEY)) == {1: {"id": 1} | defaults}


@pytest.mark.parametrize("before", [[], [drop(4, 1)]], ids=["the sink lacks the row", "the row was deleted"])
def test_a_column_without_a_default_stops_with_column_place_and_the_options_to_change(before: list[Row]) -> None:
    with pytest.raises(NeedsOperator, match="no default") as caught:
        result(*before, part(5, 1, shape=ONLY_A, offset=9), table=BARE)
    expected = {"column": "b", "table": "shop.orders", "commit_ts": 5, "offset": 9, "topic": "feed"}
    assert expected.items() <= caught.value.facts.items()
    assert "column-selectors" in caught.value.remedy
    assert "output-raw-change-event" in caught.value.remedy


def test_replays_change_nothing() -> None:
    sink = {1: {"id": 1, "a": "old a", "b": "old b", "c": "old c"}, 2: {"id": 2, "a": "", "b": "", "c": ""}}
    rows = [part(5, 1, shape=ONLY_A), drop(5, 2), part(6, 2, shape=ONLY_B), part(7, 1, shape=ONLY_B)]
    once = result(*rows, sink=sink)
    again = [Row(row.commit_ts, row.kind, row.values, row.offset + 10, 0, row.shape) for row in rows]
    assert result(*rows, *again, rows[0], sink=sink) == once
    assert result(*rows, sink=once) == once


def test_a_table_without_a_unique_index_on_the_key_is_read_before_its_rows_are_deleted_and_inserted() -> None:
    sink = {1: {"id": 1, "a": "old a", "b": "old b", "c": "old c"}}
    table = sink_table("id", "a", "b", "c", primary=())
    statements, _ = plan(packed(part(5, 1, shape=ONLY_A), part(6, 2, shape=ONLY_A), part(5, 2)), tables=[table])
    phases = [(one.phase, one.rows) for one in sorted(statements, key=lambda one: one.phase)]
    assert phases == [(Phase.READ, 1), (Phase.DELETE, 2), (Phase.REPLACE, 1)]
    assert ran(statements, sink) == {
        1: {"id": 1, "a": "a5", "b": "old b", "c": "old c"},
        2: {"id": 2, "a": "a6", "b": "b5", "c": "c5"},
    }


def test_many_rows_are_planned_as_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("applier.planner.partial_plan.ROWS_AT_ONCE", 3)
    rows = [part(5 + n % 2, n, shape=ONLY_A) for n in range(7)]
    statements, _ = plan(packed(*rows, part(4, 2)), tables=[FILLED])
    assert sorted((one.phase, one.rows) for one in statements) == [(Phase.READ, 1), (Phase.READ, 2), (Phase.READ, 3), (Phase.REPLACE, 1)]
    assert sorted(ran(statements, {})) == list(range(7))


def test_few_large_rows_are_in_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large may be what the image has, and not what is read."""
    monkeypatch.setattr("applier.planner.partial_plan.BYTES_AT_ONCE", 5_000)
    rows = [put(5, number, "x" * 2_000, shape=ONLY_A) for number in range(7)]
    statements, _ = plan(packed(*rows), tables=[FILLED])
    assert [one.rows for one in statements] == [3, 3, 1]
    assert sorted(ran(statements, {})) == list(range(7))


def test_a_table_of_a_group_that_is_applied_again_is_read_again() -> None:
    statements, _ = plan(packed(part(5, 1, shape=ONLY_A)), tables=[FILLED], window=between(5, 9, again=True))
    assert [one.phase for one in statements] == [Phase.READ]
    assert plan(packed(part(5, 1, shape=ONLY_A)), tables=[FILLED], window=between(5, 9))[0] == []


def test_only_columns_that_no_image_lists_are_read() -> None:
    statements, _ = plan(packed(part(5, 1, shape=ONLY_A), part(5, 2, shape=A_AND_B), part(6, 1, shape=ONLY_C)), tables=[FILLED])
    assert sorted(json.loads(one.text)[0] for one in statements) == ["read b by", "read c by"]


def test_a_column_that_the_sink_generates_makes_no_image_partial_and_is_not_read() -> None:
    table = sink_table("id", "a", sink_column("b", generated=True), "c")
    statements, _ = plan(packed(part(5, 1, shape=ONLY_A)), tables=[table])
    assert json.loads(statements[0].text)[0] == "read c by"


def test_a_column_of_a_partial_image_that_the_sink_lacks_stops() -> None:
    with pytest.raises(FatalSinkError, match="lacks a column") as caught:
        plan(packed(part(5, 1, shape=A_AND_B)), tables=[sink_table("id", "b", "c")])
    assert caught.value.facts["column"] == "a"


def test_images_of_placeholders_are_not_partial() -> None:
    """They are read from upstream, whole, before they are written."""
    with pytest.raises(NeedsOperator, match="only its handle key was sent"):
        plan(packed(part(5, 1, shape=ONLY_KEY._replace(placeholder=True))), tables=[FILLED])


def test_an_update_of_a_row_without_handle_key_is_an_update_where_a_unique_key_of_the_sink_identifies_it() -> None:
    """A column selector has left out the primary key: such an update comes as a delete and an upsert of one event."""
    unkeyed = shape(("id", INT, 17), ("a", TEXT, 64))
    sink = {1: {"id": 1, "a": "old a", "b": "old b", "c": "old c"}}
    rows = [gone(5, 1, "a4", shape=unkeyed, offset=3, index=2), put(5, 1, "a5", shape=unkeyed, offset=3, index=2)]
    statements, _ = plan(packed(*rows), tables=[FILLED], rekeyed={ORDERS: ("id",)})
    assert ran(statements, sink) == {1: {"id": 1, "a": "a5", "b": "old b", "c": "old c"}}
    moved = [gone(5, 1, "a4", shape=unkeyed, offset=3, index=2), put(5, 2, "a5", shape=unkeyed, offset=3, index=2)]
    statements, _ = plan(packed(*moved), tables=[FILLED], rekeyed={ORDERS: ("id",)})
    assert ran(statements, sink) == {2: {"id": 2, "a": "a5", "b": "default of b", "c": "default of c"}}


def test_a_table_without_any_key_stops_also_with_partial_rows() -> None:
    with pytest.raises(NeedsOperator, match="no key"):
        plan(packed(put(5, 1, "x", shape=shape(("id", INT, 1), ("a", TEXT, 64)))), tables=[BARE])
