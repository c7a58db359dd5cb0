"""Performs the steps that the engine waits for: DDLs, saved progress, names, evictions. Segments are written in a lane (``lanes``)."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias, assert_never

from applier.coordinator.step import AskKeys, Evict, ExecuteDdl, ForgetRows, NeedNames, SaveProgress
from applier.ddl import DdlKind, DdlStatement, parse_ddl
from applier.ddl import policy as ddl_rule
from applier.ddl.copied_table import copied_table, refuse_other_columns, with_alters_of_copy
from applier.ddl.parser import parse
from applier.ddl.tree import AlterTableStatement
from applier.model.errors import ApplierError, UnknownOutcome
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.segment import after_ddl
from applier.replica.context import RunContext
from applier.replica.segment_writer import SegmentWriter
from applier.replica.sink_tables import row_keys
from applier.replica.state import ReplicaState
from applier.sinks.ledger_entry import DdlState
from applier.sinks.port import Sink
from applier.sinks.progress import ProgressCommit
from applier.telemetry.activity import DDL, WRITING
from applier.telemetry.failing import Side
from applier.telemetry.log_event import LogEvent

# --- cut over --------------------------------------------------------------------------------------------------------


def as_alter(ddl: DdlEvent, sink: Sink) -> DdlEvent:
    """Return a cut-over as the ALTER TABLE that it represents, and any other DDL as it is. NeedsOperator: the ledger does not say which.

    The copy's own statements are in the ledger as skipped, so a run that begins between them and the cut-over knows them.
    """
    if ddl.cut_over is None:
        return ddl
    copied = copied_table(ddl, sink.bookkeeping.statements())
    if copied.columns is not None:
        found = sink.describe([ddl.name])
        refuse_other_columns(ddl, copied, (column.name for table in found.values() for column in table.columns))
    return with_alters_of_copy(ddl, copied)


# --- room ------------------------------------------------------------------------------------------------------------
# Makes room for a table that leaves the selection by RENAME, where its new name is that of one that has left before.
#
# A log that upstream rotates: RENAME log TO log_old, a new log, DROP log_old, RENAME log TO log_old. The filter takes ``log`` alone. The
# sink keeps its rows as log_old, and the DROP was skipped with everything else about that name. So the second RENAME finds the first
# table. It is no table of upstream any more, and its rows were chosen: the sink keeps them under a name that says when the next one came.

LONGEST_NAME: Final = 64
Describe = Callable[[Collection[TableName]], Mapping[FoldedName, Any]]


def with_room(ddl: DdlEvent, known: Collection[FoldedName], describe: Describe) -> DdlEvent:
    """Return a RENAME out of the selection with what first renames the sink's tables of the new names.

    ``known``: the replica's own tables. One that it has not made stays, and the RENAME stops at it.
    """
    leaving = [move.after for move in ddl.moves if move.before not in {None, move.after} and move.after is not None and move.sink is None]
    statement = parse_ddl(ddl) if leaving and not ddl.left_out else None
    if statement is None or not _only_renames(ddl, statement):
        return ddl
    # Upstream's names; the sink's are in the statement, in the same order. A name that changes in case only is none that moves.
    moved = [move for move in ddl.moves if move.before != move.after]
    if len(moved) != len(statement.renames):
        return ddl
    taken = [
        new
        for move, (_, new) in zip(moved, statement.renames, strict=True)
        if move.sink is None and new.fold() in known and new.fold() not in {old.fold() for old, _ in statement.renames}
    ]
    present = describe(taken) if taken else {}
    aside = [(new, _aside(new, ddl)) for new in taken if new.fold() in present]
    if not aside:
        return ddl
    pairs = ", ".join(f"{_quoted(old)} TO {_quoted(new)}" for old, new in [*aside, *statement.renames])
    return replace(ddl, query=f"RENAME TABLE {pairs}")


def _only_renames(ddl: DdlEvent, statement: DdlStatement) -> bool:
    if statement.kind is DdlKind.RENAME_TABLE:
        return True
    node = parse(ddl.query).node
    return bool(statement.renames) and isinstance(node, AlterTableStatement) and len(node.clauses) == 1


def _aside(name: TableName, ddl: DdlEvent) -> TableName:
    end = f"_{ddl.commit_ts}"
    return TableName(name.schema, name.table[: LONGEST_NAME - len(end)] + end)


def _quoted(name: TableName) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in (name.schema, name.table))


# --- step runner -----------------------------------------------------------------------------------------------------


OtherStep: TypeAlias = AskKeys | Evict | ExecuteDdl | ForgetRows | NeedNames | SaveProgress


class StepRunner:
    """Performs steps of one run. Each method for a step returns why state must be reloaded, or None: the step was confirmed."""

    def __init__(self, run: RunContext, state: ReplicaState, writer: SegmentWriter) -> None:
        self._run, self._state, self._writer = run, state, writer

    def perform(self, step: OtherStep) -> Exception | None:
        """Perform ``step`` and confirm it to the coordinator. Return why state must be reloaded instead, if its outcome is unknown."""
        match step:
            case ExecuteDdl():
                return self._execute(step)
            case SaveProgress():
                return self.save(step)
            case ForgetRows():
                return self._forget(step)
            case NeedNames():
                self._state.coordinator.answer_names(step, self._run.components.sink.describe(step.tables))
            case AskKeys():
                sink, tables = self._run.components.sink, self._state.tables
                self._state.coordinator.answer_keys(step, row_keys(sink, tables, step.tables, by_table=step.by_table))
            case Evict():
                self._evict(step)
            case _:
                assert_never(step)
        return None

    def save(self, step: SaveProgress, *, is_last: bool = False) -> Exception | None:
        """Perform a step as ``perform`` does. ``is_last``: nothing more may be stored by this run for long."""
        state, watcher = self._state, self._run.watcher
        checkpoint_ts = state.progress.checkpoint_ts
        positions = state.to_store(step.positions, checkpoint_ts, is_last=is_last)
        if not positions and not step.rejected_events:
            # An idle feed comes here every few seconds: nothing new, so no transaction.
            state.coordinator.withdraw(step)
            return None
        commit = ProgressCommit(
            checkpoint_ts=checkpoint_ts,
            positions=positions,
            topic_ids=state.topics.ids,
            locations=state.locations.waiting,
        )
        # Rejected events are stored with the positions that pass them: an event is in the quarantine or read again, never
        # neither.
        quarantined = state.quarantine.quarantined(step.rejected_events, self._run.components.source.reader)
        with watcher.during(WRITING), watcher.tally.durations.timed("save"):
            outcome = self._writer.save(state.progress.fence, commit, quarantined)
        if (cause := self._state.read_back(outcome, commit)) is not None:
            return cause
        state.quarantine.note(outcome.quarantined, state.progress, watcher)
        state.coordinator.saved(step)
        return None

    def _forget(self, step: ForgetRows) -> Exception | None:
        state = self._state
        checkpoint_ts = state.progress.checkpoint_ts
        commit = ProgressCommit(checkpoint_ts=checkpoint_ts, positions=state.to_store(step.positions, checkpoint_ts, is_last=True))
        cause = state.read_back(self._writer.save(state.progress.fence, commit), commit)
        # Nothing has failed: the next cycle reloads, without a wait.
        state.recovery.reload_for(ApplierError("partitions may have changed: rows ahead of the checkpoint are written again"))
        return cause

    def _execute(self, step: ExecuteDdl) -> Exception | None:
        state, watcher, ddl = self._state, self._run.watcher, self._state.tables.unless_kept(self._dated(step.ddl))
        sink, fence = self._run.components.sink, state.progress.fence
        after = ProgressCommit(
            checkpoint_ts=ddl.commit_ts,
            positions=state.to_store(step.positions_done, ddl.commit_ts),
            topic_ids=state.topics.ids,
            source_state=self._run.components.state_at(after_ddl(ddl.commit_ts)),
        )
        try:
            is_skipped = state.quarantine.skips(ddl)
            if not is_skipped:
                ddl = as_alter(ddl, sink)
                is_skipped = ddl_rule.is_skipped(ddl, self._run.settings.ddl_policy)
            state.locations.move(ddl, is_applied=not is_skipped)
            with watcher.during(DDL, ddl.query), watcher.tally.durations.timed("ddl"):
                # A skipped DDL has no intent: nothing runs whose outcome could be unknown.
                if is_skipped:
                    after = replace(after, locations=state.locations.waiting)
                    sink.skip_ddl(fence, step.identity, ddl, after=after)
                else:
                    before = self._before(step)
                    ddl = with_room(ddl, state.progress.known_tables, sink.describe)
                    sink.run_ddl(fence, step.identity, self._run.components.source.resolved(ddl), before=before, after=after)
        except UnknownOutcome as error:
            # The intent may be written or not, the statement may run or not: a reload settles it from the ledger.
            return error
        except ApplierError as error:
            # The position of the DDL, and what names it in the ledger: the remedy's commands need both.
            error.facts = {"table": str(ddl.name), "commit_ts": ddl.commit_ts} | error.facts | step.position.facts
            raise
        # `before` holds the known tables, and a skipped DDL records none: it has touched nothing.
        state.progress = state.load(commit := after if is_skipped else after.including(before))
        state.locations.stored(commit.locations)
        # What the next segments are rendered from must be the catalogue as it is after this DDL (DESIGN.md 4, Align).
        state.tables.executed(replace(ddl, left_out=ddl.left_out or DdlState.SKIPPED) if is_skipped else ddl)
        watcher.tally.settled_ddl(is_skipped=is_skipped)
        event = LogEvent.DDL_SKIPPED if is_skipped else LogEvent.DDL_APPLIED
        watcher.note(event, commit_ts=ddl.commit_ts, table=str(ddl.name), query=ddl.query)
        state.coordinator.executed(step)
        state.recovery.moved()
        watcher.worked(Side.REST)
        return None

    def _dated(self, ddl: DdlEvent) -> DdlEvent:
        """Say when a DDL ran upstream, if its event does not: it runs again at that time."""
        return ddl if ddl.time_ms is not None else replace(ddl, time_ms=self._run.components.source.timeline.time_ms(ddl.commit_ts))

    def _before(self, step: ExecuteDdl) -> ProgressCommit:
        """Return the progress that is committed with the intent: the checkpoint moves to the DDL's ts even if no row came before it."""
        return ProgressCommit(
            checkpoint_ts=step.ddl.commit_ts,
            positions=self._state.to_store(step.positions, step.ddl.commit_ts),
            known_tables=self._state.tables.new_with_ddl(step.ddl, self._state.progress),
            topic_ids=self._state.topics.ids,
            locations=self._state.locations.waiting,
            # With the DDL: from here on the ledger settles it, whatever happens, and another server must not show it again.
            source_state=self._run.components.state_at(after_ddl(step.ddl.commit_ts)),
        )

    def _evict(self, step: Evict) -> None:
        # Release before the coordinator plans again: its budget of cached bytes counts them as free from then on.
        self._run.components.runner.release(step.ranges)
        for range_id in step.ranges:
            self._state.contents.pop(range_id, None)
        self._state.coordinator.evicted(step)
