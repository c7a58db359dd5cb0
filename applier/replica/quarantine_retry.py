"""``applier quarantine retry``: applies a quarantined event, unless the sink would then differ from upstream.

So every row of the event must be due (its commit_ts is at or below the checkpoint), no later event may have changed the same row
(``refuse_later_events``), and no DDL may have touched its table since. What cannot be known is a reason to refuse.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from applier.model.chunk import Chunk, pack
from applier.model.errors import ApplierError, Fenced, InvariantViolation, NeedsOperator, Remedy, UnknownOutcome
from applier.model.events import DdlEvent, FoldedName, PlacedRow, RowKind, Shape, TableName
from applier.model.position import CLOCK_SKEW_MS, Offset, RecordPosition, Stream, StreamPosition, Ts
from applier.model.range_report import RangeId, TableRows
from applier.model.rejected_event import WHOLE_RECORD, EventPosition, KeptRecord, QuarantineState, RejectedEvent, key_text
from applier.model.segment import SegmentWindow, is_applied, is_in_dump, is_later_version, may_follow
from applier.planner import PlanTarget, bytes_key_names, key_names, plan_bucket, reported_key, unique_names
from applier.planner.column_match import Origin, is_partial
from applier.planner.compaction import KeyReaders
from applier.planner.final_rows import Key, RowPosition
from applier.planner.port import Statement, TableDescription
from applier.planner.rendering import image_keys
from applier.planner.table_check import Acceptance
from applier.replica.sink_tables import SinkTables, rekeyed_tables
from applier.sinks.port import Sink
from applier.sinks.progress import Progress, ProgressCommit, WriteState
from applier.sinks.quarantine import Quarantined, Settlement
from applier.sources.peek import read_whole
from applier.sources.port import Placed, Source, Unplaced

# --- later events ----------------------------------------------------------------------------------------------------
# Looks in the topics for events about the rows of a quarantined event that came after it.
#
# The sink does not know when a row was last written, so every partition is read from the time of the event's commit on, less a margin for
# clock skew. What cannot be known (records that have expired, or cannot be read) counts as a later event.


def by_hand_remedy(position: EventPosition) -> Remedy:
    """Return what an operator does about a row that cannot be applied again."""
    return Remedy(
        "replica.correct-row-and-settle",
        f"Correct the row in the sink by hand, then settle the entry: `applier quarantine drop {position.options}`",
    )


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """A row of a quarantined event. ``index``: of the event in its record."""

    placed: PlacedRow
    offset: int
    index: int

    def version(self, *, keeps_order: bool) -> tuple[int, ...]:
        """When it was written.

        Without ``keeps_order``, equal versions are the same event, or a replay: a transaction deletes and writes a row at most once each.
        """
        if keeps_order:
            return self.placed.commit_ts, self.offset, self.index, self.placed.kind
        return self.placed.commit_ts, self.placed.kind


def refuse_later_events(
    source: Source,
    position: EventPosition,
    rows: Collection[QuarantinedRow],
    positions: Mapping[Stream, StreamPosition],
    keys: Mapping[FoldedName, KeyReaders] | None = None,
) -> None:
    """Refuse a retry if the source holds a later event about one of ``rows``, or may hold one. NeedsOperator names it.

    ``positions``: up to where the replica has applied the streams. ``keys``: how keys are read from the images of tables whose key the
    rows do not tell.
    """
    ranges = _applied_since(position, positions) if source.decoder.keeps_order else _written_since(source, position, rows)
    search = _NewerRowSearch(position, rows, keys or {}, keeps_order=source.decoder.keeps_order)
    placers = {range_id.stream: source.decoder.placer(range_id.stream) for range_id in ranges}
    is_there = not source.decoder.keeps_order
    for range_id, records in read_whole(source.reader, ranges):
        place_each = placers[range_id.stream].place_each
        for offset, key, value in records:
            is_there |= (range_id.stream, offset) == position[:2]
            search.look(range_id.stream, offset, place_each(offset, key, value))
    if not is_there:
        # The log of a server before: what was applied since is not in this one, or at other positions.
        message = "the log that held the event is not followed any more: the applier cannot check for later events"
        raise NeedsOperator(message, remedy=by_hand_remedy(position), position=position)


def _applied_since(position: EventPosition, positions: Mapping[Stream, StreamPosition]) -> list[RangeId]:
    """Return what was applied since the event, of a stream that holds all changes in their order: the rest comes later anyway."""
    applied = positions.get(position.stream)
    # Such a source's timestamps are positions too. The stored offset may lie before them: a restart reads from there again.
    end = 0 if applied is None else max(applied.next_offset, applied.resolved_ts)
    if end <= position.offset:
        raise NeedsOperator(
            "the event has not been applied yet",
            remedy=Remedy("replica.catch-up-before-retry-of-ddl", "Let the applier catch up first, then retry"),
            position=position,
        )
    return [RangeId(position.stream, position.offset, Offset(end))]


def _written_since(source: Source, position: EventPosition, rows: Collection[QuarantinedRow]) -> list[RangeId]:
    listing = source.listing()
    since_ms = (source.timeline.time_ms(Ts(min(row.placed.commit_ts for row in rows))) or 0) - CLOCK_SKEW_MS
    starts = source.times.offsets_at(list(listing.extents), since_ms) if since_ms > 0 else {}
    ranges = []
    for stream, extent in sorted(listing.extents.items()):
        start = starts.get(stream, extent.earliest)
        # The broker returns the earliest record it still has for a time before it: older ones may have been about the row.
        if extent.earliest > 0 and start <= extent.earliest:
            raise NeedsOperator(
                "records since the event's commit have expired: the applier cannot check for later events",
                remedy=by_hand_remedy(position),
                position=position,
                stream=str(stream),
            )
        ranges.append(RangeId(stream, start, max(start, extent.end)))
    return ranges


class _NewerRowSearch:
    """Compares what the topics hold with the rows of one event."""

    def __init__(
        self, position: EventPosition, rows: Collection[QuarantinedRow], readers: Mapping[FoldedName, KeyReaders], *, keeps_order: bool
    ) -> None:
        self._position, self._keeps_order, self._readers = position, keeps_order, readers
        self._versions = {self._identity(position.stream, row): row.version(keeps_order=keeps_order) for row in rows}
        self._keys = {row.placed.shape.name.fold(): key_names(row.placed.shape) for row in rows}
        self._since = min(row.placed.commit_ts for row in rows)

    def look(self, stream: Stream, offset: Offset, events: Sequence[tuple[int, Placed | Unplaced]]) -> None:
        """Refuse if one of the events is, or may be, a later version of one of the rows."""
        # An event with a readable key and an unreadable image is placed twice: as a row, which can be compared, and as
        # Unplaced.
        with_keys = {index for index, event in events if isinstance(event, PlacedRow)}
        for index, event in events:
            if (stream, offset) == self._position[:2] and self._position.event in {index, WHOLE_RECORD}:
                continue
            if isinstance(event, PlacedRow) and self._is_later(stream, QuarantinedRow(event, offset, index)):
                raise self._refusal("a later event has changed the same row", stream, offset)
            if isinstance(event, Unplaced) and index not in with_keys and self._may_be_later(event):
                raise self._refusal("an unreadable event may have changed the same row", stream, offset)

    def _identity(self, stream: Stream, row: QuarantinedRow) -> tuple[FoldedName, Key]:
        """Return the row's table and key. ApplierError: its image cannot be read."""
        placed, table = row.placed, row.placed.shape.name.fold()
        if table not in self._readers or not placed.shape.has_unknown_key:
            return table, placed.key
        origin = Origin(stream, placed.shape)
        at = RowPosition(origin, placed.commit_ts, row.offset, row.index, placed.key)
        return table, self._readers[table](origin)(at, placed.image)

    def _is_later(self, stream: Stream, row: QuarantinedRow) -> bool:
        event = row.placed
        table = event.shape.name.fold()
        if table not in self._keys or not may_follow(event.commit_ts, self._since):
            return False
        # Other key columns: the two keys cannot be compared, so the event counts as later.
        if key_names(event.shape) != self._keys[table]:
            return True
        try:
            version = self._versions.get(self._identity(stream, row))
        except ApplierError:  # it may be this row
            return True
        return version is not None and is_later_version(row.version(keeps_order=self._keeps_order), version)

    def _may_be_later(self, event: Unplaced) -> bool:
        head = event.head
        if head is None:
            return True
        return head.name.fold() in self._keys and may_follow(head.ts, self._since)

    def _refusal(self, message: str, stream: Stream, offset: Offset) -> NeedsOperator:
        return NeedsOperator(
            message, remedy=by_hand_remedy(self._position), position=self._position, later=str(RecordPosition(stream, offset))
        )


# --- quarantine retry ------------------------------------------------------------------------------------------------


class QuarantineRetry:
    """Retries events of one replica's quarantine. The sink must have been acquired."""

    def __init__(self, source: Source, sink: Sink, by: str, accept: Acceptance | None = None) -> None:
        self._source, self._sink, self._by = source, sink, by
        self._tables = SinkTables(sink, accept, upstream=source.upstream_tables)

    def retry(self, position: EventPosition) -> int:
        """Apply the event, mark it as retried in the same transaction, and return how many rows were written.

        ProtocolError: it still cannot be read. NeedsOperator: it must not be applied, with the reason. Errors of the sink.
        """
        progress = self._sink.load()
        if progress is None:
            raise InvariantViolation("the quarantine has entries, but the replica has no progress row")
        rows = self._rows(position)
        if rows:
            # Cheapest first: the last one reads the topics, which may take minutes.
            self._check_time(position, rows, progress)
            self._check_ledger(position, rows)
            refuse_later_events(self._source, position, rows, progress.positions, self._sink_keys(position, rows))
        return self._write(position, rows, progress)

    def _rows(self, position: EventPosition) -> list[QuarantinedRow]:
        record = self._sink.bookkeeping.quarantine.record(position)
        found = self._source.decoder.placer(position.stream).place_each(position.offset, record.key, record.value)
        rows = []
        for index, event in found:
            if position.event not in {index, WHOLE_RECORD}:
                continue
            if isinstance(event, Unplaced):
                raise event.error
            if isinstance(event, DdlEvent):
                raise NeedsOperator(
                    f"the event holds a DDL: {event.query}",
                    remedy=Remedy(
                        "replica.run-ddl-and-settle",
                        "Run it on the sink by hand if it is missing there, then settle the entry: "
                        f"`applier quarantine drop {position.options}`",
                    ),
                    position=position,
                )
            if isinstance(event, PlacedRow):
                rows.append(QuarantinedRow(event, position.offset, index))
        return rows

    def _check_time(self, position: EventPosition, rows: Sequence[QuarantinedRow], progress: Progress) -> None:
        if not is_applied(max(row.placed.commit_ts for row in rows), progress.checkpoint_ts):
            raise NeedsOperator(
                "the transaction of the event has not been applied yet",
                remedy=Remedy("replica.catch-up-before-retry", "Let the applier catch up first, then retry"),
                position=position,
                checkpoint_ts=progress.checkpoint_ts,
            )
        if is_in_dump(min(row.placed.commit_ts for row in rows), progress.start_ts):
            raise NeedsOperator(
                "the event is part of the dump that the sink was loaded from", remedy=by_hand_remedy(position), position=position
            )

    def _check_ledger(self, position: EventPosition, rows: Sequence[QuarantinedRow]) -> None:
        """Refuse a row whose table a DDL has touched since. The ledger is asked once, however many rows the record holds."""
        since: dict[FoldedName, int] = {}
        for row in rows:
            name, ts = row.placed.shape.name.fold(), row.placed.commit_ts
            since[name] = min(since.get(name, ts), ts)
        for (ts, _, touches), _ in self._sink.bookkeeping.ledger_since(Ts(min(since.values()))):
            for name, row_ts in since.items():
                if may_follow(ts, row_ts) and (touches is None or name.is_covered(touches)):
                    remedy = Remedy("replica.see-later-ddl", f"{by_hand_remedy(position)}. The DDL: `applier ddl list --ts {ts}`")
                    raise NeedsOperator("a DDL has touched the table since", remedy=remedy, position=position, table=str(name), ddl_ts=ts)

    def _sink_keys(self, position: EventPosition, rows: Sequence[QuarantinedRow]) -> dict[FoldedName, KeyReaders]:
        """Return how the sink's key is read from rows that do not tell theirs."""
        reported = [_reported(row, position.stream) for row in rows if row.placed.shape.has_unknown_key]
        tables = self._tables.describe(reported) if reported else {}
        return image_keys(rekeyed_tables(reported, tables), tables, self._source.decoder.image_decoder)

    def _write(self, position: EventPosition, rows: Sequence[QuarantinedRow], progress: Progress) -> int:
        reported = [_reported(row, position.stream) for row in rows]
        tables = self._tables.describe(reported)
        _refuse_keyless(position, reported, rekeyed_tables(reported, tables))
        for row in rows:
            self._check_other_parts(position, row, tables)
        known = self._tables.new_with_rows(reported, progress)
        commit = ProgressCommit(checkpoint_ts=progress.checkpoint_ts, positions={}, known_tables=known)
        quarantined = Quarantined(_refuse_quarantine, settled=(Settlement(position, QuarantineState.RETRIED, self._by),))
        outcome = self._sink.writer.write(progress.fence, self._statements(position, rows, reported), commit, quarantined)
        match outcome.state:
            case WriteState.COMMITTED:
                return outcome.rows
            case WriteState.FENCED:
                raise Fenced(
                    "another run has taken over the replica",
                    remedy=Remedy("replica.stop-run-before-retry", "Stop that run, then retry"),
                    position=position,
                )
            case _:
                raise outcome.error or UnknownOutcome(
                    "the outcome of the write is unknown",
                    remedy=Remedy("replica.see-quarantine-entry", "Look at the entry's state with `applier quarantine list`"),
                    position=position,
                )

    def _check_other_parts(self, position: EventPosition, row: QuarantinedRow, tables: Mapping[FoldedName, TableDescription]) -> None:
        """Refuse a partial row if another part of it waits in the quarantine: its columns would be missing in the sink."""
        shape, name = row.placed.shape, row.placed.shape.name.fold()
        if row.placed.kind == RowKind.DELETE or name not in tables or not is_partial(shape, tables[name]):
            return
        key = key_text(key_names(shape), self._source.decoder.decode_key(row.placed.key)).casefold()
        for entry in self._sink.bookkeeping.quarantine.entries():
            event = entry.event
            is_same = TableName(event.schema, event.table).fold() == name and event.key.casefold() == key
            if is_same and event.state is QuarantineState.HELD and event.position != position:
                raise NeedsOperator(
                    "the event holds some columns of its row, and another event of the row is quarantined too",
                    remedy=by_hand_remedy(position),
                    position=position,
                    other=event.position,
                )

    def _statements(self, position: EventPosition, rows: Sequence[QuarantinedRow], reported: Sequence[TableRows]) -> list[Statement]:
        if not rows:
            return []
        tables = self._tables.describe(reported)
        rekeyed = rekeyed_tables(reported, tables)
        if self._tables.ordered(reported, rekeyed):
            # Later events have been applied, and an action of today's might delete what upstream has.
            message = "foreign keys join the event's table to others, so its rows are written in order"
            raise NeedsOperator(message, remedy=by_hand_remedy(position), position=position, table=str(reported[0].name))
        planned = self._planned(position, rows, PlanTarget(tables, rekeyed, self._sink.dialect))
        return sorted(planned, key=lambda item: item.phase)

    def _planned(self, position: EventPosition, rows: Sequence[QuarantinedRow], target: PlanTarget) -> list[Statement]:
        times = [row.placed.commit_ts for row in rows]
        # A window around the event's own transactions, so that the ordinary planner renders it.
        window = SegmentWindow(after_ts=Ts(min(times) - 1), upto_ts=Ts(max(times)))
        chunks = [_chunk(position.stream, rows)]
        while True:
            try:
                return [item for item in plan_bucket(chunks, window, target, self._source.decoder) if isinstance(item, Statement)]
            except NeedsOperator as error:
                # As in a run: at most once per unique index, which the row's flags may be too old to show.
                explained = self._tables.explained(error, target.tables)
                if explained is None:
                    raise
                target = target._replace(tables=explained)


def _refuse_keyless(position: EventPosition, reported: Sequence[TableRows], rekeyed: Collection[FoldedName]) -> None:
    for table in reported:
        if not table.handle_key and (table.handle_key is not None or table.name.fold() not in rekeyed):
            # Later events may have added or taken away equal rows, and none says which row it means.
            raise NeedsOperator("the event's table has no key", remedy=by_hand_remedy(position), position=position, table=str(table.name))


def _reported(row: QuarantinedRow, stream: Stream) -> TableRows:
    shape, ts = row.placed.shape, Ts(row.placed.commit_ts)
    return TableRows(
        shape.name,
        reported_key(shape),
        1,
        ts,
        ts,
        Offset(row.offset),
        bytes_key_names(shape),
        stream,
        unique_columns=unique_names(shape),
        hides_actions=shape.hides_actions,
        tells_indexes=shape.keys.unique is not None,
        tells_generated=shape.tells_generated,
    )


def _chunk(stream: Stream, rows: Sequence[QuarantinedRow]) -> bytes:
    shapes: list[Shape] = list(dict.fromkeys(row.placed.shape for row in rows))
    chunk = Chunk(
        origins=[(stream, shape) for shape in shapes],
        origin=[shapes.index(row.placed.shape) for row in rows],
        commit_ts=[row.placed.commit_ts for row in rows],
        kind=[row.placed.kind for row in rows],
        offset=[row.offset for row in rows],
        index=[row.index for row in rows],
        key=[row.placed.key for row in rows],
        image=[row.placed.image for row in rows],
    )
    return pack(0, chunk).data


def _refuse_quarantine(event: RejectedEvent) -> KeptRecord:
    raise InvariantViolation("a retried event was quarantined again", event=event)
