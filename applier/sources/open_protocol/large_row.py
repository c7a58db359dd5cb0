"""Rows that were too large for Kafka: what the producer left of them in the topic, and how the rest of each is found.

``claim-check``: the whole row is an object in a storage, which is read here. ``handle-key-only``: the row stays a placeholder, and
is read from upstream before it is written (``Shape.placeholder``); a delete by its handle key is complete. Without the setting
that says where to look, such a row is refused: it is never applied as if it were whole.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import Final

from applier.model.errors import ProtocolError, SourceError
from applier.model.events import Flag, Image, PlacedRow, RowKind, RowOperation
from applier.model.position import Offset, Place, Stream
from applier.model.remedy import SKIP_RECORD
from applier.planner.port import RowLookup
from applier.sources.open_protocol.body import read_row
from applier.sources.open_protocol.claim_check import ClaimCheckStore, object_name, read_claim_check
from applier.sources.open_protocol.event import read_row_event
from applier.sources.open_protocol.framing import split_record
from applier.sources.open_protocol.head import ROW, Head, read_head
from applier.sources.open_protocol.matcher import intern_shape
from applier.sources.open_protocol.row_parse import place_images, place_parsed
from applier.sources.port import Record

OTHERWISE: Final = (
    "Or raise max-message-bytes of changefeed and topic, set large-message-handle-option to none and let it send the row again. "
    f"Or load the row from upstream, and skip the record: `{SKIP_RECORD}`"
)
STORAGE_REMEDY: Final = f"Set source.claim_check.storage to the claim-check-storage-uri of the changefeed. {OTHERWISE}"
UPSTREAM_REMEDY: Final = f"Set source.upstream to the address of upstream's TiDB, where such rows are read. {OTHERWISE}"


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


def _refuse(kind: str, message: str, remedy: str) -> ProtocolError:
    error = ProtocolError.at(None, kind, message)
    error.remedy = remedy
    return error
