"""What a listener may pass by instead of stopping: events that cannot be read, by policy, and events that the operator wants skipped.

What is passed by becomes a ``BadEvent`` of the range's report; the driver stores it.

An event that is skipped counts as never written. One that cannot be read holds the place of its row, so that no older version of the row
takes it (``Placer.place_each``). DDLs are not skipped here: the ledger and the engine see to them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from applier.model.errors import ProtocolError
from applier.model.events import AdminEvent, DdlEvent, FoldedName, PlacedRow, ResolvedEvent, TableName
from applier.model.position import NO_TS, Offset, Stream, Ts
from applier.model.rejected_event import WHOLE_RECORD, EventPlace, QuarantineState, RejectedEvent, key_text, reason_of
from applier.sources.port import Decoder, Placed, Unplaced

WAS_DDL: Final = "; it is a DDL: unless another partition holds it readable, the sink lacks its effect, and rows after it may not fit"
MAYBE_DDL: Final = "; what it held is not known: had it been a DDL, rows after it may not fit the sink's tables"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """What may be passed by in one stream.

    ``unreadable``: whatever cannot be read. ``stored``: (offset, event) of what the quarantine has already, whatever has become of it.
    ``skipped``: (offset, event) -> who said so, ``WHOLE_RECORD`` for every event there. ``skipped_ts``: (commit_ts, table, None for any)
    -> who said so.
    """

    unreadable: bool = False
    stored: frozenset[tuple[int, int]] = frozenset()
    skipped: Mapping[tuple[int, int], str] = field(default_factory=dict)
    skipped_ts: Mapping[tuple[Ts, FoldedName | None], str] = field(default_factory=dict)

    @property
    def is_none(self) -> bool:
        """Whether nothing may be passed by."""
        return not (self.unreadable or self.stored or self.skipped or self.skipped_ts)


STRICT: Final = Tolerance()
Tolerated: TypeAlias = Placed | RejectedEvent


class TolerantPlacer:
    """Places as ``Placer`` does; what may be passed by comes out as a ``BadEvent``."""

    def __init__(self, stream: Stream, tolerance: Tolerance, decoder: Decoder) -> None:
        self._stream, self._tolerance, self._decoder = stream, tolerance, decoder
        self._placer = decoder.placer(stream)
        self._stored_offsets = frozenset(offset for offset, _ in tolerance.stored)
        self._skipped_offsets = frozenset(offset for offset, _ in tolerance.skipped)
        self._skipped_times = frozenset(ts for ts, _ in tolerance.skipped_ts)
        self.indices: Sequence[int] | None = None
        """As those of ``Placer``."""

    def place(self, offset: int, key: bytes | None, value: bytes | None) -> list[Tolerated]:
        """Return the events of one record. ProtocolError for what cannot be read and may not be passed by."""
        try:
            placed = self._placer.place(offset, key, value)
        except ProtocolError:
            return self._place_each(offset, key, value)
        if offset in self._skipped_offsets or (self._skipped_times and not self._skipped_times.isdisjoint(map(_ts_of, placed))):
            return self._place_each(offset, key, value)
        self.indices = self._placer.indices
        return list(placed)

    def _place_each(self, offset: int, key: bytes | None, value: bytes | None) -> list[Tolerated]:
        found = self._placer.place_each(offset, key, value)
        self.indices = [index for index, _ in found]
        words = {index: word for index, event in found if (word := self._word(offset, index, event)) is not None}
        return [self._tolerated(EventPlace(self._stream, Offset(offset), index), event, words.get(index)) for index, event in found]

    def _word(self, offset: int, index: int, event: Placed | Unplaced) -> str | None:
        """Return who has said that the event is to be skipped."""
        if isinstance(event, DdlEvent):
            return None
        skipped, skipped_ts = self._tolerance.skipped, self._tolerance.skipped_ts
        word = skipped.get((offset, WHOLE_RECORD)) or skipped.get((offset, index))
        if word is None and skipped_ts and (ts := _ts_of(event)) is not None:
            word = skipped_ts.get((ts, _table_of(event).fold())) or skipped_ts.get((ts, None))
        return word

    def _tolerated(self, place: EventPlace, event: Placed | Unplaced, said_by: str | None) -> Tolerated:
        if said_by is not None:
            return self._rejected(place, event, f"skipped by the operator ({said_by})", QuarantineState.SKIPPED)
        if not isinstance(event, Unplaced):
            return event
        if not self._tolerance.unreadable and place.offset not in self._stored_offsets:
            raise event.error
        return self._rejected(place, event, reason_of(event.error) + _consequence(event), QuarantineState.HELD)

    def _rejected(self, place: EventPlace, event: Placed | Unplaced, error: str, state: QuarantineState) -> RejectedEvent:
        table = _table_of(event)
        key = ""
        if isinstance(event, PlacedRow):
            key = key_text((column.name for column in event.shape.handle_key), self._decoder.decode_key(event.key))
        return RejectedEvent(
            place=place, error=error, state=state, schema=table.schema, table=table.table, key=key, commit_ts=_ts_of(event) or NO_TS
        )


def _consequence(event: Unplaced) -> str:
    if event.head is None:
        return MAYBE_DDL
    return WAS_DDL if event.head.is_ddl else ""


def _ts_of(event: Placed | Unplaced) -> Ts | None:
    match event:
        case PlacedRow():
            return Ts(event.commit_ts)
        case DdlEvent():
            return event.commit_ts
        case Unplaced():
            return None if event.head is None else event.head.ts
        case ResolvedEvent() | AdminEvent():
            return None


def _table_of(event: Placed | Unplaced) -> TableName:
    match event:
        case PlacedRow():
            return event.shape.name
        case DdlEvent():
            return event.name
        case Unplaced():
            return TableName("", "") if event.head is None else event.head.name
        case ResolvedEvent() | AdminEvent():
            return TableName("", "")
