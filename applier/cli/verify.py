"""``applier verify``: compare the sink with upstream, and write the statements that repair it.

The progress is a bar on a terminal, a line per table, or JSON. No value of a row is shown.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from sqlalchemy import make_url

from applier.cli.option import AsJson, ConfigPath, read_config, source_kit
from applier.cli.output import DEFAULT_CONFIG, print_json, print_line, stderr_console
from applier.config import Config
from applier.config.section import Consistency
from applier.database.session import BadAddress, Tls, TlsMode
from applier.model.errors import ConfigError, NeedsOperator, Remedy, errors_spelled_by
from applier.model.events import TableName
from applier.model.position import Timeline
from applier.mysql.address import read_server_url
from applier.selection import PatternError, TableFilter
from applier.sinks.settings import SinkSettings
from applier.telemetry.wording import count, duration, one_line, time_text
from applier.verify.comparison import Patience
from applier.verify.difference import Report, RowState, TableResult
from applier.verify.verification import ComparedTables, ComparisonWatcher, Options, Task, perform

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


PASSWORD: Final = "APPLIER_UPSTREAM_PASSWORD"  # noqa: S105 - the name of a variable
LOG_WAIT_S: Final = 2.0
URL_REMEDY: Final = Remedy(
    "cli.write-upstream-url", "Write --upstream mysql+pymysql://user@host:4000/, and give the password as APPLIER_UPSTREAM_PASSWORD"
)
UPSTREAM_HELP: Final = (
    f"TiDB, MySQL or MariaDB: mysql+pymysql://user@host:4000/; its password in {PASSWORD}. Default: source.upstream, or the primary."
)


def verify(  # noqa: PLR0913 - one parameter per option of the command line
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    upstream: Annotated[str | None, typer.Option(metavar="URL", help=UPSTREAM_HELP)] = None,
    password_file: Annotated[
        Path | None, typer.Option("--upstream-password-file", metavar="FILE", help="File that holds upstream's password.")
    ] = None,
    tls_ca: Annotated[
        str | None, typer.Option("--upstream-tls-ca", metavar="FILE", help="CA of upstream's certificate. The host's name is verified.")
    ] = None,
    tables: Annotated[
        list[str] | None, typer.Option(metavar="RULE", help="Compare only these: 'shop.*', '!shop.log_*'. Repeatable.")
    ] = None,
    fix_sql: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the statements that repair the sink. They hold rows.")] = None,
    rows_in_flight: Annotated[bool, typer.Option("--rows-in-flight", help="Wait for rows that the replica has not applied yet.")] = False,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="How many ranges of rows to compare at once.")] = 4,
    chunk_rows: Annotated[int, typer.Option(metavar="N", min=1, help="Rows in one range.")] = 50_000,
    max_rows_per_second: Annotated[int, typer.Option(metavar="N", min=0, help="Limit on the load of both databases. 0: no limit.")] = 0,
    statement_timeout: Annotated[int, typer.Option(metavar="SECONDS", min=1, max=86_400, help="How long a query may run.")] = 600,
    state: Annotated[Path | None, typer.Option(metavar="FILE", help="Continue an interrupted verification. Holds keys of rows.")] = None,
    as_json: AsJson = False,
) -> int:
    """Compare the sink with upstream. Exit code 6: they differ."""
    settings = read_config(config)
    source, shown = _configured(settings) if upstream is None else _given(upstream, password_file, tls_ca)
    task = Task(
        upstream=source,
        sink=settings.sink_settings(),
        tables=compared_tables(settings, tables or ()),
        options=Options(
            jobs=jobs,
            chunk_rows=chunk_rows,
            rows_per_s=max_rows_per_second,
            state=state,
            identity=f"{shown} {settings.sink.address} {settings.name}",
            is_row_consistent=settings.sink.consistency is Consistency.ROW,
        ),
        timeline=source_kit(settings).timeline(),
        statement_timeout_s=statement_timeout,
        rows_in_flight=_patience(settings) if rows_in_flight else None,
        fix_sql=fix_sql,
    )
    with errors_spelled_by(task.timeline), watcher_for(stderr_console(), silent=as_json) as watcher:
        report = perform(task, watcher)
    if as_json:
        print_json(as_object(report))
    else:
        for line in as_lines(report, task):
            print_line(line)
    return 0 if report.is_equal else NeedsOperator.exit_code


def compared_tables(settings: Config, rules: Sequence[str]) -> ComparedTables:
    """Return which tables are compared: the replica's tables, limited to the ones in ``--tables``."""
    selection = settings.source.selection()
    try:
        wanted = TableFilter.parse(rules)
    except PatternError as error:
        raise ConfigError(f"--tables {error}", remedy=error.remedy) from None

    def name_of(table: TableName) -> TableName | None:
        return selection.name(table) if selection.has(table) else None

    def is_wanted(table: TableName) -> bool:
        # Where an event filter excludes changes of rows, the sink differs from upstream on purpose.
        return wanted.has(table) and not selection.ignored_rows(table)

    def excluded(table: TableName) -> TableName | None:
        return None if selection.has(table) else selection.name(table)

    return ComparedTables(name_of, is_wanted, excluded, renames=bool(selection.routes))


def _patience(settings: Config) -> Patience:
    # The checkpoint of a binlog is a position, and never passes a time: what is on its way is looked for again after a while.
    return Patience(wait_s=LOG_WAIT_S) if settings.source.has_whole_transactions else Patience()


def _configured(settings: Config) -> tuple[SinkSettings, str]:
    """Return how the upstream of the configuration is reached, and its address without the password."""
    found = settings.source.upstream_settings()
    if found is None:
        raise ConfigError(
            "nothing says where upstream is", remedy=Remedy("cli.write-upstream-or-set-source", f"{URL_REMEDY}, or set source.upstream")
        )
    return SinkSettings(url=found.url, tls=found.tls), make_url(found.url).render_as_string(hide_password=True)


def _given(text: str, password_file: Path | None, tls_ca: str | None) -> tuple[SinkSettings, str]:
    """Return how upstream is reached, and its address without the password."""
    try:
        url = read_server_url(text)
    except BadAddress as bad:
        raise ConfigError(f"--upstream {bad.problem}", remedy=URL_REMEDY) from None
    password = os.environ.pop(PASSWORD, None)
    if password_file is not None:
        password = _content(password_file)
    if password is not None:
        url = url.set(password=password)
    tls = Tls(mode=TlsMode.VERIFY_IDENTITY, ca=tls_ca) if tls_ca is not None else Tls()
    return SinkSettings(url=url.render_as_string(hide_password=False), tls=tls), url.render_as_string(hide_password=True)


def _content(path: Path) -> str:
    """Read the password; no message names the path, an operator may have written the password there."""
    try:
        return path.read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError):
        remedy = Remedy("cli.check-readable-file", "Check the path, and that this user can read the file")
        raise ConfigError("the file of --upstream-password-file cannot be read", remedy=remedy) from None
