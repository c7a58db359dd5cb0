"""Rows events: WRITE, UPDATE and DELETE of versions 1 and 2, as rows with their keys, images left as the bytes that came.

Source: MySQL's ``rows_event.h``. An UPDATE holds two images for each row. Where the new one lacks columns of the old one (MINIMAL, and a
key that has not changed), the row's image is both of them: so it has its key, and each column that is known.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from applier.model.errors import ProtocolError
from applier.model.events import RowKind, RowOperation, Shape, TableName
from applier.model.remedy import SKIP_RECORD
from applier.selection import TableSelection
from applier.sources.binlog.image_code import ImageCode, TableCode
from applier.sources.binlog.row_code import UNREADABLE
from applier.sources.binlog.system_schema import is_system_schema

WRITE, UPDATE, DELETE = RowOperation.INSERT, RowOperation.UPDATE, RowOperation.DELETE
OPERATIONS: Final = {23: WRITE, 24: UPDATE, 25: DELETE, 30: WRITE, 31: UPDATE, 32: DELETE}
"""Type of an event -> what it does."""
_VERSION_2: Final = 30
_HEAD: Final = 8
"""Bytes of the table's number and the flags."""
_length = Struct("<H").unpack_from
_OF_SEQUENCE: Final = frozenset(
    ["next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment", "cache_size", "cycle_option", "cycle_count"]
)
"""The columns of the table that MariaDB keeps a SEQUENCE in: its values come with the rows that have them."""
WHOLE_REMEDY: Final = (
    "Run on the primary, before keys are changed: SET GLOBAL binlog_row_image = FULL. Copy this row by hand, and skip its event: "
    f"`{SKIP_RECORD}`"
)
_DELETE, _UPSERT = int(RowKind.DELETE), int(RowKind.UPSERT)


class EventRows(NamedTuple):
    """Rows of one event, as columns. ``number``: of the row in the event; an update of a key is two rows of one number."""

    shapes: Sequence[Shape]
    kind: Sequence[int]
    number: Sequence[int]
    key: Sequence[bytes]
    image: Sequence[bytes]


class Rows(NamedTuple):
    """A rows event without its rows: the bitmaps of the columns that its images have, and where the rows begin. ``new``: of an UPDATE."""

    old: bytes
    new: bytes
    begin: int


def read_head(data: bytes, at: int, kind: int, columns: int) -> Rows:
    """Read the front of a rows event's body. ProtocolError: it has not the columns of its table map."""
    at += _HEAD
    try:
        if kind >= _VERSION_2:
            at += _length(data, at)[0]
        width, at = data[at], at + 1
        if width > 250:
            width, at = _length(data, at)[0], at + 2
    except UNREADABLE as cause:
        raise ProtocolError.at(None, "rows_event", "a rows event is too short") from cause
    if width != columns:
        raise ProtocolError.at(None, "rows_event", "a rows event has not the columns of its table map", columns=width, mapped=columns)
    size = (width + 7) // 8
    old, at = data[at : at + size], at + size
    if OPERATIONS[kind] is not UPDATE:
        return Rows(old, b"", at)
    return Rows(old, data[at : at + size], at + size)


class MappedTable:
    """A table of upstream as one placer knows it: what the selection makes of it, and the shapes of its rows."""

    def __init__(self, code: TableCode, selection: TableSelection, shapes: dict[Shape, Shape]) -> None:
        self.code, self.name = code, code.map.name
        self.ignored = selection.ignored_rows(self.name)
        is_of_server = is_system_schema(self.name.schema) or {column.name for column in code.columns} == _OF_SEQUENCE
        self.is_filtered = not (is_of_server or selection.has(self.name))
        self.is_out = is_of_server or self.is_filtered or len(self.ignored) == len(RowOperation)
        self._sink_name = selection.name(self.name)
        self._shapes = shapes
        self._known: dict[tuple[bytes, bytes], Shape] = {}

    def place(self, data: bytes, at: int, end: int, kind: int) -> EventRows:
        """Place the rows of the event whose body is ``data[at:end]``. ProtocolError, without a place."""
        rows = read_head(data, at, kind, len(self.code.columns))
        try:
            if rows.new:
                return self._updates(data, rows, end)
            return self._plain(data, rows, end, _DELETE if OPERATIONS[kind] is DELETE else _UPSERT)
        except UNREADABLE as cause:
            raise ProtocolError.at(None, "row_image", "a row cannot be read: it is too short, or its key is out of order") from cause

    def images(self, data: bytes, at: int, end: int, kind: int) -> Iterator[tuple[Shape, bytes, Shape | None, bytes]]:
        """Yield the image of each row of an event with its shape; of an UPDATE the old one, and then the new one. ProtocolError.

        Of a new image that lacks columns, those of the old one come with it.
        """
        rows = read_head(data, at, kind, len(self.code.columns))
        old, new = self.code.image(rows.old), self.code.image(rows.new) if rows.new else None
        is_alone = new is not None and set(old.places) <= set(new.places)
        after = None if new is None else self._shape(rows.new, b"") if is_alone else self._shape(rows.old, rows.new)
        at = rows.begin
        while at < end:
            first, at = at, _end_of(old, data, at)
            middle, at = at, at if new is None else _end_of(new, data, at)
            if at > end:
                raise ProtocolError.at(None, "row_image", "the last row is too short")
            yield self._shape(rows.old, b""), data[first:middle], after, data[middle if is_alone else first : at]

    def _plain(self, data: bytes, rows: Rows, end: int, kind: int) -> EventRows:
        code = self.code.image(rows.old)
        readers, size = code.readers, code.readers.null_bytes
        keys, images = [], []
        at = rows.begin
        while at < end:
            first, at = at, at + size
            at, key = readers[data[first:at]](data, at)
            keys.append(key)
            images.append(data[first:at])
        if at != end:
            raise ValueError("the last row is too short")
        shapes = [self._shape(rows.old, b"")] * len(keys)
        return EventRows(shapes, [kind] * len(keys), range(len(keys)), self._keys(code, keys), images)

    def _keys(self, code: ImageCode, values: Sequence[tuple[object, ...]]) -> list[bytes]:
        if not code.has_key:
            raise ProtocolError.at(None, "row_image", "an image lacks a column of its table's key")
        return self.code.keys_of(values)

    def _updates(self, data: bytes, rows: Rows, end: int) -> EventRows:
        old, new = self.code.image(rows.old), self.code.image(rows.new)
        # The new image alone, if it has every column of the old one.
        is_alone = set(old.places) <= set(new.places)
        old_readers, old_size, new_readers, new_size = old.readers, old.readers.null_bytes, new.readers, new.readers.null_bytes
        before, after, bounds = [], [], []
        at = rows.begin
        while at < end:
            first, at = at, at + old_size
            middle, key = old_readers[data[first:at]](data, at)
            before.append(key)
            at = middle + new_size
            at, key = new_readers[data[middle:at]](data, at)
            after.append(key)
            bounds.append((first, middle, at))
        if at != end:
            raise ValueError("the last row is too short")
        old_keys = self._keys(old, before)
        new_keys = self.code.keys_of(after if new.has_key else _completed(new, before, after))
        shape = self._shape(rows.new, b"") if is_alone else self._shape(rows.old, rows.new)
        images = [data[middle if is_alone else first : last] for first, middle, last in bounds]
        if old_keys == new_keys and self.code.key:
            return EventRows([shape] * len(images), [_UPSERT] * len(images), range(len(images)), new_keys, images)
        found = EventRows([], [], [], [], [])
        for number, (first, middle, _) in enumerate(bounds):
            if old_keys[number] != new_keys[number] or not self.code.key:
                self._check_whole(shape)
                _add(found, self._shape(rows.old, b""), _DELETE, number, old_keys[number], data[first:middle])
            _add(found, shape, _UPSERT, number, new_keys[number], images[number])
        return found

    def _check_whole(self, shape: Shape) -> None:
        """Refuse the row of a new key that lacks columns: they are those of the old key's row, which may be anywhere."""
        if len(shape.columns) != len(self.code.columns):
            message = "an update changes the key of a row, and the binlog does not have all columns of the row"
            error = ProtocolError.at(None, "partial_key", message)
            error.remedy = WHOLE_REMEDY
            raise error

    def _shape(self, old: bytes, new: bytes) -> Shape:
        found = self._known.get((old, new))
        if found is None:
            shape = self.code.shape(*self._sink_name, self.code.image(old), self.code.image(new) if new else None)
            if self._sink_name != self.name:
                shape = shape._replace(routed_from=TableName(*self.name))
            found = self._known[old, new] = self._shapes.setdefault(shape, shape)
        return found


def _end_of(code: ImageCode, data: bytes, at: int) -> int:
    values = at + code.readers.null_bytes
    try:
        return code.readers[data[at:values]](data, values)[0]
    except UNREADABLE as cause:
        raise ProtocolError.at(None, "row_image", "a row is too short") from cause


def _add(rows: EventRows, shape: Shape, kind: int, number: int, key: bytes, image: bytes) -> None:
    for column, value in zip(rows, (shape, kind, number, key, image), strict=True):
        column.append(value)  # type: ignore[attr-defined] # lists, as they were made


def _completed(new: ImageCode, before: Sequence[tuple[object, ...]], after: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Return the keys of new images that lack columns of the key: those have not changed."""
    in_new = [place >= 0 for place in new.key_places]
    found = []
    for one, other in zip(before, after, strict=True):
        rest = iter(other)
        found.append(tuple(next(rest) if is_new else one[at] for at, is_new in enumerate(in_new)))
    return found
