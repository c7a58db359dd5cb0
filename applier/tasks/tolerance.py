"""Which events a listener rejects instead of stopping: unreadable ones, by policy, and events that a skip rule of the operator names.

A rejected event becomes a ``RejectedEvent`` of the range's report; the driver stores it in the quarantine.

A skipped event counts as never written. An unreadable one leaves a marker for each row whose key can be read (``Placer.place_each``): an
older version of that row must not become its final image (DESIGN.md 11). DDLs are not skipped here: the ledger and the engine do that.

A record of another protocol, or of another time zone, stops whatever the policy says: the changefeed or the configuration is wrong, and
not the record.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from applier.model.errors import ProtocolError
from applier.model.events import AdminEvent, DdlEvent, ExcludedTable, FoldedName, PlacedRow, ResolvedEvent, SkippedStatement, TableName
from applier.model.failure import NEVER_QUARANTINED
from applier.model.position import NO_TS, Offset, Stream, Ts
from applier.model.rejected_event import WHOLE_RECORD, EventPosition, QuarantineState, RejectedEvent, key_text, reason_of
from applier.sources.port import Decoder, Placed, PlacedEvent, PlacedRows, Record, Unplaced
from applier.sources.selected_events import gather_rows

WAS_DDL: Final = "; it is a DDL: unless another partition has a readable copy, the sink lacks its effect, and later rows may not fit"
MAYBE_DDL: Final = "; its content is not known: if it was a DDL, later rows may not fit the sink's tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """What is rejected in one stream instead of stopping.

    ``unreadable``: every unreadable event. ``stored``: (offset, event) of the events that the quarantine has already, in any state.
    ``skipped``: (offset, event), with ``WHOLE_RECORD`` for all events of a record, -> who decided it. ``skipped_ts``: (commit_ts, table
    or None for all) -> who decided it.
    """

    unreadable: bool = False
    stored: frozenset[tuple[int, int]] = frozenset()
    skipped: Mapping[tuple[int, int], str] = field(default_factory=dict)
    skipped_ts: Mapping[tuple[Ts, FoldedName | None], str] = field(default_factory=dict)

    @property
    def is_strict(self) -> bool:
        """Whether nothing is rejected: then the source's own placer is used, which is faster."""
        return not (self.unreadable or self.stored or self.skipped or self.skipped_ts)


STRICT: Final = Tolerance()
Tolerated: TypeAlias = Placed | RejectedEvent


TOGETHER: Final = 128
"""Records that are placed event by event if one of them cannot be read."""
TOGETHER_BYTES: Final = 16 << 20
"""What they should hold at most."""


class TolerantPlacer:
    """Places as ``Placer`` does; a rejected event comes out as a ``RejectedEvent``."""

    def __init__(self, stream: Stream, tolerance: Tolerance, decoder: Decoder) -> None:
        self._stream, self._tolerance, self._decoder = stream, tolerance, decoder
        self._placer = decoder.placer(stream)
        self._together = TOGETHER
        self._stored_offsets = frozenset(offset for offset, _ in tolerance.stored)
        self._skipped_offsets = frozenset(offset for offset, _ in tolerance.skipped)
        self._skipped_times = frozenset(ts for ts, _ in tolerance.skipped_ts)

    def place_all(self, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        """Yield the events of some records. ProtocolError for an unreadable one that is not tolerated."""
        first = 0
        while first < len(records):
            some = records[first : first + self._together]
            first += len(some)
            try:
                placed = list(self._placer.place_all(some))
            except ProtocolError:
                # Only now: placing event by event costs a second reading of the records, and nearly none need it.
                placed = None
            if placed is None or self._may_skip(some, placed):
                yield from gather_rows(event for record in some for event in self._place_each(*record))
            else:
                self._adapt(placed)
                yield from placed

    def _adapt(self, placed: Sequence[PlacedRows | PlacedEvent]) -> None:
        """Place fewer records at once where their rows are large: a claim-check object is read while its record is placed."""
        size = sum(sum(map(len, one.image)) for one in placed if isinstance(one, PlacedRows))
        self._together = max(1, self._together // 4) if size > TOGETHER_BYTES else min(TOGETHER, 2 * self._together)

    def _may_skip(self, records: Sequence[Record], placed: Sequence[PlacedRows | PlacedEvent]) -> bool:
        """Whether a skip rule may name one of the events."""
        if self._skipped_offsets and not self._skipped_offsets.isdisjoint(record.offset for record in records):
            return True
        return bool(self._skipped_times) and any(not self._skipped_times.isdisjoint(_times_of(one)) for one in placed)

    def _place_each(self, offset: int, key: bytes | None, value: bytes | None) -> list[tuple[int, int, Tolerated]]:
        found = self._placer.place_each(offset, key, value)
        # First all rules, then all events: an update that changes the key is two rows of one event, and a rule that names the table of
        # either skips both.
        skipped = {index: decided_by for index, event in found if (decided_by := self._skipped_by(offset, index, event)) is not None}
        # The keys of rows, and of the markers that represent an unreadable one. Whether a bad value is found here or by the image decoder
        # depends on what the range holds before it, and the operator must see the key in either case.
        keys = {index: self._key_text(event) for index, event in found if isinstance(event, PlacedRow)}
        placed: list[tuple[int, int, Tolerated]] = []
        for index, event in found:
            position = EventPosition(self._stream, Offset(offset), index)
            placed.append((offset, index, self._tolerated(position, event, skipped.get(index), keys.get(index, ""))))
        return placed

    def _key_text(self, row: PlacedRow) -> str:
        return key_text((column.name for column in row.shape.handle_key), self._decoder.decode_key(row.key))

    def _skipped_by(self, offset: int, index: int, event: Placed | Unplaced) -> str | None:
        """Return who decided that the event is skipped; None if no rule names it."""
        if isinstance(event, DdlEvent | ExcludedTable):
            return None
        skipped, skipped_ts = self._tolerance.skipped, self._tolerance.skipped_ts
        decided_by = skipped.get((offset, WHOLE_RECORD)) or skipped.get((offset, index))
        if decided_by is None and skipped_ts and (ts := _ts_of(event)) is not None:
            decided_by = skipped_ts.get((ts, _table_of(event).fold())) or skipped_ts.get((ts, None))
        return decided_by

    def _tolerated(self, position: EventPosition, event: Placed | Unplaced, decided_by: str | None, key: str) -> Tolerated:
        if decided_by is not None:
            return _rejected(position, event, f"skipped by the operator ({decided_by})", QuarantineState.SKIPPED, key)
        if not isinstance(event, Unplaced):
            return event
        is_tolerated = self._tolerance.unreadable and event.error.fault not in NEVER_QUARANTINED
        if not is_tolerated and position.offset not in self._stored_offsets:
            raise event.error
        return _rejected(position, event, reason_of(event.error) + _consequence(event), QuarantineState.HELD, key)


def _rejected(position: EventPosition, event: Placed | Unplaced, error: str, state: QuarantineState, key: str) -> RejectedEvent:
    table = _table_of(event)
    return RejectedEvent(
        position=position, error=error, state=state, schema=table.schema, table=table.table, key=key, commit_ts=_ts_of(event) or NO_TS
    )


def _consequence(event: Unplaced) -> str:
    if event.head is None:
        return MAYBE_DDL
    return WAS_DDL if event.head.is_ddl else ""


def _times_of(placed: PlacedRows | PlacedEvent) -> Iterable[Ts | None]:
    if isinstance(placed, PlacedRows):
        return map(Ts, placed.commit_ts)
    return () if isinstance(placed.event, RejectedEvent | ExcludedTable) else (_ts_of(placed.event),)


def _ts_of(event: Placed | Unplaced) -> Ts | None:
    match event:
        case PlacedRow():
            return Ts(event.commit_ts)
        case DdlEvent():
            return event.commit_ts
        case Unplaced():
            return None if event.head is None else event.head.ts
        case ResolvedEvent() | AdminEvent() | ExcludedTable() | SkippedStatement():
            return None


def _table_of(event: Placed | Unplaced) -> TableName:
    match event:
        case PlacedRow():
            return event.shape.name
        case DdlEvent():
            return event.name
        case Unplaced():
            return TableName("", "") if event.head is None else event.head.name
        case ResolvedEvent() | AdminEvent() | ExcludedTable() | SkippedStatement():
            return TableName("", "")
