"""How a verification is shown: a progress bar on a terminal, a line per table, JSON. No value of a row."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from applier.model.events import TableName
from applier.model.timeline import Timeline
from applier.telemetry.wording import count, duration, one_line, time_text
from applier.verify.difference import Report, RowState, TableResult
from applier.verify.task import Task
from applier.verify.verification import ComparisonWatcher

SHOWN_COLUMNS: Final = 8


class QuietWatcher:
    """Prints what an operator should know, and no progress."""

    def __init__(self, console: Console | None) -> None:
        self._console = console

    def begin(self, rows: int) -> None:
        """Show nothing."""

    def advance(self, table: TableName, rows: int) -> None:
        """Show nothing."""

    def say(self, line: str) -> None:
        """Print the line."""
        if self._console is not None:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class BarWatcher:
    """Draws a bar of the rows that were compared."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._lock = threading.Lock()
        self._bar = progress.add_task("reading the catalogues", total=None)

    def begin(self, rows: int) -> None:
        """Draw the bar of so many rows."""
        self._progress.update(self._bar, total=rows, description="comparing")

    def advance(self, table: TableName, rows: int) -> None:
        """Move the bar. The total was an estimate: it grows where there are more rows."""
        with self._lock:
            bar = self._progress.tasks[0]
            total = max(bar.total or 0, bar.completed + rows)
            self._progress.update(self._bar, advance=rows, total=total, description=one_line(str(table)))

    def say(self, line: str) -> None:
        """Print the line above the bar."""
        self._progress.console.print(line, markup=False, highlight=False)


@contextmanager
def watcher_for(console: Console, *, silent: bool) -> Iterator[ComparisonWatcher]:
    """Yield what fits standard error: a bar on a terminal, plain lines elsewhere, nothing for programs."""
    if silent or not console.is_terminal or console.is_dumb_terminal:
        yield QuietWatcher(None if silent else console)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield BarWatcher(progress)


def as_lines(report: Report, task: Task) -> list[str]:
    """Return the result for people."""
    lines = [f"{one_line(str(table.name))}: {_verdict(table)}" for table in report.tables]
    if report.views:
        lines.append(f"{count(report.views, 'view')} skipped: a view has no rows of its own")
    different = sum(not table.is_equal for table in report.tables)
    rows = count(sum(table.upstream.rows for table in report.tables), "row")
    verb = "differs" if different == 1 else "differ"
    outcome = "equal" if report.is_equal else f"{different:,} of {count(len(report.tables), 'table')} {verb}"
    tables = f"{count(len(report.tables), 'table')}, " if report.is_equal else ""
    lines.append(f"{outcome}: {tables}{rows} upstream, {duration(report.seconds)}{_moment(report, task.timeline)}")
    return lines + _advice(report, task)


def _verdict(table: TableResult) -> str:
    if table.problem:
        return f"not compared: {table.problem}"
    if table.is_equal:
        return f"{count(table.upstream.rows, 'row')}, equal"
    if not table.differences:
        return f"{count(table.upstream.rows, 'row')} upstream, {table.sink.rows:,} in the sink, not the same rows (no key finds them)"
    found = [f"{number:,} {state}" for state in RowState if (number := table.count(state))]
    text = f"{'at least ' if table.is_cut else ''}{', '.join(found)} of {count(table.upstream.rows, 'row')}"
    columns = table.columns.most_common(SHOWN_COLUMNS)
    return text + (f"; columns that differ: {', '.join(one_line(name) for name, _ in columns)}" if columns else "")


def _moment(report: Report, timeline: Timeline) -> str:
    if not report.last_ts:
        return ", without a checkpoint of the sink"
    first = f"{report.first_ts} to " if report.first_ts != report.last_ts else ""
    return f", at checkpoint {first}{report.last_ts} ({time_text(report.last_ts, timeline)})"


def _advice(report: Report, task: Task) -> list[str]:
    if report.is_equal:
        return []
    lines = []
    if not report.is_exact and task.rows_in_flight is None and any(table.differences for table in report.tables):
        lines.append("some of these rows may be on their way to the sink: run the command with --rows-in-flight")
    if task.fix_sql is None:
        lines.append("--fix-sql FILE writes the statements that repair the sink")
    else:
        left_out = f" ({count(report.unwritten, 'row')} skipped: the sink's columns cannot hold them)" if report.unwritten else ""
        lines.append(f"the statements that repair the sink are in {task.fix_sql}{left_out}")
    return lines


def as_object(report: Report) -> dict[str, Any]:
    """Return the result for programs."""
    return {
        "equal": report.is_equal,
        "exact": report.is_exact,
        "first_checkpoint_ts": report.first_ts,
        "last_checkpoint_ts": report.last_ts,
        "seconds": round(report.seconds, 3),
        "views_left_out": report.views,
        "ranges_of_an_earlier_run": report.skipped_ranges,
        "rows_left_out_of_the_repair": report.unwritten,
        "tables": [_table_object(table) for table in report.tables],
    }


def _table_object(table: TableResult) -> dict[str, Any]:
    return {
        "schema": table.name.schema,
        "table": table.name.table,
        "equal": table.is_equal,
        "problem": table.problem or None,
        "rows_upstream": table.upstream.rows,
        "rows_sink": table.sink.rows,
        **{str(state): table.count(state) for state in RowState},
        "columns": dict(table.columns),
        "more_differences": table.is_cut,
        "ranges": table.ranges,
    }
