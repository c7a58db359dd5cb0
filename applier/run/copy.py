"""The initial copy of a new replica: plans it, copies upstream's rows by tasks, and hands over to the stream.

Theory in ``applier.copy``; what is stored in ``sinks.bookkeeping.copy_table``. In short: the definitions are read before the start P0 is
taken, the tables are made, tables without a key are copied in the view at P0, then all others in chunks. When the last chunk is in the
sink, the replica begins at P0 as if a dump of P0 had been loaded, and is consistent when its checkpoint has reached the end of the copy.

A run that dies while tables are made begins again: it drops the tables that it had made. Later, what is done stays done.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from applier.config import Config
from applier.copy.planner import CopyPlanner, PlannedTask
from applier.copy.port import ChunkWriter, CopyFence, CopyTable, CopyUpstream, StartView, UpstreamObjects
from applier.dump.definitions import Definitions
from applier.dump.statements import Piece, PieceKind
from applier.model.errors import (
    ApplierError,
    ConfigError,
    DefinitionChanged,
    InvariantViolation,
    JobAborted,
    NeedsOperator,
    Remedy,
    RetryableSinkError,
)
from applier.model.events import TableName
from applier.model.position import Ts
from applier.replica.context import LOOK_S, Components, Lane
from applier.replica.recovery import is_transient
from applier.replica.shutdown import Shutdown
from applier.selection import TableSelection
from applier.sinks.bookkeeping.copy_table import VIEW, PlannedTable
from applier.sinks.copy_state import CopyRow, CopyState
from applier.sinks.dump_loader import DumpLoader
from applier.sinks.failpoint import reach
from applier.sinks.loaded_dump import COPIED, LoadedDump
from applier.sources.factory import kit_of
from applier.sources.kit import SourceKit
from applier.tasks.copy_chunk import ChunkOutcome, CopyTask, CopyWork
from applier.telemetry.activity import COPYING
from applier.telemetry.log_event import LogEvent
from applier.telemetry.observer import Watcher
from applier.telemetry.wording import named_some, operator

STARTS: Final = 5
"""Attempts at a start during which no DDL changes what is copied."""
ATTEMPTS: Final = 8
"""Of one chunk, and of a job in a row. What fails longer than that ends the run; the next one continues."""
LONGEST_WAIT_S: Final = 5.0
CHUNKS_PER_TASK: Final = 2
"""Chunks that one task of a job copies: more of them would let a slow task hold back the next job for longer."""
BUSY: Final = Remedy("copy.hold-ddls", "Let no other program change tables of upstream while the copy begins, and start it again")
IN_THE_WAY: Final = Remedy(
    "copy.replace-tables",
    "Rename them if their rows matter, and start again. `applier copy --replace` drops them first: their rows are lost",
)
BEGUN: Final = Remedy(
    "copy.reset-replica",
    "To copy it again from nothing: `applier replicas reset`, then `applier copy --replace`. Its tables are dropped then",
)
NOT_FOR_TOPICS: Final = Remedy("copy.load-dump-of-topics", "Load a dump of upstream: `applier load DUMP`")
OTHER_START: Final = Remedy("copy.set-source-start", 'Set source.start = "copy", or remove it')
DISTINCT: Final = Remedy(
    "copy.route-to-distinct-names", 'Give each table a name of its own: use {schema} and {table} in the "to" of source.route'
)

Copying = Callable[[Components, Watcher], None]
"""Copies upstream into the sink of a new replica, which the run owns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyOptions:
    """What the command line says. ``is_asked``: ``applier copy``; else the settings decide. ``again``: begin it again."""

    is_asked: bool = False
    replace: bool = False
    again: bool = False


AS_CONFIGURED: Final = CopyOptions()


def copying_for(config: Config, options: CopyOptions, shutdown: Shutdown) -> Copying | None:
    """Return what copies upstream first; None: the replica does not begin with a copy. ConfigError: its source cannot be copied."""
    kit = kit_of(config.source_settings())
    if not (options.is_asked or kit.begins_with_copy):
        return None
    upstream = kit.copy_upstream(config.source.selection())
    if upstream is None:
        raise ConfigError(f"{kit.server} does not have upstream's rows to copy", remedy=NOT_FOR_TOPICS)
    if kit.names_start:
        raise ConfigError("source.start names a position, and a copy begins at its own", remedy=OTHER_START)
    writer = config.sink.kit.chunk_writer(config.sink_settings())
    if writer is None:
        raise ConfigError("a copy cannot be written into this sink", remedy=NOT_FOR_TOPICS)
    setup = _Setup(
        kit=kit,
        upstream=upstream,
        selection=config.source.selection(),
        policies=config.ddl.policies,
        writer=writer,
        loader=config.sink.kit.loader(config.sink_settings()),
        tasks=1 if config.sink.kit.local else config.spark.writers,
        options=options,
    )
    return lambda components, watcher: _InitialCopy(components, setup, watcher, shutdown).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setup:
    """What a copy works with. ``tasks``: how many read and write at once."""

    kit: SourceKit
    upstream: CopyUpstream
    selection: TableSelection
    policies: Mapping[str, str]
    writer: ChunkWriter
    loader: DumpLoader
    tasks: int
    options: CopyOptions


class _InitialCopy:
    """One copy, or the rest of one."""

    def __init__(self, components: Components, setup: _Setup, watcher: Watcher, shutdown: Shutdown) -> None:
        self._components, self._setup, self._watcher, self._shutdown = components, setup, watcher, shutdown
        self._store = components.sink.bookkeeping.copy

    def run(self) -> None:
        """Copy what is not copied yet. NeedsOperator, and the errors of source and sink; what is done stays done."""
        sink, options = self._components.sink, self._setup.options
        row = self._store.read()
        if sink.load() is not None:
            # The settings say how the replica begins, and it has begun.
            if options.again or options.replace:
                raise NeedsOperator("the replica has begun: it is not copied again", remedy=BEGUN)
            return
        loaded = sink.bookkeeping.loaded_dump.read()
        if row is None and loaded is not None and not loaded.is_copy:
            return  # it begins there
        if row is not None and row.state is CopyState.READ and not options.again:
            return  # its last run died before the stream began
        self._setup.writer.require()
        self._watcher.enter(COPYING)
        with self._setup.upstream as upstream:
            may_continue = row is not None and row.state is CopyState.COPYING and not options.again
            for _ in range(STARTS):
                tables = self._taken_up(upstream, row) if may_continue and row is not None else self._begin(upstream)
                may_continue = False
                if self._copy(upstream, tables):
                    return
        raise NeedsOperator("upstream renames or changes tables while they are copied", remedy=BUSY)

    # --- begin -----------------------------------------------------------------------------------------------------

    def _begin(self, upstream: CopyUpstream) -> Sequence[CopyTable]:
        upstream.require()
        for _ in range(STARTS):
            objects = upstream.objects()
            keyless = [table for table in objects.tables if not table.key]
            with upstream.open_view([table.name for table in keyless]) as view:
                # What was read before the start holds at the start, unless a DDL has come between: then the second reading differs.
                if _definitions(upstream.objects()) != _definitions(objects):
                    continue
                self._copy_keyless(keyless, view, self._make(objects, view))
            return objects.tables
        raise NeedsOperator("upstream's definitions change faster than a copy can begin", remedy=BUSY)

    def _make(self, objects: UpstreamObjects, view: StartView) -> CopyFence:
        """Make the tables and views in the sink, and store the plan; return the fence of its chunks."""
        bookkeeping, start = self._components.sink.bookkeeping, view.start
        planned = self._planned(objects)
        self._make_room(planned)
        bookkeeping.loaded_dump.begin(LoadedDump(start_ts=start.start_ts, directory=start.told, loader=COPIED, loaded_by=operator()))
        fence = self._store.begin(start.start_ts, objects.left_out, planned)
        definitions = Definitions(
            sink=self._components.sink,
            selection=self._setup.selection,
            policies=self._setup.policies,
            start_ts=start.start_ts,
            zone="+00:00",
            to_log=self._setup.kit.dumped_ddl,
        )
        for schema, text in objects.schemas.items():
            definitions.make(Piece(PieceKind.SCHEMA, _bytes(text), schema), schema)
        for table in objects.tables:
            self._check_running()
            definitions.make(Piece(PieceKind.TABLE, _bytes(table.definition), table.name.schema, table.name.table), table.name.schema)
        for name, text in objects.views.items():
            definitions.make(Piece(PieceKind.VIEW, _bytes(text), name.schema, name.table), name.schema)
        definitions.finish()
        reach("copy.tables_made")
        self._watcher.note(
            LogEvent.COPY_BEGAN,
            start_ts=start.start_ts,
            tables=len(objects.tables),
            rows=sum(table.rows for table in objects.tables),
            left_out=", ".join(f"{kind}: {count}" for kind, count in sorted(objects.left_out.items()) if count),
        )
        return fence

    def _planned(self, objects: UpstreamObjects) -> list[PlannedTable]:
        """Return tables and views under the sink's names. ConfigError: two of them would be one."""
        name_of = self._setup.selection.name
        tables = [PlannedTable(table.name, name_of(table.name), table.digest, table.rows, table.size_bytes) for table in objects.tables]
        planned = [*tables, *(PlannedTable(name, name_of(name), VIEW) for name in objects.views)]
        twice = [name for name, times in Counter(each.target.fold() for each in planned).items() if times > 1]
        if twice:
            raise ConfigError("two tables of upstream would be one in the sink", remedy=DISTINCT, table=str(twice[0]))
        return planned

    def _make_room(self, planned: Sequence[PlannedTable]) -> None:
        """Drop what an earlier attempt has made. NeedsOperator: there are other tables, which may not be dropped."""
        loader = self._setup.loader
        own = list(self._store.tables())
        found = set(loader.present([each.target for each in planned])) - {each.target for each in own}
        if found and not self._setup.options.replace:
            raise NeedsOperator("the sink has tables already that the copy would make", remedy=IN_THE_WAY, tables=named_some(sorted(found)))
        gone = {each.target: each for each in [*own, *(each for each in planned if each.target in found)]}.values()
        loader.drop([each.target for each in gone if not each.is_view], [each.target for each in gone if each.is_view])

    def _copy_keyless(self, tables: Sequence[CopyTable], view: StartView, fence: CopyFence) -> None:
        """Copy tables without a key in the view at the start: the stream continues exactly there."""
        planner = CopyPlanner(tables, {})
        while walk := planner.walk(1):
            self._check_running()
            self._store.plan([(walk.table, planner.bounded(walk, None))])
            (task,) = planner.take(1)
            with view.read(task.table) as rows:
                target = self._setup.selection.name(task.table.name)
                done = self._setup.writer.write(fence, task.table, target, task.chunk, rows.blocks(), rows.finish)
            planner.done(task, done)
            reach("copy.after_keyless")
            self._watcher.changed()

    # --- copy ------------------------------------------------------------------------------------------------------

    def _taken_up(self, upstream: CopyUpstream, row: CopyRow) -> Sequence[CopyTable]:
        """Return the tables of an earlier run that are still to be copied. DefinitionChanged: a DDL has changed one meanwhile."""
        self._watcher.note(LogEvent.COPY_RESUMED, start_ts=row.start_ts)
        there = {table.name: table for table in upstream.objects().tables}
        sums = self._store.sums()
        found = list[CopyTable]()
        for each in self._store.tables():
            if each.is_view:
                continue
            table = there.get(each.name)
            is_whole = each.name in sums and sums[each.name].is_whole
            if table is not None and table.digest == each.digest:
                found.append(table)
            elif not is_whole:  # else its DDL comes with the stream
                raise DefinitionChanged("upstream has changed a table before all of its rows were copied", table=str(each.name))
        return found

    def _copy(self, upstream: CopyUpstream, tables: Sequence[CopyTable]) -> bool:
        """Copy what is not done; return whether it is right. It is not if rows may have moved to another table meanwhile."""
        fence = self._store.copying()
        chunks = self._store.chunks()
        # A table that is whole, and has changed since, is not asked for again; what its chunks have seen counts.
        planner = CopyPlanner(tables, {table.name: chunks.get(table.name, ()) for table in tables})
        high_ts = max([planner.high_ts, *(done.high_ts for planned in chunks.values() for _, done in planned if done is not None)])
        rounds = _Rounds(self._components, CopyWork(fence, upstream.reader, self._setup.writer), self._watcher, self._check_running)
        with rounds:
            while not planner.is_done:
                self._plan(upstream, planner)
                tasks = planner.take(self._setup.tasks * CHUNKS_PER_TASK)
                rounds.run(planner, self._dealt(tasks))
                self._watcher.note(
                    LogEvent.COPY_PROGRESS,
                    tables_done=planner.tables_done,
                    tables=len(tables),
                    rows=planner.rows,
                    bytes=planner.size_bytes,
                )
                reach("copy.after_round")
        start_ts = self._started_at()
        upto_ts = max(start_ts, high_ts, planner.high_ts)
        if moved := upstream.moved([each.name for each in self._store.tables()], start_ts, upto_ts):
            self._watcher.note(LogEvent.COPY_REPEATED, tables=named_some(sorted(map(str, moved))))
            return False
        reach("copy.before_end")
        self._store.end(upto_ts)
        reach("copy.after_end")
        self._watcher.note(LogEvent.COPY_READ, start_ts=start_ts, upto_ts=upto_ts, rows=planner.rows, bytes=planner.size_bytes)
        return True

    def _started_at(self) -> Ts:
        row = self._store.read()
        if row is None:
            raise InvariantViolation("a copy ends that is not stored")
        return row.start_ts

    def _plan(self, upstream: CopyUpstream, planner: CopyPlanner) -> None:
        """Find boundaries for the next round, and store its chunks before any task gets one."""
        found = list[PlannedTask]()
        while walk := planner.walk(self._setup.tasks * CHUNKS_PER_TASK):
            self._check_running()
            upper = upstream.next_bound(walk.table, walk.lower, walk.rows) if walk.table.key else None
            found.append(PlannedTask(walk.table, planner.bounded(walk, upper)))
        self._store.plan([(task.table, task.chunk) for task in found])

    def _dealt(self, tasks: Sequence[PlannedTask]) -> list[list[CopyTask]]:
        """Deal chunks to tasks in turn: neighbours of one table go to different tasks, large and small tables mix."""
        whole = [CopyTask(task, self._setup.selection.name(task.table.name)) for task in tasks]
        return [group for first in range(self._setup.tasks) if (group := whole[first :: self._setup.tasks])]

    def _check_running(self) -> None:
        """Raise why this run must stop: another one owns the replica, or a shutdown was requested."""
        error = self._components.sink.heartbeat_lost()
        if error is not None:
            raise error
        if self._shutdown.is_requested:
            raise self._shutdown.error or RetryableSinkError("the copy ends early: a shutdown was requested. The next start continues it")
        self._watcher.changed()


class _Rounds:
    """Runs jobs of chunks, one at a time, in a thread of their own: in the main thread PySpark would take Ctrl-C for itself."""

    def __init__(self, components: Components, work: CopyWork, watcher: Watcher, check: Callable[[], None]) -> None:
        self._runner, self._work, self._watcher, self._check = components.runner, work, watcher, check
        self._lane = Lane[Sequence[ChunkOutcome] | ApplierError]("applier-copy")
        self._failed = Counter[tuple[TableName, int]]()
        self._failed_jobs = 0

    def run(self, planner: CopyPlanner, groups: Sequence[Sequence[CopyTask]]) -> None:
        """Copy the chunks of a round; what has failed, and may succeed, is given out again. The first error that will not is raised."""
        given = {(task.planned.table.name, task.planned.chunk.number): task.planned for group in groups for task in group}
        self._lane.start(lambda: self._runner.copy(self._work, groups))
        while not self._lane.is_done:
            self._check()
            time.sleep(LOOK_S)
        outcomes = self._lane.result()
        errors = list[ApplierError]()
        if isinstance(outcomes, ApplierError):
            self._failed_jobs += 1
            if self._failed_jobs >= ATTEMPTS or not isinstance(outcomes, JobAborted):
                raise outcomes
            errors, outcomes = [outcomes], []
        else:
            self._failed_jobs = 0
        for table, number, done, error in outcomes:
            task = given.pop((table, number))
            if done is not None:
                planner.done(task, done)
                continue
            given[table, number] = task
            errors.append(self._retryable(task, error))
        for task in given.values():
            planner.failed(task)
        if errors:
            self._wait(errors[0])

    def _retryable(self, task: PlannedTask, error: ApplierError | None) -> ApplierError:
        """Count the failure of a chunk, and return its error. Raise one that another attempt cannot help."""
        if error is None:
            raise InvariantViolation("a chunk ended without rows and without an error")
        error.facts.setdefault("table", str(task.table.name))
        key = task.table.name, task.chunk.number
        self._failed[key] += 1
        if not is_transient(error) or self._failed[key] >= ATTEMPTS:
            raise error
        return error

    def _wait(self, cause: ApplierError) -> None:
        wait_s = random.uniform(0, min(0.1 * 2 ** max([*self._failed.values(), self._failed_jobs]), LONGEST_WAIT_S))  # noqa: S311 - jitter
        self._watcher.note(LogEvent.RETRY, reason=cause.message, wait_s=round(wait_s, 2))
        end_s = time.monotonic() + wait_s
        while time.monotonic() < end_s:
            self._check()
            time.sleep(min(LOOK_S, wait_s))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lane.close()


def _definitions(objects: UpstreamObjects) -> tuple[object, ...]:
    return {table.name: table.digest for table in objects.tables}, dict(objects.views), dict(objects.schemas)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
