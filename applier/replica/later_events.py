"""Looks in the topics for events about the rows of a quarantined event that came after it.

The sink does not know when a row was last written, so every partition is read from the time of the event's commit on, less a margin for
clock skew. What cannot be known (records that have expired, or cannot be read) counts as a later event.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from applier.model.errors import NeedsOperator
from applier.model.events import FoldedName, PlacedRow
from applier.model.position import Offset, Place, Stream, StreamPosition, Ts
from applier.model.range_report import RangeId
from applier.model.rejected_event import WHOLE_RECORD, EventPlace
from applier.model.segment import is_later_version, may_follow
from applier.model.timeline import CLOCK_SKEW_MS
from applier.planner import key_names
from applier.sources.peek import read_whole
from applier.sources.port import Placed, Source, Unplaced


def by_hand_remedy(place: EventPlace) -> str:
    """Return what an operator does about a row that cannot be applied again."""
    return f"Correct the row in the sink by hand, then settle the entry: `applier quarantine drop {place.options}`"


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """A row of a quarantined event. ``index``: of the event in its record."""

    placed: PlacedRow
    offset: int
    index: int

    @property
    def identity(self) -> tuple[FoldedName, bytes]:
        """The row's table and handle key."""
        return self.placed.shape.name.fold(), self.placed.key

    def version(self, *, keeps_order: bool) -> tuple[int, ...]:
        """When it was written.

        Without ``keeps_order``, equal versions are the same event, or a replay: a transaction deletes and writes a row at most once each.
        """
        if keeps_order:
            return self.placed.commit_ts, self.offset, self.index, self.placed.kind
        return self.placed.commit_ts, self.placed.kind


def refuse_later_events(
    source: Source, place: EventPlace, rows: Collection[QuarantinedRow], positions: Mapping[Stream, StreamPosition]
) -> None:
    """Refuse a retry if the source holds a later event about one of ``rows``, or may hold one. NeedsOperator names it.

    ``positions``: up to where the replica has applied the streams.
    """
    ranges = _applied_since(place, positions) if source.decoder.keeps_order else _written_since(source, place, rows)
    search = _NewerRowSearch(place, rows, keeps_order=source.decoder.keeps_order)
    placers = {range_id.stream: source.decoder.placer(range_id.stream) for range_id in ranges}
    is_there = not source.decoder.keeps_order
    for range_id, records in read_whole(source.reader, ranges):
        place_each = placers[range_id.stream].place_each
        for offset, key, value in records:
            is_there |= (range_id.stream, offset) == place[:2]
            search.look(range_id.stream, offset, place_each(offset, key, value))
    if not is_there:
        # The log of a server before: what was applied since is not in this one, or at other places.
        message = "the log that held the event is not followed any more: the applier cannot check for later events"
        raise NeedsOperator(message, remedy=by_hand_remedy(place), place=place)


def _applied_since(place: EventPlace, positions: Mapping[Stream, StreamPosition]) -> list[RangeId]:
    """Return what was applied since the event, of a stream that holds all changes in their order: the rest comes later anyway."""
    applied = positions.get(place.stream)
    # Such a source's timestamps are places too. The stored offset may lie before them: a restart reads from there again.
    end = 0 if applied is None else max(applied.next_offset, applied.resolved_ts)
    if end <= place.offset:
        raise NeedsOperator("the event has not been applied yet", remedy="Let the applier catch up first, then retry", place=place)
    return [RangeId(place.stream, place.offset, Offset(end))]


def _written_since(source: Source, place: EventPlace, rows: Collection[QuarantinedRow]) -> list[RangeId]:
    listing = source.listing()
    since_ms = (source.timeline.time_ms(Ts(min(row.placed.commit_ts for row in rows))) or 0) - CLOCK_SKEW_MS
    starts = source.offsets_at_time(list(listing.extents), since_ms) if since_ms > 0 else {}
    ranges = []
    for stream, extent in sorted(listing.extents.items()):
        start = starts.get(stream, extent.earliest)
        # The broker returns the earliest record it still has for a time before it: older ones may have been about the row.
        if extent.earliest > 0 and start <= extent.earliest:
            raise NeedsOperator(
                "records since the event's commit have expired: the applier cannot check for later events",
                remedy=by_hand_remedy(place),
                place=place,
                stream=str(stream),
            )
        ranges.append(RangeId(stream, start, max(start, extent.end)))
    return ranges


class _NewerRowSearch:
    """Compares what the topics hold with the rows of one event."""

    def __init__(self, place: EventPlace, rows: Collection[QuarantinedRow], *, keeps_order: bool) -> None:
        self._place, self._keeps_order = place, keeps_order
        self._versions = {row.identity: row.version(keeps_order=keeps_order) for row in rows}
        self._keys = {row.identity[0]: key_names(row.placed.shape) for row in rows}
        self._since = min(row.placed.commit_ts for row in rows)

    def look(self, stream: Stream, offset: Offset, events: Sequence[tuple[int, Placed | Unplaced]]) -> None:
        """Refuse if one of the events is, or may be, a later version of one of the rows."""
        # An event with a readable key and an unreadable image is placed twice: as a row, which can be compared, and as
        # Unplaced.
        with_keys = {index for index, event in events if isinstance(event, PlacedRow)}
        for index, event in events:
            if (stream, offset) == self._place[:2] and self._place.event in {index, WHOLE_RECORD}:
                continue
            if isinstance(event, PlacedRow) and self._is_later(QuarantinedRow(event, offset, index)):
                raise self._refusal("a later event has changed the same row", stream, offset)
            if isinstance(event, Unplaced) and index not in with_keys and self._may_be_later(event):
                raise self._refusal("an unreadable event may have changed the same row", stream, offset)

    def _is_later(self, row: QuarantinedRow) -> bool:
        event = row.placed
        table = event.shape.name.fold()
        if table not in self._keys or not may_follow(event.commit_ts, self._since):
            return False
        # Other key columns: the two keys cannot be compared, so the event counts as later.
        if key_names(event.shape) != self._keys[table]:
            return True
        version = self._versions.get(row.identity)
        return version is not None and is_later_version(row.version(keeps_order=self._keeps_order), version)

    def _may_be_later(self, event: Unplaced) -> bool:
        head = event.head
        if head is None:
            return True
        return head.name.fold() in self._keys and may_follow(head.ts, self._since)

    def _refusal(self, message: str, stream: Stream, offset: Offset) -> NeedsOperator:
        return NeedsOperator(message, remedy=by_hand_remedy(self._place), place=self._place, later=str(Place(stream, offset)))
