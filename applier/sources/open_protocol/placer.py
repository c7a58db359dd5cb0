"""The hot path: the place of each event of a record (table, timestamp, operation, key), its image left as the bytes that came.

Fast path: a body ``{"u":`` + X + ``}`` is split by its bytes, and the matcher of a known shape reads X as one whole JSON object; the
same with ``,"p":`` in between. Everything else (another shape, compression, repeated members, invalid UTF-8, anything wrong) takes the
full parse of ``body``, which decides. The two agree, because the fast path accepts only what the full parse would read alike.
"""

from typing import Final

import msgspec

from applier.model.errors import ProtocolError
from applier.model.events import ColumnShape, Flag, Image, PlacedRow, RowKind, RowOperation, Shape
from applier.model.position import Offset, Place, Stream
from applier.model.rejected_event import WHOLE_RECORD
from applier.sources.open_protocol.body import RowImages, read_row
from applier.sources.open_protocol.event import locate, read_plain, require_body
from applier.sources.open_protocol.framing import split_record
from applier.sources.open_protocol.head import ROW, Head, read_head
from applier.sources.open_protocol.row_key import canonical_float, encode_key
from applier.sources.open_protocol.salvage import event_head, markers_of
from applier.sources.open_protocol.shape_codec import Matcher, begin_range, compile_matcher, intern_shape
from applier.sources.port import Placed, Unplaced

MAX_TABLES = 65_536
"""Tables whose shapes a placer remembers; the oldest is forgotten. Each takes some hundred bytes."""

MAX_TABLE_SHAPES = 8
"""Shapes tried per table before the full parse: whole images, deletes with keys only, and some that column changes leave behind."""

_UPSERT: Final = int(RowKind.UPSERT)
_DELETE: Final = int(RowKind.DELETE)

_REDUCED_REMEDY = (
    "Raise max-message-bytes of the changefeed (and of the topic), set large-message-handle-option to none and let it send the row again. "
    "Or load the row from upstream and skip the record"
)

_AFTER, _DELETED, _OLD, _END = b'{"u":{', b'{"d":{', b'}},"p":{', b"}}"
_row = tuple.__new__
"""PlacedRow(...) without the constructor's call: 0.15 us per row."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode_json = msgspec.json.Encoder().encode


class OpenProtocolPlacer:
    """Places the records of one stream. Not thread-safe; compiled shapes are shared by the process."""

    def __init__(self, stream: Stream) -> None:
        begin_range()
        self._stream = stream
        self._tables: dict[tuple[str, str], list[Matcher]] = {}
        self._last_json = b""
        self._last_head: Head | None = None
        self.indices: list[int] | None = None
        """Of the record that was placed last: the index of the event of each item; None where it is the item's own place in the list."""

    def place(self, offset: int, key: bytes | None, value: bytes | None) -> list[Placed]:
        """Return the events of one record in order, a row as one PlacedRow, or two where an update changed its handle key.

        ProtocolError as ``decode_record``, and for rows that cannot be applied: handle_key_only, claim_check. Bad values outside of
        the handle key may be found only by the image decoder.
        """
        index: int | None = None
        head: Head | None = None
        placed: list[Placed] = []
        try:
            for index, (head_json, body) in enumerate(split_record(key, value)):  # noqa: B007 - the index is used where reading fails
                head = self._last_head if head_json == self._last_json else None
                if head is None:
                    head = read_head(head_json)
                    # Rows of one transaction and table have equal keys: 0.2 us saved, 0.03 us lost.
                    self._last_json, self._last_head = head_json, head
                if head.t == ROW:
                    self._place_row(head, body, placed)
                else:
                    placed.append(read_plain(head, body))
        except ProtocolError as error:
            raise locate(error, Place(self._stream, Offset(offset)), index, head) from error
        is_one_each = index is None or len(placed) == index + 1
        self.indices = None if is_one_each else [number for number, _ in self.place_each(offset, key, value)]
        return placed

    def place_each(self, offset: int, key: bytes | None, value: bytes | None) -> list[tuple[int, Placed | Unplaced]]:
        """Return what ``place`` returns, each with the index of its event; an event that cannot be read as markers and an ``Unplaced``.

        A record that cannot be taken apart is one ``Unplaced`` with the index ``WHOLE_RECORD``. Raises nothing.
        """
        place = Place(self._stream, Offset(offset))
        try:
            parts = split_record(key, value)
        except ProtocolError as error:
            return [(WHOLE_RECORD, Unplaced(locate(error, place, None, None), None))]
        return [(index, found) for index, (head, body) in enumerate(parts) for found in self._place_one(place, index, head, body)]

    def _place_one(self, place: Place, index: int, head_json: bytes, body: bytes | None) -> list[Placed | Unplaced]:
        head: Head | None = None
        rows: list[Placed] = []
        try:
            head = read_head(head_json)
            if head.t != ROW:
                return [read_plain(head, body)]
            self._place_row(head, body, rows)
        except ProtocolError as error:
            return [*markers_of(head, body), Unplaced(locate(error, place, index, head), event_head(head))]
        return list(rows)

    def _place_row(self, head: Head, body: bytes | None, placed: list[Placed]) -> None:
        if body is None or head.ohk or head.ccl:
            _place_reduced(head, require_body(body), placed)
            return
        matchers = self._tables.get((head.scm, head.tbl))
        if matchers is None:
            matchers = self._remember_table(head)
        for matcher in matchers:
            if _place_fast(matcher, head, body, placed):
                if matcher is not matchers[0]:
                    matchers.remove(matcher)
                    matchers.insert(0, matcher)
                return
        for shape in _place_parsed(head, read_row(body), placed):
            _remember_shape(matchers, shape)

    def _remember_table(self, head: Head) -> list[Matcher]:
        if len(self._tables) >= MAX_TABLES:
            del self._tables[next(iter(self._tables))]
        matchers: list[Matcher] = []
        self._tables[head.scm, head.tbl] = matchers
        return matchers


def _place_fast(matcher: Matcher, head: Head, body: bytes, placed: list[Placed]) -> bool:
    """Place a row if the matcher accepts it; False, with nothing placed, if it needs the full parse."""
    kind, end = _UPSERT, -1
    if body[-2:] != _END:
        return False
    if body[:6] == _AFTER:
        # A text value cannot hold the bytes of _OLD, since its quotes would be escaped; a column named p can, and then nothing matches.
        end = body.rfind(_OLD)
    elif body[:6] == _DELETED:
        kind = _DELETE
    else:
        return False
    try:
        if end < 0:
            image = body[5:-1]
            row = matcher.match(image)
        else:
            image = body[5 : end + 2]
            row = matcher.match(image)
            if not matcher.keeps_key(matcher.match_old(body[end + 7 : -1]), row):
                return False
        key = matcher.key_of(row)
    except (ValueError, RecursionError, ProtocolError):  # ValueError: msgspec's errors and UnicodeDecodeError
        return False
    placed.append(_row(PlacedRow, (head.ts, kind, matcher.shape, key, image)))
    return True


def _place_parsed(head: Head, images: RowImages, placed: list[Placed]) -> list[Shape]:
    """Place a row from its whole images and return the shapes found."""
    if images.operation is RowOperation.DELETE:
        rows = [_parsed_row(head, RowKind.DELETE, images.before or {}, images.before_json)]
    else:
        new = _parsed_row(head, RowKind.UPSERT, images.after or {}, images.after_json)
        rows = [*_replaced_row(head, images, new), new]
    placed += rows
    return [row.shape for row in rows]


def _replaced_row(head: Head, images: RowImages, new: PlacedRow) -> list[PlacedRow]:
    """Return the delete of the row that an update replaces under another key: ``p`` laid over ``u``, which may hold changed columns only.

    Rows without a handle key are their whole image, so each of their updates replaces one.
    """
    if images.operation is not RowOperation.UPDATE:
        return []
    old_json = _encode_json({**_members(images.after_json), **_members(images.before_json)})
    old = _parsed_row(head, RowKind.DELETE, {**(images.after or {}), **(images.before or {})}, old_json)
    if old.key and old.key == new.key and _handle_names(old) == _handle_names(new):
        return []
    return [old]


def _handle_names(row: PlacedRow) -> list[str]:
    return [column.name for column in row.shape.handle_key]


def _parsed_row(head: Head, kind: RowKind, image: Image, image_json: bytes) -> PlacedRow:
    columns = tuple(ColumnShape(name, column.mysql_type, column.flags) for name, column in image.items())
    shape = intern_shape(Shape(head.scm, head.tbl, columns))
    values = (image[column.name].value for column in shape.handle_key)
    key = encode_key([canonical_float(value) if isinstance(value, float) else value for value in values])
    return PlacedRow(head.ts, int(kind), shape, key, image_json)


def _remember_shape(matchers: list[Matcher], shape: Shape) -> None:
    matcher = compile_matcher(shape)
    if matcher is not None and matcher not in matchers:
        matchers.insert(0, matcher)
        del matchers[MAX_TABLE_SHAPES:]


def _place_reduced(head: Head, body: bytes, placed: list[Placed]) -> None:
    """Place what a producer left of a large row: a delete by its handle key is complete, anything else cannot be applied."""
    images = read_row(body)
    if head.ccl:
        raise _refuse("claim_check", "the row was too large for Kafka: its columns are in claim-check storage")
    deleted = images.before if images.operation is RowOperation.DELETE else None
    if deleted is None or not any(column.flags & Flag.HANDLE_KEY for column in deleted.values()):
        raise _refuse("handle_key_only", "the row was too large for Kafka: only its handle key was sent")
    _place_parsed(head, images, placed)


def _refuse(kind: str, message: str) -> ProtocolError:
    error = ProtocolError.at(None, kind, message)
    error.remedy = _REDUCED_REMEDY
    return error
