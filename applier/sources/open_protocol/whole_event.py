"""Whole events of a record, claim-check rows too: their objects are read. For readers that show or land what upstream has sent."""

from collections.abc import Iterator, Sequence

from applier.model.errors import ProtocolError, SourceError
from applier.model.events import Event, RowEvent
from applier.model.position import Place
from applier.sources.open_protocol.claim_check import ClaimCheckStore, object_name, read_claim_check
from applier.sources.open_protocol.event import decode_record
from applier.sources.open_protocol.large_row import STORAGE_REMEDY
from applier.sources.port import Record


def whole_events(record: Record, place: Place, claims: ClaimCheckStore | None) -> Sequence[Event]:
    """Return the events of one record; a claim-check row is the row that its object holds.

    ProtocolError: as ``decode_record``; an object is missing or is another row; no storage is known. SourceError: the storage failed.
    """
    events = decode_record(record.key, record.value, place)
    announced = [event for event in events if isinstance(event, RowEvent) and event.claim_check]
    if not announced:
        return events
    if claims is None:
        facts = {"schema": announced[0].schema, "table": announced[0].table, "commit_ts": announced[0].commit_ts}
        error = ProtocolError.at(place, "claim_check", "the row was too large for Kafka: its columns are in claim-check storage", **facts)
        error.remedy = STORAGE_REMEDY
        raise error
    found = iter(list(_read(announced, claims, place)))
    return [next(found) if isinstance(event, RowEvent) and event.claim_check else event for event in events]


def _read(announced: Sequence[RowEvent], claims: ClaimCheckStore, place: Place) -> Iterator[RowEvent]:
    contents = claims.read([_name(row, place) for row in announced])
    for row, content in zip(announced, contents, strict=True):
        if isinstance(content, SourceError):
            raise type(content)(content.message, remedy=content.remedy, **(content.facts | place.facts)) from content
        yield read_claim_check(content, row, place).row


def _name(row: RowEvent, place: Place) -> str:
    try:
        return object_name(row.claim_check or "")
    except ProtocolError as error:
        raise ProtocolError(error.message, remedy=error.remedy, **(error.facts | place.facts)) from error
