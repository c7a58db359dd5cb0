"""One verification, from beginning to end: tables, ranges, threads, second comparisons, and the repair that is written."""

import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar

from applier.model.errors import RetryableSinkError
from applier.model.events import FoldedName, TableName
from applier.model.position import NO_TS, Timeline, Ts
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sinks.table_pair import TablePair, pair_tables
from applier.sinks.table_reader import Key, Scope, TableChanged
from applier.verify.comparison import Patience, TableComparison, look_again, wait_for_rows
from applier.verify.difference import RangeResult, Report, TableResult
from applier.verify.finished_ranges import FinishedRanges
from applier.verify.private_file import write_private
from applier.verify.repair import Repair
from applier.verify.sides import Sides, sides_opener

# --- pace ------------------------------------------------------------------------------------------------------------


CREDIT_S: Final = 1.0


class Pace:
    """Shared by all threads. ``rows_per_s`` 0: no limit."""

    def __init__(self, rows_per_s: int, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], object] = time.sleep) -> None:
        self._rows_per_s = rows_per_s
        self._now = now
        self._sleep = sleep
        self._lock = threading.Lock()
        self._free_at = now()

    def spend(self, rows: int) -> None:
        """Wait until the rows that were read before fit into the limit."""
        if not self._rows_per_s:
            return
        with self._lock:
            now = self._now()
            # The time that the databases took counts; a pause of hours must not allow a burst afterwards.
            self._free_at = max(self._free_at, now - CREDIT_S) + rows / self._rows_per_s
            pause_s = self._free_at - now
        if pause_s > 0:
            self._sleep(pause_s)


# --- walk ------------------------------------------------------------------------------------------------------------


def ranges(pair: TablePair, sides: Sides, rows: int) -> Iterator[Scope]:
    """Yield ranges that together hold every row of each side exactly once; one for everything if no order is the same on both."""
    low: Key | None = None
    passed: Key | None = None
    while pair.ranged:
        passed = _next_bound(pair, sides, passed, rows)
        if passed is None:
            break
        # A bound that the sink orders before the last one is no bound: its row would lie in two ranges, or in none.
        if low is not None and pair.must_check_order and not _is_above(pair, sides, passed, low):
            continue
        yield Scope(low, passed)
        low = passed
    yield Scope(low, None)


def _next_bound(pair: TablePair, sides: Sides, low: Key | None, rows: int) -> Key | None:
    try:
        sides.upstream.begin()
        return sides.upstream.bound(pair, low, rows)
    finally:
        sides.upstream.end()


def _is_above(pair: TablePair, sides: Sides, key: Key, low: Key) -> bool:
    try:
        return sides.sink.is_above(pair, key, low)
    finally:
        sides.sink.end()


# --- worker ----------------------------------------------------------------------------------------------------------


T = TypeVar("T")

TRIES: Final = 5
QUEUED: Final = 3
"""Ranges that wait for a thread, per thread: enough that none is idle, few enough that bounds stay fresh."""


class Workers:
    """``jobs`` threads. ``open_sides`` makes the sessions of one of them; they connect when they are used."""

    def __init__(self, jobs: int, open_sides: Callable[[], Sides]) -> None:
        self._jobs = jobs
        self._open_sides = open_sides
        self._pool = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="verify")
        self._local = threading.local()
        self._opened: list[Sides] = []
        self._waiting: set[Future[None]] = set()
        self._is_stopped = threading.Event()

    def submit(self, work: Callable[[Sides], None]) -> None:
        """Have the work done by a thread; waits while enough is queued. Raises what earlier work has raised."""
        self._collect(self._jobs * QUEUED - 1)
        self._waiting.add(self._pool.submit(self._run, work))

    def finish(self) -> None:
        """Wait until all work is done; raises what it has raised."""
        self._collect(0)

    def _collect(self, most: int) -> None:
        while len(self._waiting) > most:
            done, self._waiting = wait(self._waiting, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()

    def _run(self, work: Callable[[Sides], None]) -> None:
        if self._is_stopped.is_set():
            return
        sides: Sides | None = getattr(self._local, "sides", None)
        if sides is None:
            sides = self._local.sides = self._open_sides()
            self._opened.append(sides)
        attempt(sides, work, self._is_stopped)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the threads; what has not begun is skipped. A statement that runs is waited for."""
        self._is_stopped.set()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for sides in self._opened:
            sides.close()


def attempt(sides: Sides, work: Callable[[Sides], T], is_stopped: threading.Event | None = None) -> T:
    """Do the work, again with new sessions if a connection is lost. ``is_stopped`` ends the pauses."""
    pause = time.sleep if is_stopped is None else is_stopped.wait
    for tried in range(1, TRIES):
        try:
            return work(sides)
        except RetryableSinkError:
            sides.close()
            pause(2.0**tried / 4)
    return work(sides)


# --- verification ----------------------------------------------------------------------------------------------------


CHANGED: Final = "a DDL changed it during the comparison: run the command again"


@dataclass(frozen=True, slots=True)
class ComparedTables:
    """Which tables are compared. ``name``: upstream's table -> the sink's name of it; None: the replica does not have it."""

    name: Callable[[TableName], TableName | None] = lambda name: name
    is_wanted: Callable[[TableName], bool] = lambda _name: True
    """Whether the operator wants one of these compared now; also asked for the name of a table that only the sink has."""
    excluded: Callable[[TableName], TableName | None] = lambda _name: None
    """Upstream's table that the configuration excludes -> the name that it would have in the sink; None: it is not excluded."""
    renames: bool = False
    """Whether names in the sink differ from upstream's."""

    def surplus(self, upstream: Collection[TableName], sink: Collection[TableName], known: Collection[FoldedName]) -> list[TableName]:
        """Return tables that only the sink has, in schemas of compared tables or ``known`` to the replica; excluded ones are no concern."""
        named = [(name, target) for name in upstream if (target := self.name(name)) is not None]
        schemas = {target.schema.casefold() for name, target in named if self.is_wanted(name)}
        # A name of the sink is upstream's where nothing is renamed: upstream may have dropped the table since.
        asked = upstream if self.renames else (*upstream, *sink)
        # Into these schemas routes put tables of others: a namesake there is not upstream's own.
        routed = {target.schema.casefold() for name, target in named if target.schema.casefold() != name.schema.casefold()}
        excluded = {
            target.fold()
            for name in asked
            if (target := self.excluded(name)) is not None and (target != name or target.schema.casefold() not in routed)
        }
        # A table that is not compared is not too many.
        there = {target.fold() for _, target in named} | excluded
        ours = (name for name in sink if name.schema.casefold() in schemas or name.fold() in known)
        return [name for name in ours if name.fold() not in there and self.is_wanted(name)]


class ComparisonWatcher(Protocol):
    """Receives what happens, from any thread."""

    def begin(self, rows: int) -> None:
        """Receive the servers' estimate of the number of rows."""
        ...

    def advance(self, table: TableName, rows: int) -> None:
        """Receive that rows were compared."""
        ...

    def say(self, line: str) -> None:
        """Receive a note for the operator."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a verification is done."""

    jobs: int = 4
    chunk_rows: int = 50_000
    rows_per_s: int = 0
    most_differences: int = 100_000
    """Per table: beyond it the rest of the table is only counted."""
    state: Path | None = None
    identity: str = ""
    is_row_consistent: bool = False
    """The sink may be ahead of its checkpoint (``consistency = "row"``)."""


@dataclass(slots=True)
class _Totals:
    times: set[Ts] = field(default_factory=set)
    skipped: int = 0


class Verification:
    """Compares all tables once. ``open_sides`` is called for each thread."""

    def __init__(self, open_sides: Callable[[], Sides], chosen: ComparedTables, options: Options, watcher: ComparisonWatcher) -> None:
        self._open_sides = open_sides
        self._chosen = chosen
        self._options = options
        self._watcher = watcher
        self._lock = threading.Lock()
        self._pace = Pace(options.rows_per_s)
        self._totals = _Totals()
        self.pairs: dict[TableName, TablePair] = {}
        """The tables that were compared, by the sink's name."""

    def run(self, *, reserved: Collection[str]) -> Report:
        """Compare. ``reserved``: schemas that are excluded (casefolded)."""
        started_s = time.monotonic()
        finished = FinishedRanges(self._options.state, self._options.identity)
        main = self._open_sides()
        try:
            results, views = attempt(main, lambda sides: self._read_catalogues(sides, reserved))
            is_exact = self._compare_all(main, results, finished)
        finally:
            finished.save()
            main.close()
        return Report(
            tables=[results[name] for name in sorted(results)],
            views=views,
            seconds=time.monotonic() - started_s,
            first_ts=min(self._totals.times, default=NO_TS),
            last_ts=max(self._totals.times, default=NO_TS),
            is_exact=is_exact,
            skipped_ranges=self._totals.skipped,
        )

    def _read_catalogues(self, sides: Sides, reserved: Collection[str]) -> tuple[dict[TableName, TableResult], int]:
        """Pair the tables; return a result for each of them, with a problem where there is nothing to compare, and the number of views."""
        with sides.moment():
            upstream, sink = (side.names(without=reserved) for side in (sides.upstream, sides.sink))
            chosen, actual = self._chosen, _Spelling(sink.tables)
            named = {name: target for name in upstream.tables if (target := chosen.name(name)) is not None}
            wanted = {name: target for name, target in named.items() if chosen.is_wanted(name)}
            found = {
                target: TableResult(name=target, problem="the sink does not have the table")
                for target in wanted.values()
                if actual.of(target) is None
            }
            paired = {name: spelled for name, target in wanted.items() if (spelled := actual.of(target)) is not None}
            others = {table.name: table for table in sides.sink.describe(list(paired.values()))}
            for table in sides.upstream.describe(list(paired)):
                other = others[paired[table.name]]
                pair = pair_tables(table, other, (sides.upstream.kind, sides.sink.kind))
                found[other.name] = TableResult(name=other.name, problem=pair if isinstance(pair, str) else "")
                if isinstance(pair, TablePair):
                    self.pairs[other.name] = pair
            views = sum(chosen.name(view) is not None and chosen.is_wanted(view) for view in upstream.views)
        for name in chosen.surplus(upstream.tables, sink.tables, sink.known):
            found[name] = TableResult(name=name, problem="upstream does not have the table")
        return found, views

    def _compare_all(self, main: Sides, results: dict[TableName, TableResult], finished: FinishedRanges) -> bool:
        with main.moment() as ts:
            is_exact = bool(ts) and main.upstream.kind.has_history and not self._options.is_row_consistent
        if finished.is_behind(ts):
            self._watcher.say("the state file is of another checkpoint of the sink: its ranges are compared again")
        self._watcher.begin(sum(pair.upstream.rows for pair in self.pairs.values()))
        with Workers(self._options.jobs, self._open_sides) as workers:
            for name, pair in sorted(self.pairs.items()):
                try:
                    self._submit(workers, main, pair, results[name], finished, ts)
                except TableChanged:
                    results[name].problem = CHANGED
            workers.finish()
        return is_exact

    def _submit(self, workers: Workers, main: Sides, pair: TablePair, result: TableResult, finished: FinishedRanges, ts: Ts) -> None:
        for scope in ranges(pair, main, self._options.chunk_rows):
            equal = finished.find(pair, scope, ts)
            if equal is not None:
                self._totals.skipped += 1
                self._add(result, equal)
            else:
                workers.submit(_work(self, pair, scope, result, finished))

    def compare(self, sides: Sides, pair: TablePair, scope: Scope, result: TableResult, finished: FinishedRanges) -> None:
        """Compare a range and record the result: the work of a thread."""
        left = max(0, self._options.most_differences - len(result.differences))
        try:
            found = TableComparison(pair, sides, left).compare(scope)
        except TableChanged:
            result.problem = CHANGED
            return
        self._add(result, found)
        finished.add(pair, scope, found)
        self._pace.spend(found.upstream.rows)

    def _add(self, result: TableResult, found: RangeResult) -> None:
        with self._lock:
            result.add(found)
            self._totals.times.add(found.ts)
        self._watcher.advance(result.name, found.upstream.rows)


def _work(
    verification: Verification, pair: TablePair, scope: Scope, result: TableResult, finished: FinishedRanges
) -> Callable[[Sides], None]:
    return lambda sides: verification.compare(sides, pair, scope, result, finished)


class _Spelling:
    """Finds tables without regard to case, as TiDB does; the exact spelling decides between namesakes."""

    def __init__(self, names: Collection[TableName]) -> None:
        self._names = set(names)
        self._folded = {name.fold(): name for name in names}

    def of(self, name: TableName) -> TableName | None:
        return name if name in self._names else self._folded.get(name.fold())


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Which databases are compared, and the handling of differences."""

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
