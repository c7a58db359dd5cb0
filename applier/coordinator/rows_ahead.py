"""Rows ahead of W (``consistency = "row"``, DESIGN.md 8): each stream's rows are written up to its own promise, by parallel writers.

Theory. A row may be written ahead if nothing that is still to come belongs before it. Its stream has promised more, so no row of the stream
does; the row's key has no other stream (``PartitionChange``, the declared dispatcher); its table has one unique key, which compares bytes
(``RowTables``), so no row of another key does; and the DDLs of all topics are known up to there, so no DDL does. ``applied_ts`` of a
stream says up to where rows of such tables are in the sink. A segment excludes them, and writes all others.

After a change of the partition set a key may have two streams. An earlier version from one would be written over a later one from the
other, which counts as written; and a replay of the later one may be below A by then. So after that, no row counts as written
(``ForgetRows``): those since A are written again. The first sign of a change may be such an earlier version: a replay below
its stream's promise (``_may_step_back``).

To write everything above the checkpoint again, in order of W, is always right as well: that is what ``consistency = "transaction"`` does
after a switch. So the operator can always switch after a stop.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from applier.coordinator.barriers import Barriers
from applier.coordinator.cache import Cache, OpenRange
from applier.coordinator.policy import RowPolicy
from applier.coordinator.starting_point import StartingPoint
from applier.coordinator.step import ApplyRows, ApplySegment, AskKeys, ForgetRows, KeyAnswer
from applier.coordinator.stream_state import PlacedDdl, StreamState
from applier.coordinator.streams import Streams
from applier.coordinator.window import Window
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import FoldedName
from applier.model.failure import FailureKind
from applier.model.position import NO_TS, Offset, RecordPosition, Stream, Ts
from applier.model.range_report import RangeId, RangeReport, TableRows
from applier.model.segment import RowsWritten, has_reached, is_beyond, just_before, overlaps_segment, passed_with, row_limit

# --- partition change ------------------------------------------------------------------------------------------------
# Whether the versions of one row may lie in two streams: after a change of the partition set, until W has passed it.
#
# A greater number of partitions sends rows to other partitions from some moment on. The old partition may still hold versions that were not
# applied, so nothing may be written ahead of W. Which rows were written before the change no timestamp says, but their place does: they lie
# below the ends that were listed with the new partition. When all of it is read, the greatest timestamp in it is known, and W must pass it.
# A producer with several nodes takes note of new partitions within ten minutes, node by node: so much later W must be.
#
# An admin event announces a change, also one among partitions that are there already. Until it is over, no ``applied_ts`` is stored: the
# next run may not read that event again, and writes everything since the checkpoint in order of W.
#
# A new replica sees no change, but the topic may hold one. A resolved event goes to all partitions that there are, so partitions that begin
# with the same one were always there together; unless the producer was at this one before and after a change. Then each of the older
# partitions has it twice, or an older one after it: such an event counts as a change. It may be read after rows were written ahead, but
# before W passes any row that the older partition lacks, since the promise that lets W pass comes after it. Of rows before the first
# promise nothing says this, so W must pass them first. And until W is beyond all that the topic held when it was first read, rows are
# written ahead, but the next run does not rely on it (``is_proven``).
#
# Where partitions do not begin so, what was listed counts as written before a change: a promise that is merely late looks like a growth.


class PartitionChange:
    """The last change. ``members``: streams that were there before it, or that W has passed since."""

    __slots__ = (
        "_checks_beginning",
        "_ends",
        "_is_announced",
        "_is_new",
        "_is_watched",
        "_joining",
        "_members",
        "_settle_span",
        "_top",
        "_until_ts",
    )

    def __init__(self, members: Iterable[Stream], policy: RowPolicy, *, is_new: bool) -> None:
        """``is_new``: the replica has no position yet, so everything since the beginning is read."""
        self._members, self._is_new = set(members), is_new
        self._settle_span, self._checks_beginning = policy.settle_span, policy.checks_beginning
        self._joining: set[Stream] = set()
        self._is_announced = self._is_watched = False
        self._ends: dict[Stream, Offset] | None = None
        self._until_ts: Ts | None = None
        self._top = NO_TS

    @property
    def is_over(self) -> bool:
        """Whether all versions of a row come in one stream."""
        return not self._joining and not self._is_announced and bool(self._members)

    @property
    def is_proven(self) -> bool:
        """Whether nothing that is still to come can show that a key had two streams."""
        return self.is_over and not self._is_watched

    def saw(self, ts: Ts) -> None:
        """Record the timestamp of a row or of a promise that was read."""
        self._top = max(self._top, ts)

    def announced(self) -> None:
        """Record an admin event: after it, keys may have other streams. Its copies in partitions that lag count as well."""
        self._is_announced, self._is_watched = True, False
        self._ends = self._until_ts = None

    def looked(self, states: Iterable[StreamState]) -> bool:
        """Record the streams that are read now. Return whether one of them is new, or shows a change."""
        states = tuple(states)
        new = {state.stream for state in states} - self._members - self._joining
        if new:
            self._joining |= new
            self._is_watched, self._ends, self._until_ts = False, None, None
        if self._is_watched and any(state.repeats_beginning for state in states):
            self.announced()
            return True
        return bool(new)

    def settle(self, states: Iterable[StreamState], checkpoint_ts: Ts) -> bool:
        """Check whether the change has ended. Return True when it has just ended."""
        states = tuple(states)
        if self._is_watched:
            self._is_watched = not self._is_past(states, checkpoint_ts)
            return False
        if not (self._joining or self._is_announced) or not self._has_ended(states, checkpoint_ts):
            return False
        self._members |= self._joining
        self._joining.clear()
        self._is_announced = False
        return True

    def _has_ended(self, states: tuple[StreamState, ...], checkpoint_ts: Ts) -> bool:
        if self._members or self._is_announced or self._ends is not None:
            return self._is_past(states, checkpoint_ts)
        if self._is_new and not self._checks_beginning:
            return True
        born = _born_together(states) if self._is_new else False
        if born is None or (born and not all(_has_passed_unpromised(state, checkpoint_ts) for state in states)):
            return False
        self._is_watched = born
        # Also where the partitions begin together: from here on their ends are known.
        return self._is_past(states, checkpoint_ts) or born

    def _is_past(self, states: tuple[StreamState, ...], checkpoint_ts: Ts) -> bool:
        if self._ends is None:
            self._ends = {state.stream: state.end for state in states}
        if self._until_ts is None:
            if any(state.prefix < self._ends.get(state.stream, state.prefix) for state in states):
                return False
            # Also where no change was seen: it may have happened a minute before this run.
            self._until_ts = Ts(self._top + self._settle_span)
        # Beyond it: rows at exactly A may be applied again, also rows that were sent before the change.
        return is_beyond(checkpoint_ts, self._until_ts)


def _has_passed_unpromised(state: StreamState, checkpoint_ts: Ts) -> bool:
    """Whether W has passed the rows that came before the first promise: a producer that began again at it may have sent them before."""
    return not state.unpromised_ts or is_beyond(checkpoint_ts, state.unpromised_ts)


def _born_together(states: tuple[StreamState, ...]) -> bool | None:
    """Whether the partitions of each topic begin with the same resolved event; None: not all of them were read so far."""
    if any(not state.is_from_beginning for state in states):
        return False
    if any(not state.born_ts for state in states):
        return None
    if any(state.repeats_beginning for state in states):
        return False
    topics: dict[str, Ts] = {}
    return all(topics.setdefault(state.stream.topic, state.born_ts) == state.born_ts for state in states)


# --- row tables ------------------------------------------------------------------------------------------------------
# Which tables' rows may be written ahead of W, and which rows of them must wait.
#
# A table qualifies if the sink can take its rows one by one, in any order of keys: the caller answers that from the sink's catalogue
# (``AskKeys``). Rows that came in another form than the sink's key (stale flags), placeholders, and rows of tables that a write ahead has
# refused make their stream wait: what is after them is not passed, so ``applied_ts`` never lies about a row.

Form = tuple[tuple[str, ...] | None, tuple[str, ...]]


class RowTables:
    """The tables' answers and states. ``stored``: tables that the sink's progress calls ahead, ``top_ts``: its greatest applied_ts."""

    def __init__(self, stored: Iterable[FoldedName], top_ts: Ts, *, by_table: bool) -> None:
        self._keys: dict[FoldedName, tuple[str, ...] | None] = {}
        self._forms: dict[FoldedName, Form] = {}
        self._blocked: set[FoldedName] = set()
        self._homes: dict[FoldedName, Stream] = {}
        self._stored, self._start_ts, self._by_table = set(stored), top_ts, by_table
        # Up to where a table's rows may lie in the sink ahead of the checkpoint, and up to where they lie behind applied_ts without it.
        self._written = dict.fromkeys(self._stored, top_ts)
        self._late: dict[FoldedName, Ts] = {}

    def knows(self, name: FoldedName) -> bool:
        """Whether the caller has answered for a table."""
        return name in self._keys

    def learn(self, keys: Mapping[FoldedName, KeyAnswer]) -> None:
        """Record the answer: the key of each table that qualifies, None for one that does not."""
        for name, key in keys.items():
            self._keys[name] = key
            if name not in self._stored:
                # Its rows below applied_ts of an earlier run may be missing: the settings, or the sink's indexes, were others.
                self._late[name] = max(self._late.get(name, NO_TS), self._start_ts)

    def is_ahead(self, name: FoldedName, checkpoint_ts: Ts) -> bool:
        """Whether a table's rows up to their stream's applied_ts are in the sink."""
        return self._keys.get(name) is not None and has_reached(checkpoint_ts, self._late.get(name, NO_TS))

    def ahead(self, checkpoint_ts: Ts) -> frozenset[FoldedName]:
        """Name all tables that are ahead."""
        return frozenset(name for name in self._keys if self.is_ahead(name, checkpoint_ts))

    def changes(self, names: Iterable[FoldedName], checkpoint_ts: Ts) -> dict[FoldedName, bool]:
        """Return the states of these tables that differ from the stored ones."""
        found = {name: self.is_ahead(name, checkpoint_ts) for name in names}
        return {name: is_ahead for name, is_ahead in found.items() if is_ahead is not (name in self._stored)}

    def must_wait(self, rows: TableRows) -> bool:
        """Whether rows of a table that is ahead stop their stream."""
        name = rows.name.fold()
        form = rows.handle_key, rows.bytes_key
        return (
            name in self._blocked
            or bool(rows.placeholders)
            or rows.handle_key != self._keys[name]
            or self._forms.setdefault(name, form) != form
        )

    def check_home(self, rows: TableRows) -> None:
        """Check that a table comes from one stream, where the dispatcher promises it. NeedsOperator."""
        name = rows.name.fold()
        if not self._by_table or rows.stream is None:
            return
        home = self._homes.setdefault(name, rows.stream)
        if home != rows.stream:
            raise NeedsOperator(
                "rows of one table come in two partitions, although the declared dispatcher is table",
                remedy=Remedy(
                    "coordinator.set-source-dispatcher",
                    "Set source.dispatcher as the changefeed has it; for any but table and index-value, "
                    'set sink.consistency = "transaction"',
                ),
                kind=FailureKind.DISPATCHER,
                table=str(rows.name),
                topic=rows.stream.topic,
                partition=rows.stream.partition,
                offset=rows.first_offset,
                commit_ts=rows.min_ts,
                other_partition=str(home),
            )

    def block(self, name: FoldedName) -> None:
        """Make a table's rows wait for W from now on: they were refused when written ahead."""
        self._blocked.add(name)

    def written(self, names: Iterable[FoldedName], upto_ts: Ts, changes: Mapping[FoldedName, bool]) -> None:
        """Record rows of these tables as durable up to a ts, and ``changes`` as stored."""
        for name in names:
            self._written[name] = max(self._written.get(name, NO_TS), upto_ts)
        for name, is_ahead in changes.items():
            (self._stored.add if is_ahead else self._stored.discard)(name)

    def passed(self, upto_ts: Ts, checkpoint_ts: Ts) -> None:
        """Extend the wait of tables to ``upto_ts``: streams may have passed rows of them."""
        for name in [name for name in self._late if not self.is_ahead(name, checkpoint_ts)]:
            self._late[name] = max(self._late[name], upto_ts)

    def moved(self) -> None:
        """Record that partitions have changed: a table may come from another stream than before."""
        self._homes.clear()

    def was_overtaken(self, touches: frozenset[FoldedName] | None, ts: Ts) -> bool:
        """Whether rows above ``ts`` were written of a table that a DDL at ``ts`` touches."""
        return any(is_beyond(upto, ts) for name, upto in self._written.items() if touches is None or name.is_covered(touches))

    def changed(self, touches: frozenset[FoldedName] | None, top_ts: Ts) -> None:
        """Ask again for tables that a DDL has changed. What they hold below ``top_ts``, the greatest applied_ts, may have waited so far."""
        for name in [name for name in self._keys if touches is None or name.is_covered(touches)]:
            del self._keys[name]
            self._forms.pop(name, None)
            self._blocked.discard(name)
            self._late[name] = max(self._late.get(name, NO_TS), top_ts)


# --- rows ahead ------------------------------------------------------------------------------------------------------


TO_TRANSACTIONS = 'sink.consistency = "transaction": it writes everything since the checkpoint again, in order'


@dataclass(frozen=True, slots=True)
class _Candidate:
    """The rows of one stream that may be written: its reports and their tables between two commit_ts."""

    after_ts: Ts
    upto_ts: Ts
    reports: list[RangeReport]

    def tables(self, report: RangeReport) -> list[TableRows]:
        """Return the tables of a report that may have rows in it."""
        return [table for table in report.tables if overlaps_segment(table.min_ts, table.max_ts, self.after_ts, self.upto_ts)]

    def until(self, upto_ts: Ts) -> "_Candidate":
        """Return the part up to a commit_ts."""
        upto_ts = min(self.upto_ts, upto_ts)
        return _Candidate(
            self.after_ts,
            upto_ts,
            [report for report in self.reports if overlaps_segment(report.min_ts, report.max_ts, self.after_ts, upto_ts)],
        )


class RowsInOrder:
    """``consistency = "transaction"``: no row is written ahead of W. It asks for no step, so none is confirmed to it."""

    cuts_ahead = True
    watches_keys = False

    def report(self, report: RangeReport, ddls: Iterable[PlacedDdl]) -> None:
        """Accept any range."""

    def next(self, window: Window) -> None:
        """Return None."""
        del window

    def without_written(self, step: ApplySegment) -> ApplySegment:
        """Return the segment as it is."""
        return step

    def changed(self, touches: frozenset[FoldedName] | None) -> None:
        """Ignore a DDL."""

    def moved(self) -> None:
        """Ignore the checkpoint."""

    def written(self, step: ApplyRows, checkpoint_ts: Ts) -> None:
        """Not called, nor are the next two."""

    def refused(self, name: FoldedName) -> None:
        """See ``RowsAhead``."""

    def answer(self, step: AskKeys, keys: Mapping[FoldedName, KeyAnswer]) -> None:
        """See ``RowsAhead``."""


class RowsAhead:
    """Chooses the rows that are written next, and remembers which ones were."""

    cuts_ahead = False
    """A segment is not prepared ahead of rows that are written meanwhile: what was rendered before them would overwrite them."""

    def __init__(self, start: StartingPoint, policy: RowPolicy, streams: Streams, cache: Cache, barriers: Barriers) -> None:
        self._policy, self._streams, self._cache, self._barriers = policy, streams, cache, barriers
        # A position may be older than the checkpoint, which says the rest.
        implied_ts = passed_with(start.checkpoint_ts)
        applied = {stream: max(position.applied_ts, implied_ts) for stream, position in start.positions.items() if position.applied_ts}
        # Without a table that is ahead: written before the set of partitions was proven (``PartitionChange``), or there was none.
        if policy.checks_beginning and not start.ahead_tables:
            applied = {}
        self._applied = streams.applied = applied
        self._change = PartitionChange(applied, policy, is_new=not start.positions)
        top_ts = max(applied.values(), default=NO_TS)
        self.tables = RowTables(start.ahead_tables, top_ts, by_table=policy.by_table)
        self._must_move = self._has_changed = False
        # To look for such updates costs a little per row.
        self.watches_keys = not policy.by_table

    # --- what was read ---------------------------------------------------------------------------------------------------

    def report(self, report: RangeReport, ddls: Iterable[PlacedDdl]) -> None:
        """Examine a range with its new DDLs.

        NeedsOperator at an update that has changed its key, where versions of the old key come in another stream; and at a DDL that came
        after rows of its tables were written ahead of it, since its topic does not have it in all partitions.
        """
        self._check_ddls(report.range.stream, ddls)
        self._change.saw(max(report.max_ts, report.resolved_ts))
        if report.partitions:
            self._change.announced()
            self._partitions_changed()
        changed = report.changed_key
        if changed is not None and not self._policy.by_table:
            raise NeedsOperator(
                'an update has changed its key in one event: with the dispatcher index-value, consistency = "row" cannot order it',
                remedy=Remedy(
                    "coordinator.stop-raw-change-events",
                    f"Set output-raw-change-event = false in the changefeed. For what the topic holds already, set {TO_TRANSACTIONS}",
                ),
                kind=FailureKind.RAW_KEY_CHANGE,
                table=str(changed.table),
                commit_ts=changed.commit_ts,
                **RecordPosition(report.range.stream, changed.offset).facts,
            )

    def _check_ddls(self, stream: Stream, ddls: Iterable[PlacedDdl]) -> None:
        for offset, key in ddls:
            if self.tables.was_overtaken(key.touches, key.ts):
                raise NeedsOperator(
                    "a DDL came after later rows were written ahead: it is not in all partitions of its topic",
                    remedy=Remedy("coordinator.write-transactions", f"Set {TO_TRANSACTIONS}"),
                    kind=FailureKind.OVERTAKEN_DDL,
                    table=str(key.name),
                    commit_ts=key.ts,
                    **RecordPosition(stream, offset).facts,
                )

    def _partitions_changed(self) -> None:
        self._has_changed = True
        # At once: a commit may be under way, and the next run may not read what has shown the change.
        self._streams.applied = {}
        self.tables.moved()

    # --- what is written -------------------------------------------------------------------------------------------------

    def next(self, window: Window) -> ApplyRows | AskKeys | ForgetRows | None:
        """Return the next rows to write, or ask for keys. None: everything is written, or the checkpoint must move first.

        Not called while a rejected event waits: positions would be stored after an event that is in no quarantine.
        """
        checkpoint_ts = window.checkpoint_ts
        if self._change.looked(self._streams):
            self._partitions_changed()
        if self._may_step_back(checkpoint_ts):
            self._change.announced()
            self._partitions_changed()
        if self._has_changed and self._is_ahead(checkpoint_ts):
            return ForgetRows(self._streams.positions(checkpoint_ts))
        # As for W: a partition that appeared before these promises may hold rows below them.
        if not window.is_fresh:
            return None
        if self._has_changed:
            self._applied, self._has_changed = {}, False
        if self._change.settle(self._streams, checkpoint_ts):
            for state in self._streams:
                self._applied.setdefault(state.stream, passed_with(checkpoint_ts))
            self._streams.applied = self._applied
        # In turns: rows that must wait for W are not to wait for all others.
        if not self._change.is_over or (self._must_move and window.is_open):
            return None
        known_ts = self._streams.known_ts()
        found = {state.stream: self._candidate(state, window, known_ts) for state in self._streams if state.stream in self._applied}
        candidates = {stream: candidate for stream, candidate in found.items() if candidate.reports}
        if asked := self._unknown(table for one in candidates.values() for report in one.reports for table in one.tables(report)):
            return AskKeys(asked, self._policy.by_table)
        candidates = {stream: one.until(self._end(one, checkpoint_ts)) for stream, one in candidates.items()}
        upto_ts = self._cut(candidates.values())
        step = self._step({stream: one.until(upto_ts) for stream, one in candidates.items()}, checkpoint_ts)
        # Also without a row to write, if some lie behind this step: rows that wait for W are not to stop them.
        has_more = any(is_beyond(one.upto_ts, upto_ts) for one in candidates.values())
        return step if step.ranges or (step.spans and has_more) else None

    def _is_ahead(self, checkpoint_ts: Ts) -> bool:
        """Whether any row counts as written that the checkpoint leaves open. Those at exactly A too: see ``without_written``."""
        return any(has_reached(ts, checkpoint_ts) for ts in self._applied.values())

    def _may_step_back(self, checkpoint_ts: Ts) -> bool:
        """Whether a row that is written next may be an earlier version of one that counts as written, from another partition of the topic.

        A stream that keeps its promises sends none: it sends the later version too before such a promise.
        """
        applied = self._applied
        replayed = [
            state.stream
            for state in self._streams
            if has_reached(ts := state.behind_ts, checkpoint_ts) and is_beyond(ts, applied.get(state.stream, NO_TS))
        ]
        if not replayed:
            return False
        ahead = {stream for stream, ts in applied.items() if has_reached(ts, checkpoint_ts)}
        return any(other.topic == stream.topic and other != stream for stream in replayed for other in ahead)

    def _candidate(self, state: StreamState, window: Window, known_ts: Ts) -> _Candidate:
        after_ts = max(self._applied[state.stream], window.checkpoint_ts)
        upto_ts = window.at_most(row_limit(state.resolved_ts, known_ts, self._barriers.first_ts))
        if not is_beyond(upto_ts, after_ts):
            return _Candidate(after_ts, after_ts, [])
        reports = [self._cache.report_of(name) for name in self._cache.names_of(state.stream)]
        return _Candidate(after_ts, upto_ts, reports).until(upto_ts)

    def _unknown(self, tables: Iterable[TableRows]) -> tuple[TableRows, ...]:
        asked = {table.name.fold(): table for table in tables}
        return tuple(table for name, table in asked.items() if not self.tables.knows(name))

    def _end(self, candidate: _Candidate, checkpoint_ts: Ts) -> Ts:
        """Return where a stream must stop: before the first row that has to wait although its table is ahead."""
        waiting = (
            table.min_ts
            for report in candidate.reports
            for table in candidate.tables(report)
            if self.tables.is_ahead(table.name.fold(), checkpoint_ts) and self.tables.must_wait(table)
        )
        first = min(waiting, default=None)
        return candidate.upto_ts if first is None else max(candidate.after_ts, just_before(first))

    def _cut(self, candidates: Iterable[_Candidate]) -> Ts:
        """Return up to where there are about as many rows as one step writes."""
        counts = [
            (count.ts, count.rows)
            for one in candidates
            for report in one.reports
            for count in OpenRange(0, report).counts(one.after_ts)
            if not is_beyond(count.ts, one.upto_ts)
        ]
        total, upto_ts = 0, max((one.upto_ts for one in candidates), default=NO_TS)
        for ts, rows in sorted(counts):
            total += rows
            if total >= self._policy.most_rows:
                return ts
        return upto_ts

    def _step(self, candidates: Mapping[Stream, _Candidate], checkpoint_ts: Ts) -> ApplyRows:
        passed = {stream: one for stream, one in candidates.items() if is_beyond(one.upto_ts, one.after_ts)}
        ranges: dict[RangeId, RangeReport] = {}
        tables: list[TableRows] = []
        names: set[FoldedName] = set()
        for one in passed.values():
            for report in one.reports:
                mine = one.tables(report)
                names.update(table.name.fold() for table in mine)
                ahead = [table for table in mine if self.tables.is_ahead(table.name.fold(), checkpoint_ts)]
                if ahead:
                    ranges[report.range] = report
                    tables += ahead
        for table in tables:
            self.tables.check_home(table)
        spans = {stream: (one.after_ts, one.upto_ts) for stream, one in passed.items()}
        positions = self._streams.positions(checkpoint_ts)
        return ApplyRows(
            spans=spans,
            ranges=tuple(ranges),
            tables=tuple(tables),
            positions={
                stream: replace(position, applied_ts=spans[stream][1]) if stream in spans else position
                for stream, position in positions.items()
            },
            ahead_tables=self.tables.changes(names, checkpoint_ts) if self._change.is_proven else {},
            rows=sum(report.rows for report in ranges.values()),
        )

    def written(self, step: ApplyRows, checkpoint_ts: Ts) -> None:
        """Record the rows of a step as durable."""
        self._must_move = True
        for stream, (_, upto_ts) in step.spans.items():
            self._applied[stream] = upto_ts
        names = {table.name.fold() for table in step.tables}
        upto_ts = max(upto_ts for _, upto_ts in step.spans.values())
        self.tables.written(names, upto_ts, step.ahead_tables)
        self.tables.passed(upto_ts, checkpoint_ts)
        # Not of the step's ranges: some may have been merged meanwhile.
        for stream in step.spans:
            self._cache.let_go([name for name in self._cache.names_of(stream) if self._is_written(name, checkpoint_ts)])

    def refused(self, name: FoldedName) -> None:
        """Make rows of a table wait for W: they were refused when written ahead."""
        self.tables.block(name)

    def moved(self) -> None:
        """Record that the checkpoint moved."""
        self._must_move = False

    def changed(self, touches: frozenset[FoldedName] | None) -> None:
        """Record that a DDL has run."""
        self.tables.changed(touches, max(self._applied.values(), default=NO_TS))

    def _is_written(self, name: RangeId, checkpoint_ts: Ts) -> bool:
        report = self._cache.report_of(name)
        applied_ts = self._applied.get(name.stream, NO_TS)
        if not has_reached(applied_ts, checkpoint_ts) or is_beyond(report.max_ts, applied_ts):
            return False
        return all(self.tables.is_ahead(table.name.fold(), checkpoint_ts) for table in report.tables)

    # --- segments --------------------------------------------------------------------------------------------------------

    def without_written(self, step: ApplySegment) -> ApplySegment | AskKeys:
        """Return the segment without the rows that are written; or ask which those are."""
        segment, after_ts = step.segment, step.window.after_ts
        # Those at exactly A too, not again with their group: their ranges may be released, and none of these rows can come late.
        upto = {stream: ts for stream, ts in self._applied.items() if has_reached(ts, after_ts)}
        if not upto:
            return step
        if asked := self._unknown(segment.tables):
            return AskKeys(asked, self._policy.by_table)
        # Of all tables, not only of the segment's: the chunks of its ranges hold rows of others too, which are released already.
        ahead = self.tables.ahead(after_ts)
        written = RowsWritten(upto=upto, tables=ahead) if ahead else None
        ranges = tuple(name for name in segment.ranges if not self._is_written(name, after_ts))
        return replace(step, segment=replace(segment, ranges=ranges, window=replace(step.window, written=written)))

    def answer(self, step: AskKeys, keys: Mapping[FoldedName, KeyAnswer]) -> None:
        """Record the answer to AskKeys; a table that it lacks does not qualify."""
        names = (table.name.fold() for table in step.tables)
        self.tables.learn({name: keys.get(name) for name in names})
