"""What ``applier verify`` does from beginning to end: compare, look again, write the repair."""

from dataclasses import dataclass, replace
from pathlib import Path

from applier.model.timeline import Timeline
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.verify.comparison import Patience, look_again, wait_for_rows
from applier.verify.difference import Report
from applier.verify.private_file import write_private
from applier.verify.repair import Repair
from applier.verify.sides import Sides, sides_opener
from applier.verify.verification import ComparedTables, ComparisonWatcher, Options, Verification, attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Which databases are compared, and what is done about differences."""

    upstream: SinkSettings
    sink: SinkSettings
    tables: ComparedTables
    options: Options
    timeline: Timeline
    statement_timeout_s: int = 600
    rows_in_flight: Patience | None = None
    fix_sql: Path | None = None


def perform(task: Task, watcher: ComparisonWatcher) -> Report:
    """Compare the databases; errors of the databases and of the files come out as ours."""
    open_sides = sides_opener(task.upstream, task.sink, statement_timeout_s=task.statement_timeout_s)
    verification = Verification(open_sides, task.tables, task.options, watcher)
    report = verification.run(reserved=(task.sink.schema.casefold(),))
    if report.is_equal:
        return report
    sides = open_sides()
    try:
        return attempt(sides, lambda opened: _look_again(task, verification, report, opened))
    finally:
        sides.close()


def _look_again(task: Task, verification: Verification, report: Report, sides: Sides) -> Report:
    tables = list(report.tables)
    if task.rows_in_flight is not None:
        wait_for_rows(sides, verification.pairs, tables, task.rows_in_flight, task.timeline)
    if task.fix_sql is None:
        return report
    # All rows at one point in time, so that the statements belong to one checkpoint.
    ts = look_again(sides, verification.pairs, tables, keeps_rows=True)
    with open_sink(task.sink) as sink:
        repair = Repair(dialect=sink.dialect, kind=sides.sink.kind, replica=task.sink.name, ts=ts, timeline=task.timeline)
    write_private(task.fix_sql, repair.pieces(verification.pairs, tables))
    return replace(report, unwritten=repair.unwritten)
