import io

import pytest
from rich.console import Console

from applier.cli.verify import BarWatcher, QuietWatcher, as_lines, as_object, watcher_for
from applier.model.events import TableName
from applier.model.position import Ts
from applier.sinks.settings import SinkSettings
from applier.sinks.table_reader import Checksum
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.verify.comparison import Patience
from applier.verify.difference import Report, RowDifference, RowState, TableResult
from applier.verify.verification import ComparedTables, Options, Task

SECRET = b"hunter2"
T = TableName("shop", "orders")


def task(**changes):
    side = SinkSettings(url="sqlite:///x.db")
    return Task(upstream=side, sink=side, tables=ComparedTables(), options=Options(), timeline=TSO_TIMELINE, **changes)


def result(*differences, **facts):
    rows = {"upstream": Checksum(3, 1), "sink": Checksum(2, 1)}
    return TableResult(name=T, differences=list(differences), **(rows | facts))


def row(state, *columns):
    return RowDifference(state=state, key=(SECRET,), columns=columns, row=(SECRET,))


def report(*tables, **facts):
    return Report(tables=tables, views=0, seconds=1.5, first_ts=Ts(5 << 18), last_ts=Ts(5 << 18), **facts)


def test_an_equal_table_is_one_line_and_the_last_one_names_the_checkpoint():
    lines = as_lines(report(result(), is_exact=True), task())
    assert lines == [
        "shop.orders: 3 rows, equal",
        f"equal: 1 table, 3 rows upstream, 1.5 s, at checkpoint {5 << 18} (1970-01-01 00:00:00.005Z)",
    ]


def test_rows_are_counted_by_kind_with_the_columns_and_no_value():
    found = report(result(row(RowState.MISSING), row(RowState.DIFFERENT, "a", "b"), row(RowState.DIFFERENT, "b"), is_cut=True))
    lines = as_lines(found, task())
    assert lines[0] == "shop.orders: at least 1 missing, 2 different of 3 rows; columns that differ: b, a"
    assert lines[1].startswith("1 of 1 table differs")
    assert SECRET.decode() not in str(lines) + str(as_object(found)) + repr(found)


@pytest.mark.parametrize(("exact", "patience", "advised"), [(False, None, True), (True, None, False), (False, Patience(), False)])
def test_rows_on_their_way_are_mentioned_where_there_can_be_some(exact, patience, advised):
    lines = as_lines(report(result(row(RowState.MISSING)), is_exact=exact), task(rows_in_flight=patience))
    assert any("--rows-in-flight" in line for line in lines) is advised


def test_the_repair_is_named_with_the_rows_that_it_leaves_out(tmp_path):
    lines = as_lines(report(result(row(RowState.MISSING)), unwritten=1), task(fix_sql=tmp_path / "fix.sql"))
    assert (
        lines[-1] == f"the statements that repair the sink are in {tmp_path}/fix.sql (1 row skipped: the sink's columns cannot hold them)"
    )


def test_a_table_without_a_key_and_one_with_a_problem_say_so():
    lines = as_lines(report(result(is_cut=True), result(problem="the sink does not have the table")), task())
    assert lines[0] == "shop.orders: 3 rows upstream, 2 in the sink, not the same rows (no key finds them)"
    assert lines[1] == "shop.orders: not compared: the sink does not have the table"


def test_a_bar_is_drawn_on_a_terminal_only_and_grows_beyond_the_estimate():
    terminal = Console(file=io.StringIO(), force_terminal=True, width=100)
    with watcher_for(terminal, silent=False) as watcher:
        assert isinstance(watcher, BarWatcher)
        watcher.begin(10)
        watcher.advance(T, 15)
        watcher.say("said [b]")
    assert "said [b]" in terminal.file.getvalue()
    for silent in (True, False):
        quiet = Console(file=io.StringIO())
        with watcher_for(quiet, silent=silent) as watcher:
            assert isinstance(watcher, QuietWatcher)
            watcher.begin(10)
            watcher.advance(T, 15)
            watcher.say("said")
        assert quiet.file.getvalue() == ("" if silent else "said\n")
