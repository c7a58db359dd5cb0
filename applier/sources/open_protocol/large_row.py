"""Large rows of the Open Protocol: a placeholder with the handle key in the record; the whole row in an object, or in upstream.

Source: open_protocol.md 2.9. What all formats of TiCDC have in common is ``ticdc.large_row``. A delete by its handle key is complete.
"""

from binascii import a2b_base64
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from applier.model.errors import ProtocolError
from applier.model.events import Event, Image, PlacedRow, RowEvent, RowOperation
from applier.model.position import Offset, RecordPosition, Stream
from applier.sources.open_protocol.record import ROW, Head, decode_record, read_head, read_row, read_row_event, split_record
from applier.sources.open_protocol.row_run import place_images, place_parsed
from applier.sources.port import Record
from applier.sources.ticdc.json_text import parse_object
from applier.sources.ticdc.large_row import (
    ClaimCheckStore,
    ClaimedObjects,
    WholeRowSources,
    as_placeholder,
    check_claimed,
    differs,
    no_columns,
    no_storage,
    object_name,
    useless,
    with_claimed_rows,
)


class ClaimedRow(NamedTuple):
    """The row that an object holds, and the head and the body of its event as they came."""

    row: RowEvent
    head: Head
    body: bytes


def read_claim_check(content: bytes, announced: RowEvent, position: RecordPosition | None = None) -> ClaimedRow:
    """Return the row that the object holds, which must be the one that the record at ``position`` announced.

    ProtocolError (claim_check) if the content cannot be read or is another row.
    """
    try:
        claimed = _read_object(content)
        check_claimed(announced, claimed.row)
    except ProtocolError as cause:
        raise useless(cause, announced, position) from cause
    return claimed


def _read_object(content: bytes) -> ClaimedRow:
    members = parse_object(content)
    match split_record(_read_base64(members, "key"), _read_base64(members, "value")):
        case [(head_json, bytes(body))] if (head := read_head(head_json)).t == ROW and not head.ohk and not head.ccl:
            return ClaimedRow(read_row_event(head, body), head, body)
        case _:
            raise differs("it does not hold exactly one whole row")


def _read_base64(members: dict[str, Any], name: str) -> bytes:
    text = members.get(name)
    if not isinstance(text, str):
        raise ProtocolError.at(None, "field_type", f"it has no {name}")
    try:
        return a2b_base64(text, strict_mode=True)
    except ValueError as cause:
        raise ProtocolError.at(None, "base64", f"its {name} is not base64") from cause


class LargeRowPlacer:
    """Places the large rows of one range."""

    def __init__(self, stream: Stream, found: WholeRowSources, is_out: Callable[[Head], bool] = lambda _: False) -> None:
        """``is_out``: whether rows of an event's table are excluded, so that their objects are not read."""
        self._stream, self._found, self._is_out = stream, found, is_out
        self._objects = None if found.claims is None else ClaimedObjects(found.claims)
        self._records: Sequence[Record] = ()

    def begin(self, records: Sequence[Record]) -> None:
        """Note the records that are placed now, one after the other: their objects may be read ahead."""
        self._records = records
        if self._objects is not None:
            self._objects.begin()

    def place(self, head: Head, body: bytes, offset: int) -> list[PlacedRow]:
        """Return the rows of an event. ProtocolError, without a position; SourceError with it if the storage fails."""
        if head.ccl:
            return self._place_claimed(head, body, offset)
        images = read_row(body)
        if images.operation is RowOperation.DELETE:
            if not _has_handle_key(images.before):
                raise no_columns("the row was too large for Kafka: only its key was sent, and the row has no key")
            return place_images(head, images)
        if self._found.lookup is None or not _has_handle_key(images.after):
            raise no_columns()
        return list(map(as_placeholder, place_images(head, images)))

    def _place_claimed(self, head: Head, body: bytes, offset: int) -> list[PlacedRow]:
        if self._objects is None:
            raise no_storage()
        announced = read_row_event(head, body)
        position = RecordPosition(self._stream, Offset(offset))
        content = self._objects.content(object_name(head.ccl or ""), position, lambda: self._names_from(offset))
        claimed = read_claim_check(content, announced)
        return place_parsed(claimed.head, claimed.body)

    def _names_from(self, offset: int) -> Iterator[str]:
        """Yield the names of the objects from a record on. What cannot be read is reported when its turn comes."""
        for record in self._records:
            # Most records hold no such row, and their keys are not parsed for this.
            if record.offset < offset or record.key is None or b'"ccl"' not in record.key:
                continue
            try:
                heads = [read_head(head_json) for head_json, _ in split_record(record.key, record.value)]
                yield from [object_name(head.ccl) for head in heads if head.t == ROW and head.ccl and not self._is_out(head)]
            except ProtocolError:
                return


def _has_handle_key(image: Image | None) -> bool:
    return any(column.is_key for column in (image or {}).values())


def whole_events(record: Record, position: RecordPosition, claims: ClaimCheckStore | None) -> Sequence[Event]:
    """Return the events of one record, claim-check rows as their objects hold them. Raises as ``with_claimed_rows``."""
    events = decode_record(record.key, record.value, position)
    return with_claimed_rows(events, position, claims, lambda content, row: read_claim_check(content, row, position).row)
