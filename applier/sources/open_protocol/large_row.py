"""Rows that were too large for Kafka: what the producer left of them in the topic, and how the rest of each is found.

``claim-check``: the whole row is an object in a storage, which is read here. ``handle-key-only``: the row stays a placeholder, and
is read from upstream before it is written (``Shape.placeholder``); a delete by its handle key is complete. Without the setting
that says where to look, such a row is refused: it is never applied as if it were whole.

Claim-check objects: a large row kept in a file, announced in Kafka by a placeholder with its handle key (open_protocol.md 2.9).

Where the objects are is not known here: ``ClaimCheckStore`` is the port of what reads them.

Whole events of a record, claim-check rows too: their objects are read. For readers that show or land what upstream has sent.
"""

from binascii import a2b_base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any, Final, NamedTuple, Protocol

from applier.model.errors import ProtocolError, SourceError
from applier.model.events import Event, Flag, Image, PlacedRow, RowEvent, RowKind, RowOperation
from applier.model.position import Offset, Place, Stream
from applier.model.remedy import SKIP_RECORD, Remedy
from applier.planner.port import RowLookup
from applier.sources.open_protocol.matcher import intern_shape
from applier.sources.open_protocol.record import ROW, Head, decode_record, read_head, read_row, read_row_event, split_record
from applier.sources.open_protocol.row_run import place_images, place_parsed
from applier.sources.port import Record
from applier.sources.ticdc.json_text import parse_object

RESTORE: Final = Remedy(
    "open-protocol.restore-object-or-load-row",
    f"Restore the object in the claim-check storage. Or load the row from upstream, and skip the record: `{SKIP_RECORD}`",
)


class ClaimCheckStore(Protocol):
    """Reads the objects of one changefeed. Frozen and picklable: it crosses to executors with the decoder."""

    def read(self, names: Sequence[str]) -> Iterator[bytes | SourceError]:
        """Yield the content of each object in the order of ``names``, or why there is none; several are read at once, in bounds.

        ProtocolError: the object is missing or too large. Any other SourceError: the storage failed. ConfigError is raised. Called for
        the objects of some hundred records at most; the caller may close the iterator early.
        """
        ...


class ClaimedRow(NamedTuple):
    """The row that an object holds, and the head and the body of its event as they came."""

    row: RowEvent
    head: Head
    body: bytes


def object_name(location: str) -> str:
    """Return the name of the object at ``location``, the storage being configured. ProtocolError (claim_check) if it has none."""
    # The directory is the producer's, and no path from the wire is followed.
    name = location.replace("\\", "/").rpartition("/")[2]
    if name in {"", ".", ".."} or "\0" in name:
        raise ProtocolError.at(None, "claim_check", "the row's claim check names no object", claim_check=location)
    return name


def read_claim_check(content: bytes, announced: RowEvent, place: Place | None = None) -> ClaimedRow:
    """Return the row that the object holds, which must be the one that the record at ``place`` announced.

    ProtocolError (claim_check) if the content cannot be read or is another row.
    """
    try:
        claimed = _read_object(content)
        _compare(announced, claimed.row)
    except ProtocolError as cause:
        facts = {
            "schema": announced.schema,
            "table": announced.table,
            "commit_ts": announced.commit_ts,
            "claim_check": announced.claim_check,
        }
        message = f"the claim-check object cannot be used: {cause.message}"
        error = ProtocolError.at(place, "claim_check", message, **facts, reason=cause.facts["kind"])
        error.remedy = RESTORE
        raise error from cause
    return claimed


def _read_object(content: bytes) -> ClaimedRow:
    members = parse_object(content)
    match split_record(_read_base64(members, "key"), _read_base64(members, "value")):
        case [(head_json, bytes(body))] if (head := read_head(head_json)).t == ROW and not head.ohk and not head.ccl:
            return ClaimedRow(read_row_event(head, body), head, body)
        case _:
            raise _differ("it does not hold exactly one whole row")


def _read_base64(members: dict[str, Any], name: str) -> bytes:
    text = members.get(name)
    if not isinstance(text, str):
        raise ProtocolError.at(None, "field_type", f"it has no {name}")
    try:
        return a2b_base64(text, strict_mode=True)
    except ValueError as cause:
        raise ProtocolError.at(None, "base64", f"its {name} is not base64") from cause


def _compare(announced: RowEvent, row: RowEvent) -> None:
    for name in ("commit_ts", "schema", "table", "partition_id"):
        if getattr(announced, name) != getattr(row, name):
            raise _differ(f"its {name} differs")
    # Insert or update is not compared: a placeholder's p may be empty where the whole row's is not, and the other way round.
    if (announced.operation is RowOperation.DELETE) != (row.operation is RowOperation.DELETE):
        raise _differ("its operation differs")
    if row.operation is RowOperation.DELETE:
        _compare_images(announced.before, row.before)
    else:
        _compare_images(announced.after, row.after)


def _compare_images(announced: Image | None, image: Image | None) -> None:
    """Check that what the placeholder says (handle-key columns) is found in the object."""
    whole = image or {}
    for name, column in (announced or {}).items():
        if whole.get(name) != column:
            raise _differ(f"its column {name} differs")


def _differ(message: str) -> ProtocolError:
    return ProtocolError.at(None, "claim_check", message)


OTHERWISE: Final = (
    "Or raise max-message-bytes of changefeed and topic, set large-message-handle-option to none and let it send the row again. "
    f"Or load the row from upstream, and skip the record: `{SKIP_RECORD}`"
)
STORAGE_REMEDY: Final = Remedy(
    "open-protocol.set-claim-check-storage", f"Set source.claim_check.storage to the claim-check-storage-uri of the changefeed. {OTHERWISE}"
)
UPSTREAM_REMEDY: Final = Remedy(
    "open-protocol.set-source-upstream", f"Set source.upstream to the address of upstream's TiDB, where such rows are read. {OTHERWISE}"
)


@dataclass(frozen=True, slots=True)
class WholeRowSources:
    """Where large rows are found. ``claims``: the claim-check objects; ``lookup``: upstream's tables. None: nowhere."""

    claims: ClaimCheckStore | None = None
    lookup: RowLookup | None = None


REFUSED: Final = WholeRowSources()
"""Nowhere: each large row is an error that names the setting."""


class LargeRowPlacer:
    """Places the large rows of one range. The objects of some records are read together, in the order of the records."""

    def __init__(self, stream: Stream, found: WholeRowSources, is_out: Callable[[Head], bool] = lambda _: False) -> None:
        """``is_out``: whether rows of an event's table are left out, so that their objects are not read."""
        self._stream, self._found, self._is_out = stream, found, is_out
        self._records: Sequence[Record] = ()
        self._names: Iterator[str] = iter(())
        self._contents: Iterator[bytes | SourceError] = iter(())

    def begin(self, records: Sequence[Record]) -> None:
        """Note the records that are placed now, one after the other: their objects may be read ahead."""
        self._records, self._names = records, iter(())

    def place(self, head: Head, body: bytes, offset: int) -> list[PlacedRow]:
        """Return the rows of an event. ProtocolError, without a place; SourceError with it if the storage fails."""
        if head.ccl:
            return self._place_claimed(head, body, offset)
        images = read_row(body)
        if images.operation is RowOperation.DELETE:
            if not _has_handle_key(images.before):
                raise _refuse("handle_key_only", "the row was too large for Kafka: only its key was sent, and it has none", UPSTREAM_REMEDY)
            return place_images(head, images)
        if self._found.lookup is None or not _has_handle_key(images.after):
            raise _refuse("handle_key_only", "the row was too large for Kafka: only its handle key was sent", UPSTREAM_REMEDY)
        return list(map(_as_placeholder, place_images(head, images)))

    def _place_claimed(self, head: Head, body: bytes, offset: int) -> list[PlacedRow]:
        if self._found.claims is None:
            raise _refuse("claim_check", "the row was too large for Kafka: its columns are in claim-check storage", STORAGE_REMEDY)
        announced = read_row_event(head, body)
        content = self._content(self._found.claims, object_name(head.ccl or ""), offset)
        if isinstance(content, ProtocolError):
            raise content
        if isinstance(content, SourceError):
            place = Place(self._stream, Offset(offset))
            raise SourceError(content.message, remedy=content.remedy, **(content.facts | place.facts)) from content
        claimed = read_claim_check(content, announced)
        return place_parsed(claimed.head, claimed.body)

    def _content(self, claims: ClaimCheckStore, name: str, offset: int) -> bytes | SourceError:
        if next(self._names, None) != name:
            # The first of these records, or one that is placed alone.
            ahead = list(dropwhile(name.__ne__, self._names_from(offset))) or [name]
            self._names, self._contents = iter(ahead[1:]), claims.read(ahead)
        return next(self._contents)

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
    return any(column.flags & Flag.HANDLE_KEY for column in (image or {}).values())


def _as_placeholder(row: PlacedRow) -> PlacedRow:
    # The delete of an update that changes the key is complete.
    if row.kind != RowKind.UPSERT:
        return row
    return row._replace(shape=intern_shape(row.shape._replace(placeholder=True)))


def _refuse(kind: str, message: str, remedy: Remedy) -> ProtocolError:
    error = ProtocolError.at(None, kind, message)
    error.remedy = remedy
    return error


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
