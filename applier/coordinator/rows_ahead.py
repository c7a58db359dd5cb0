"""Rows ahead of W (``consistency = "row"``, DESIGN.md 8): each stream's rows are written up to its own promise, by parallel writers.

Theory. A row may be written ahead if nothing that is still to come belongs before it. Its stream has promised more, so no row of the stream
does; the row's key has no other stream (``partition_change``, the declared dispatcher); its table has one unique key, which compares bytes
(``row_tables``), so no row of another key does; and the DDLs of all topics are known up to there, so no DDL does. ``applied_ts`` of a
stream says how far it is: rows of such tables up to there are in the sink. A segment leaves them out, and writes all others.

After a change of the partition set a key may have two streams. An earlier version from one would be written over a later one from the
other, which counts as written; and a replay of the later one may lie below A by then. So from there on no row counts as written
(``ForgetRows``): those since A are written again. The first thing to be seen of a change may be such an earlier version: a replay behind
what its stream has promised (``_may_step_back``).

To write everything above the checkpoint again, in order of W, is always right as well: that is what ``consistency = "transaction"`` does
after a switch. So a stop is never a dead end.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from applier.coordinator.barriers import Barriers
from applier.coordinator.cache import Cache
from applier.coordinator.open_range import OpenRange
from applier.coordinator.partition_change import PartitionChange
from applier.coordinator.policy import RowPolicy
from applier.coordinator.row_tables import RowTables
from applier.coordinator.starting_point import StartingPoint
from applier.coordinator.step import ApplyRows, ApplySegment, AskKeys, ForgetRows, KeyAnswer
from applier.coordinator.stored_offset import PlacedDdl
from applier.coordinator.stream_state import StreamState
from applier.coordinator.streams import Streams
from applier.coordinator.window import Window
from applier.model.errors import NeedsOperator
from applier.model.events import FoldedName
from applier.model.position import NO_TS, Place, Stream, Ts
from applier.model.range_report import RangeId, RangeReport, TableRows
from applier.model.row_window import just_before, passed_with, row_limit
from applier.model.segment import RowsWritten, has_reached, is_beyond, overlaps_segment

TO_TRANSACTIONS = 'set sink.consistency = "transaction": it writes everything since the checkpoint again, in order'


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


class RowsAhead:
    """Chooses the rows that are written next, and remembers which ones were."""

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

    # --- what was read ---------------------------------------------------------------------------------------------------

    def report(self, report: RangeReport, ddls: Iterable[PlacedDdl]) -> None:
        """Look at a range with its new DDLs.

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
                remedy=f"Set output-raw-change-event = false in the changefeed. For what the topic holds already, {TO_TRANSACTIONS}",
                kind="raw_key_change",
                table=str(changed.table),
                commit_ts=changed.commit_ts,
                **Place(report.range.stream, changed.offset).facts,
            )

    def _check_ddls(self, stream: Stream, ddls: Iterable[PlacedDdl]) -> None:
        for offset, key in ddls:
            if self.tables.was_overtaken(key.touches, key.ts):
                raise NeedsOperator(
                    "a DDL came after rows behind it were written ahead: it is not in all partitions of its topic",
                    remedy=f"{TO_TRANSACTIONS[0].upper()}{TO_TRANSACTIONS[1:]}",
                    kind="overtaken_ddl",
                    table=str(key.name),
                    commit_ts=key.ts,
                    **Place(stream, offset).facts,
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
            return AskKeys(asked)
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

        A stream that keeps its promises brings none: it brings the later version too before it promises so much.
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
        """Know the rows of a step as durable."""
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
        after_ts = step.after_ts
        # Those at exactly A too, not again with their group: their ranges may be released, and none of these rows can come late.
        upto = {stream: ts for stream, ts in self._applied.items() if has_reached(ts, after_ts)}
        if not upto:
            return step
        if asked := self._unknown(step.tables):
            return AskKeys(asked)
        # Of all tables, not only of the segment's: the chunks of its ranges hold rows of others too, which are released already.
        ahead = self.tables.ahead(after_ts)
        return replace(
            step,
            ranges=tuple(name for name in step.ranges if not self._is_written(name, after_ts)),
            written=RowsWritten(upto=upto, tables=ahead) if ahead else None,
        )

    def answer(self, step: AskKeys, keys: Mapping[FoldedName, KeyAnswer]) -> None:
        """Take the answer to AskKeys; a table that it lacks does not qualify."""
        names = (table.name.fold() for table in step.tables)
        self.tables.learn({name: keys.get(name) for name in names})
