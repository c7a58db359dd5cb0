"""One verification: which tables, their ranges, the threads, and what comes out."""

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from applier.model.events import TableName
from applier.model.position import NO_TS, Ts
from applier.verify.comparison import TableComparison
from applier.verify.difference import RangeResult, Report, TableResult
from applier.verify.finished_ranges import FinishedRanges
from applier.verify.moment import Sides
from applier.verify.pace import Pace
from applier.verify.scope import Scope
from applier.verify.side import Contents, ServerKind, SideTable
from applier.verify.table_pair import TablePair, pair_tables
from applier.verify.walk import ranges
from applier.verify.worker import Workers, attempt


@dataclass(frozen=True, slots=True)
class ComparedTables:
    """Which tables are compared. ``name``: upstream's table -> the sink's name of it; None: the replica does not have it."""

    name: Callable[[TableName], TableName | None] = lambda name: name
    is_wanted: Callable[[TableName], bool] = lambda _name: True
    """Whether the operator wants one of these compared now; also asked for the name of a table that only the sink has."""


class ComparisonWatcher(Protocol):
    """Is told what happens, by any thread."""

    def begin(self, rows: int) -> None:
        """Be told how many rows there are, as the servers estimate."""
        ...

    def advance(self, table: TableName, rows: int) -> None:
        """Be told that rows were compared."""
        ...

    def say(self, line: str) -> None:
        """Be told something that an operator should know."""
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
        """Compare. ``reserved``: schemas that are left out (casefolded)."""
        started_s = time.monotonic()
        finished = FinishedRanges(self._options.state, self._options.identity)
        main = self._open_sides()
        try:
            upstream, sink = attempt(main, lambda sides: self._contents(sides, reserved))
            results = self._results(upstream, sink, (main.upstream.kind, main.sink.kind))
            is_exact = self._compare_all(main, results, finished)
        finally:
            finished.save()
            main.close()
        return Report(
            tables=[results[name] for name in sorted(results)],
            views=sum(self._chosen.name(view) is not None and self._chosen.is_wanted(view) for view in upstream.views),
            seconds=time.monotonic() - started_s,
            first_ts=min(self._totals.times, default=NO_TS),
            last_ts=max(self._totals.times, default=NO_TS),
            is_exact=is_exact,
            skipped_ranges=self._totals.skipped,
        )

    @staticmethod
    def _contents(sides: Sides, reserved: Collection[str]) -> tuple[Contents, Contents]:
        with sides.moment():
            return sides.upstream.contents(without=reserved), sides.sink.contents(without=reserved)

    def _results(self, upstream: Contents, sink: Contents, kinds: tuple[ServerKind, ServerKind]) -> dict[TableName, TableResult]:
        """Pair the tables; a result with a problem where there is nothing to compare."""
        chosen = self._chosen
        named = [(table, target) for table in upstream.tables if (target := chosen.name(table.name)) is not None]
        wanted = [(table, target) for table, target in named if chosen.is_wanted(table.name)]
        found: dict[TableName, TableResult] = {}
        for table, target in wanted:
            other = _find(sink, target)
            if other is None:
                found[target] = TableResult(name=target, problem="the sink does not have the table")
                continue
            pair = pair_tables(table, other, kinds)
            found[other.name] = TableResult(name=other.name, problem=pair if isinstance(pair, str) else "")
            if isinstance(pair, TablePair):
                self.pairs[other.name] = pair
        schemas = {target.schema.casefold() for _, target in wanted}
        # A table that is not compared is not too many.
        present = {target.fold() for _, target in named}
        for other in sink.tables:
            is_ours = other.name.schema.casefold() in schemas or other.name.fold() in sink.known
            if is_ours and other.name.fold() not in present and chosen.is_wanted(other.name):
                found[other.name] = TableResult(name=other.name, problem="upstream does not have the table")
        return found

    def _compare_all(self, main: Sides, results: dict[TableName, TableResult], finished: FinishedRanges) -> bool:
        with main.moment() as ts:
            is_exact = bool(ts) and main.upstream.kind is ServerKind.TIDB and not self._options.is_row_consistent
        if finished.is_behind(ts):
            self._watcher.say("the state file is of another checkpoint of the sink: its ranges are compared again")
        self._watcher.begin(sum(pair.upstream.rows for pair in self.pairs.values()))
        with Workers(self._options.jobs, self._open_sides) as workers:
            for name, pair in sorted(self.pairs.items()):
                for scope in ranges(pair, main, self._options.chunk_rows):
                    equal = finished.find(pair, scope, ts)
                    if equal is not None:
                        self._totals.skipped += 1
                        self._add(results[name], equal)
                    else:
                        workers.submit(_work(self, pair, scope, results[name], finished))
            workers.finish()
        return is_exact

    def compare(self, sides: Sides, pair: TablePair, scope: Scope, result: TableResult, finished: FinishedRanges) -> None:
        """Compare a range and note what comes out: the work of a thread."""
        left = max(0, self._options.most_differences - len(result.differences))
        found = TableComparison(pair, sides, left).compare(scope)
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


def _find(contents: Contents, wanted: TableName) -> SideTable | None:
    """Find a table without regard to case, as TiDB does; the exact spelling decides between namesakes."""
    near = [table for table in contents.tables if table.name.fold() == wanted.fold()]
    return next((table for table in near if table.name == wanted), near[0] if near else None)
