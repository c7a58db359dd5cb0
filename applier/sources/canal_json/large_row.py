"""Large rows of canal-json: a placeholder with the handle key in the record; the whole row in an object, or in upstream.

Source: canal_json_and_simple.md 2.6. What all formats of TiCDC have in common is ``ticdc.large_row``. The handle key of such a row is all
that its image holds: ``pkNames`` is empty where it is a unique index. A delete by its handle key is complete.
"""

from binascii import a2b_base64
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from applier.model.errors import ProtocolError
from applier.model.events import Event, PlacedRow, RowEvent, RowOperation
from applier.model.position import Offset, RecordPosition, Stream
from applier.sources.canal_json.placing import place_row
from applier.sources.canal_json.record import CanalRecord, CanalRow, read_record, row_event, unpacked, whole_event
from applier.sources.port import EventHead, Record
from applier.sources.selected_events import located
from applier.sources.ticdc.json_text import parse_object
from applier.sources.ticdc.large_row import (
    ClaimCheckStore,
    ClaimedObjects,
    WholeRowSources,
    as_placeholder,
    differs,
    no_columns,
    no_storage,
    object_name,
    useless,
    with_claimed_rows,
)


class ClaimedCanalRow(NamedTuple):
    """The row that an object holds."""

    head: EventHead
    row: CanalRow


def read_claim_check(content: bytes, head: EventHead, announced: CanalRow, position: RecordPosition | None = None) -> ClaimedCanalRow:
    """Return the row that the object holds, which must be the one that the record at ``position`` announced.

    ProtocolError (claim_check) if the content cannot be read or is another row.
    """
    try:
        claimed = _read_object(content)
        _check(head, announced, claimed)
    except ProtocolError as cause:
        raise useless(cause, row_event(head, announced), position) from cause
    return claimed


def _read_object(content: bytes) -> ClaimedCanalRow:
    record = read_record(None, _record_value(content))
    head = record.head()
    if not record.is_row or (row := record.row()).is_reduced:
        raise differs("it does not hold exactly one whole row")
    return ClaimedCanalRow(head, row)


def _record_value(content: bytes) -> bytes:
    """Return the value of the record in an object: wrapped in JSON, or the content itself (claim-check-raw-value)."""
    # Nothing says which. Plain or compressed, a record of canal-json has other members.
    try:
        members = parse_object(unpacked(content))
    except ProtocolError:
        return content
    return _read_base64(members) if members.keys() == {"key", "value"} else content


def _read_base64(members: dict[str, Any]) -> bytes:
    text = members["value"]
    if not isinstance(text, str):
        raise ProtocolError.at(None, "field_type", "it has no value")
    try:
        return a2b_base64(text, strict_mode=True)
    except ValueError as cause:
        raise ProtocolError.at(None, "base64", "its value is not base64") from cause


def _check(head: EventHead, announced: CanalRow, claimed: ClaimedCanalRow) -> None:
    if head.ts != claimed.head.ts:
        raise differs("its commit_ts differs")
    if head.name != claimed.head.name:
        raise differs("its table differs")
    # Insert or update is not compared: a placeholder may have lost what had made it an update.
    if (announced.operation is RowOperation.DELETE) != (claimed.row.operation is RowOperation.DELETE):
        raise differs("its operation differs")
    for name, text in announced.data.items():
        if name not in claimed.row.data or claimed.row.data[name] != text:
            raise differs(f"its column {name} differs")


class CanalLargeRows:
    """Places the large rows of one range."""

    def __init__(self, stream: Stream, found: WholeRowSources, is_out: Callable[[EventHead], bool]) -> None:
        """``is_out``: whether rows of an event's table are excluded, so that their objects are not read."""
        self._stream, self._found, self._is_out = stream, found, is_out
        self._objects = None if found.claims is None else ClaimedObjects(found.claims)
        self._records: Sequence[Record] = ()

    def begin(self, records: Sequence[Record]) -> None:
        """Note the records that are placed now, one after the other: their objects may be read ahead."""
        self._records = records
        if self._objects is not None:
            self._objects.begin()

    def place(self, head: EventHead, row: CanalRow, offset: int) -> list[PlacedRow]:
        """Return the rows of an event. ProtocolError, without a position; SourceError with it if the storage fails."""
        if row.claim_check is not None:
            return self._place_claimed(head, row, offset)
        if row.operation is not RowOperation.DELETE and self._found.lookup is None:
            raise no_columns()
        return list(map(as_placeholder, place_row(head, row)))

    def _place_claimed(self, head: EventHead, row: CanalRow, offset: int) -> list[PlacedRow]:
        if self._objects is None:
            raise no_storage()
        position = RecordPosition(self._stream, Offset(offset))
        content = self._objects.content(object_name(row.claim_check or ""), position, lambda: self._names_from(offset))
        claimed = read_claim_check(content, head, row)
        return place_row(claimed.head, claimed.row)

    def _names_from(self, offset: int) -> Iterator[str]:
        """Yield the names of the objects from a record on. What cannot be read is reported when its turn comes."""
        for record in self._records:
            if record.offset < offset or not record.value:
                continue
            try:
                plain = unpacked(record.value)
                # Most records hold no such row, and are not parsed for this.
                if b'"claimCheckLocation"' not in plain:
                    continue
                found = read_record(record.key, plain)
                if found.is_row and not self._is_out(found.head()) and (location := found.row().claim_check):
                    yield object_name(location)
            except ProtocolError:
                return


def whole_events(record: Record, position: RecordPosition, claims: ClaimCheckStore | None) -> Sequence[Event]:
    """Return the events of one record, claim-check rows as their objects hold them. Raises as ``with_claimed_rows``."""
    found = events(record, position)

    def read(content: bytes, _: RowEvent) -> RowEvent:
        announced = read_record(record.key, record.value)
        return row_event(*read_claim_check(content, announced.head(), announced.row(), position))

    return with_claimed_rows(found, position, claims, read)


def events(record: Record, position: RecordPosition) -> list[Event]:
    """Return the whole events of one record. ProtocolError names ``position``."""
    found: CanalRecord | None = None
    head: EventHead | None = None
    try:
        found = read_record(record.key, record.value)
        head = found.head()
        return [whole_event(found)]
    except ProtocolError as error:
        raise located(error, position, None if found is None else 0, head) from error
