"""Applies an event of the quarantine after all, if that is still right.

Right means: the sink then holds what upstream holds. So every row of the event must be due (its commit_ts is at or below the checkpoint),
no later event may be about the same row, and no DDL may have touched its table since. The sink does not know when a row was last
written, so later events are looked for in the topics: in every partition, from the time of the event's commit on, a margin for skew between
clocks before it. What cannot be known (records that have expired, or cannot be read) is a reason to refuse.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from applier.coordinator.ddl_order import is_covered
from applier.model.chunk import Chunk, pack
from applier.model.errors import Fenced, InvariantViolation, NeedsOperator, UnknownOutcome
from applier.model.events import DdlEvent, FoldedName, PlacedRow, Shape
from applier.model.position import Offset, Place, Stream, Ts
from applier.model.range_report import RangeId, TableRows
from applier.model.rejected_event import WHOLE_RECORD, EventPlace, KeptRecord, QuarantineState, RejectedEvent
from applier.model.segment import SegmentWindow, is_applied, is_in_dump, is_later_version, may_follow, written_since_ms
from applier.planner import TransactionSet, bytes_key_names, key_names, plan_bucket
from applier.planner.statement import Statement
from applier.planner.table_check import Acceptance
from applier.replica.sink_tables import SinkTables, refuse_keyless, rekeyed_tables
from applier.sinks.port import Sink
from applier.sinks.progress import Progress, ProgressCommit
from applier.sinks.quarantine import Quarantined, Settlement
from applier.sinks.write_outcome import WriteState
from applier.sources.port import Placed, Source, Unplaced

BY_HAND = "Bring the row to what upstream holds by hand, and settle the entry with `applier quarantine drop`"


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the event. ``index``: of the event in its record."""

    placed: PlacedRow
    offset: int
    index: int

    @property
    def identity(self) -> tuple[FoldedName, bytes]:
        """Which row it is."""
        return self.placed.shape.name.fold(), self.placed.key

    @property
    def version(self) -> tuple[int, int]:
        """One transaction deletes and writes a row at most once each: what is equal here is the same event, or a replay of it."""
        return self.placed.commit_ts, self.placed.kind


class Readmission:
    """Applies events of one replica's quarantine. The sink must have been acquired."""

    def __init__(self, source: Source, sink: Sink, by: str, accept: Acceptance | None = None) -> None:
        self._source, self._sink, self._by = source, sink, by
        self._tables = SinkTables(sink, accept)

    def readmit(self, place: EventPlace) -> int:
        """Apply the event, mark it as retried in the same transaction, and return how many rows were written.

        ProtocolError: it still cannot be read. NeedsOperator: it must not be applied (any more), with the reason. Errors of the sink.
        """
        progress = self._sink.load()
        if progress is None:
            raise InvariantViolation("there is a quarantine without progress")
        rows = self._rows(place)
        if rows:
            self._check_time(place, rows, progress)
            self._check_ledger(place, rows)
            _check_topics(self._source, place, rows)
        return self._write(place, rows, progress)

    def _rows(self, place: EventPlace) -> list[_Row]:
        record = self._sink.quarantine.record(place)
        found = self._source.decoder.placer(place.stream).place_each(place.offset, record.key, record.value)
        rows = []
        for index, event in found:
            if place.event not in {index, WHOLE_RECORD}:
                continue
            if isinstance(event, Unplaced):
                raise event.error
            if isinstance(event, DdlEvent):
                raise NeedsOperator(
                    f"the event holds a DDL: {event.query}",
                    remedy="Run it on the sink by hand if it is missing there, and settle the entry with `applier quarantine drop`",
                    place=place,
                )
            if isinstance(event, PlacedRow):
                rows.append(_Row(event, place.offset, index))
        return rows

    def _check_time(self, place: EventPlace, rows: Sequence[_Row], progress: Progress) -> None:
        if not is_applied(max(row.placed.commit_ts for row in rows), progress.checkpoint_ts):
            raise NeedsOperator(
                "the transaction of the event has not been applied yet",
                remedy="Let the applier catch up first",
                place=place,
                checkpoint_ts=progress.checkpoint_ts,
            )
        if is_in_dump(min(row.placed.commit_ts for row in rows), progress.start_ts):
            raise NeedsOperator("the event is part of the snapshot that the replica began with", remedy=BY_HAND, place=place)

    def _check_ledger(self, place: EventPlace, rows: Sequence[_Row]) -> None:
        """Refuse a row whose table a DDL has touched since. The ledger is asked once, however many rows the record holds."""
        since: dict[FoldedName, int] = {}
        for row in rows:
            name, ts = row.placed.shape.name.fold(), row.placed.commit_ts
            since[name] = min(since.get(name, ts), ts)
        for (ts, _, touches), _ in self._sink.ledger_since(Ts(min(since.values()))):
            for name, row_ts in since.items():
                if may_follow(ts, row_ts) and (touches is None or is_covered(name, touches)):
                    remedy = f"{BY_HAND}. The DDL: applier ddl list --ts {ts}"
                    raise NeedsOperator("a DDL has touched the table since", remedy=remedy, place=place, table=str(name), ddl_ts=ts)

    def _write(self, place: EventPlace, rows: Sequence[_Row], progress: Progress) -> int:
        reported = [_reported(row, place.stream) for row in rows]
        refuse_keyless(reported)
        known = self._tables.new_with_rows(reported, progress)
        commit = ProgressCommit(checkpoint_ts=progress.checkpoint_ts, positions={}, known_tables=known)
        quarantined = Quarantined(_nothing_is_set_aside, settled=(Settlement(place, QuarantineState.RETRIED, self._by),))
        outcome = self._sink.writer.write(progress.fence, self._statements(place, rows, reported), commit, quarantined)
        match outcome.state:
            case WriteState.COMMITTED:
                return outcome.rows
            case WriteState.FENCED:
                raise Fenced("another run has taken over the replica", remedy="Stop it, and try again", place=place)
            case _:
                raise outcome.error or UnknownOutcome("the outcome is not known", remedy="See: applier quarantine list", place=place)

    def _statements(self, place: EventPlace, rows: Sequence[_Row], reported: Sequence[TableRows]) -> list[Statement]:
        if not rows:
            return []
        tables = self._tables.describe(reported)
        times = [row.placed.commit_ts for row in rows]
        window = SegmentWindow(after_ts=Ts(min(times) - 1), upto_ts=Ts(max(times)), again=False, settled_tables=frozenset())
        planned = plan_bucket(
            [_chunk(place.stream, rows)],
            window,
            tables,
            rekeyed_tables(reported, tables),
            self._sink.dialect,
            self._source.decoder.image_decoder,
            self._source.decoder.decode_key,
        )
        statements = [item for item in planned if not isinstance(item, TransactionSet)]
        return sorted((item for item in statements if isinstance(item, Statement)), key=lambda item: item.phase)


def _reported(row: _Row, stream: Stream) -> TableRows:
    shape, ts = row.placed.shape, Ts(row.placed.commit_ts)
    return TableRows(shape.name, key_names(shape), 1, ts, ts, Offset(row.offset), bytes_key_names(shape), stream)


def _chunk(stream: Stream, rows: Sequence[_Row]) -> bytes:
    shapes: list[Shape] = list(dict.fromkeys(row.placed.shape for row in rows))
    chunk = Chunk(
        stream=stream,
        shapes=shapes,
        shape=[shapes.index(row.placed.shape) for row in rows],
        commit_ts=[row.placed.commit_ts for row in rows],
        kind=[row.placed.kind for row in rows],
        offset=[row.offset for row in rows],
        index=[row.index for row in rows],
        key=[row.placed.key for row in rows],
        image=[row.placed.image for row in rows],
    )
    return pack(0, chunk).data


def _nothing_is_set_aside(event: RejectedEvent) -> KeptRecord:
    raise InvariantViolation("a retried event was set aside again", event=event)


def _check_topics(source: Source, place: EventPlace, rows: Collection[_Row]) -> None:
    """Look for later events about the same rows in everything that was written since the event's commit. NeedsOperator names one."""
    listing = source.listing()
    since_ms = written_since_ms(Ts(min(row.placed.commit_ts for row in rows)))
    starts = source.offsets_at_time(list(listing.extents), since_ms) if since_ms > 0 else {}
    search = _NewerRowSearch(place, rows)
    for stream, extent in sorted(listing.extents.items()):
        start = starts.get(stream, extent.earliest)
        if extent.earliest > 0 and start <= extent.earliest:
            raise NeedsOperator(
                "records from the time of the event's commit have expired: later events cannot be ruled out",
                remedy=BY_HAND,
                place=place,
                stream=str(stream),
            )
        placer = source.decoder.placer(stream)
        for records in source.reader.read(RangeId(stream, start, max(start, extent.end))):
            for offset, key, value in records:
                search.look(stream, offset, placer.place_each(offset, key, value))


class _NewerRowSearch:
    """Compares what the topics hold with the rows of one event."""

    def __init__(self, place: EventPlace, rows: Collection[_Row]) -> None:
        self._place = place
        self._versions = {row.identity: row.version for row in rows}
        self._keys = {row.identity[0]: key_names(row.placed.shape) for row in rows}
        self._since = min(row.placed.commit_ts for row in rows)

    def look(self, stream: Stream, offset: Offset, events: Sequence[tuple[int, Placed | Unplaced]]) -> None:
        """Refuse if one of the events is, or may be, a later version of one of the rows."""
        with_keys = {index for index, event in events if isinstance(event, PlacedRow)}
        for index, event in events:
            if (stream, offset) == self._place[:2] and self._place.event in {index, WHOLE_RECORD}:
                continue
            if isinstance(event, PlacedRow) and self._is_later(event):
                raise self._refusal("a later event is about the same row: it has taken, or will take, this one's place", stream, offset)
            if isinstance(event, Unplaced) and index not in with_keys and self._may_be_later(event):
                raise self._refusal("an event that cannot be read may be about the same row", stream, offset)

    def _is_later(self, event: PlacedRow) -> bool:
        table = event.shape.name.fold()
        if table not in self._keys or not may_follow(event.commit_ts, self._since):
            return False
        if key_names(event.shape) != self._keys[table]:
            return True
        version = self._versions.get((table, event.key))
        return version is not None and is_later_version((event.commit_ts, event.kind), version)

    def _may_be_later(self, event: Unplaced) -> bool:
        head = event.head
        if head is None:
            return True
        return head.name.fold() in self._keys and may_follow(head.ts, self._since)

    def _refusal(self, message: str, stream: Stream, offset: Offset) -> NeedsOperator:
        return NeedsOperator(message, remedy=BY_HAND, place=self._place, later=str(Place(stream, offset)))
