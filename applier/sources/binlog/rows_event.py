"""Rows events: WRITE, UPDATE and DELETE of versions 1 and 2, as rows with their keys, images left as the bytes that came.

Source: MySQL's ``rows_event.h``. An UPDATE holds two images for each row. Where the new one lacks columns of the old one (MINIMAL, and a
key that has not changed), the row's image is both of them: so it has its key, and each column that is known.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

from applier.model.errors import ApplierError, ProtocolError, Remedy
from applier.model.events import RowKind, RowOperation, Shape
from applier.selection import SelectedTable
from applier.sources.binlog.image_code import UNREADABLE, ImageCode, TableCode
from applier.sources.binlog.table_map import TABLE_ID_BYTES

WRITE, UPDATE, DELETE = RowOperation.INSERT, RowOperation.UPDATE, RowOperation.DELETE
OPERATIONS: Final = {23: WRITE, 24: UPDATE, 25: DELETE, 30: WRITE, 31: UPDATE, 32: DELETE}
"""Type of an event -> what it does."""
_VERSION_2: Final = 30
_FRONT: Final = TABLE_ID_BYTES + 2
"""Bytes of the table's number and the flags."""
_ONE_BYTE_WIDTH: Final = 250
"""Up to so many columns are counted in one byte."""
_NO_HIDDEN_ACTIONS: Final = 0x02 | 0x10
"""Flags of a rows event for which a replica executes no action of a foreign key: its session had ``foreign_key_checks = 0``
(NO_FOREIGN_KEY_CHECKS_F), or its server has written what the actions change (MySQL from 9.6 on, unless ``innodb_native_foreign_keys`` is
set). Seen on MySQL 9.7 and MariaDB 10.11."""
MAX_FRONTS: Final = 1024
"""Fronts of events that are kept for a table: with minimal images, each set of columns is another one."""
_length = Struct("<H").unpack_from
_OF_SEQUENCE: Final = frozenset(
    ["next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment", "cache_size", "cycle_option", "cycle_count"]
)
"""The columns of the table that MariaDB keeps a SEQUENCE in: its values come with the rows that have them."""
WHOLE_REMEDY: Final = Remedy(
    "binlog.set-row-image-and-repair",
    "Run on the primary: SET GLOBAL binlog_row_image = FULL, also in its configuration. Skip the transaction: `applier skip --position …`. "
    "When the replica has passed it, `applier verify --fix-sql FILE` writes the statements that repair its rows in the sink",
)
_OLD_TIMES: Final = frozenset({7, 11, 12})
"""TIMESTAMP, TIME and DATETIME of MariaDB under mysql56_temporal_format = OFF. With a fraction, nothing says how long they are."""
OLD_TIMES_REMEDY: Final = Remedy(
    "binlog.set-temporal-format",
    "Run on the primary: SET GLOBAL mysql56_temporal_format = ON, and ALTER TABLE … FORCE for the table. Then create the replica "
    "from a dump",
)
_FIRST, _ONE_UPSERT = (0,), (int(RowKind.UPSERT),)
_DELETE, _UPSERT = int(RowKind.DELETE), int(RowKind.UPSERT)


class EventRows(NamedTuple):
    """Rows of one event, as columns. ``number``: of the row in the event; an update of a key is two rows of one number."""

    shapes: Sequence[Shape]
    kind: Sequence[int]
    number: Sequence[int]
    key: Sequence[bytes]
    image: Sequence[bytes]


class Rows(NamedTuple):
    """A rows event without its rows: which columns its images have, the shapes of its rows, and how many bytes come before the rows.

    ``new``: of an UPDATE. ``shape``: of written rows, ``old_shape``: of deleted ones; ``is_alone``: the new image has every column of the
    old one, which then does not belong to the row's image.
    """

    kind: int
    old: ImageCode
    new: ImageCode | None
    shape: Shape
    old_shape: Shape
    is_alone: bool
    size: int


def _bitmaps(data: bytes, at: int, kind: int, columns: int) -> tuple[bytes, bytes, int]:
    """Read the front of a rows event's body: the columns of its images, of an UPDATE also of the new ones, and its length."""
    first = at
    at += _FRONT
    try:
        if kind >= _VERSION_2:
            at += _length(data, at)[0]
        width, at = data[at], at + 1
        if width > _ONE_BYTE_WIDTH:
            width, at = _length(data, at)[0], at + 2
    except UNREADABLE as cause:
        raise ProtocolError.at(None, "rows_event", "a rows event is too short") from cause
    if width != columns:
        raise ProtocolError.at(None, "rows_event", "the column count of a rows event differs from its map", columns=width, mapped=columns)
    size = (width + 7) // 8
    old, at = data[at : at + size], at + size
    new, at = (data[at : at + size], at + size) if OPERATIONS[kind] is UPDATE else (b"", at)
    if len(old) != size or len(new) not in {0, size}:
        raise ProtocolError.at(None, "rows_event", "a rows event is too short")
    return old, new, at - first


class MappedTable:
    """A table of upstream as one placer knows it: the selection's decision, and the shapes of its rows.

    ``ignored``: operations whose rows the replica does not have.
    """

    def __init__(self, code: TableCode, selected: SelectedTable, shapes: dict[Shape, Shape]) -> None:
        self.code, self.name = code, code.map.name
        self.ignored = frozenset(RowOperation) if _is_sequence(code) else selected.ignored
        self._selected = selected
        self._shapes = shapes
        self._known: dict[tuple[bytes, bytes, bool], Shape] = {}
        self._fronts: dict[tuple[int, bytes], Rows] = {}
        columns = len(code.columns)
        width = _FRONT + (1 if columns <= _ONE_BYTE_WIDTH else 3)
        size = (columns + 7) // 8
        self._front_bytes = {
            kind: width + (2 if kind >= _VERSION_2 else 0) + size * (2 if operation is UPDATE else 1)
            for kind, operation in OPERATIONS.items()
        }

    def place(self, data: bytes, at: int, end: int, kind: int) -> EventRows:
        """Place the rows of the event whose body is ``data[at:end]``. ProtocolError, without a position."""
        rows = self._rows(data, at, kind)
        try:
            return self._plain(data, rows, at, end) if rows.new is None else self._updates(data, rows, rows.new, at, end)
        except UNREADABLE as cause:
            raise self._unreadable() from cause

    def _unreadable(self) -> ProtocolError:
        error = ProtocolError.at(None, "row_image", "a row cannot be read: it is too short, or its key is invalid")
        if any(column.code.type in _OLD_TIMES for column in self.code.map.columns):
            error = ProtocolError.at(None, "old_times", "a row cannot be read: the binlog does not say how long its old types of time are")
            error.remedy = OLD_TIMES_REMEDY
        return error

    def images(self, data: bytes, at: int, end: int, kind: int) -> Iterator[tuple[Shape, bytes, Shape, bytes]]:
        """Yield the image of each row of an event with its shape; of an UPDATE the old one, and then the new one. ProtocolError.

        A new image that lacks columns takes them from the old one.
        """
        rows = self._rows(data, at, kind)
        at += rows.size
        while at < end:
            first, at = at, _end_of(rows.old, data, at)
            middle, at = at, at if rows.new is None else _end_of(rows.new, data, at)
            if at > end:
                raise ProtocolError.at(None, "row_image", "the last row is too short")
            yield rows.old_shape, data[first:middle], rows.shape, data[middle if rows.is_alone else first : at]

    def markers(self, data: bytes, at: int, end: int, kind: int) -> tuple[Shape, list[bytes]] | None:
        """Return the keys of the rows of an event that cannot be placed, if they can be read, each once; None: it has no key."""
        keys: dict[bytes, None] = {}
        try:
            rows = self._rows(data, at, kind)
            at += rows.size
            while at < end and self.code.key:
                old_at = at + rows.old.readers.null_bytes
                at, key = rows.old.readers[data[at:old_at]](data, old_at)
                keys[self._keys(rows.old, [key])[0]] = None
                if rows.new is not None:
                    new_at = at + rows.new.readers.null_bytes
                    at, new_key = rows.new.readers[data[at:new_at]](data, new_at)
                    keys[self.code.keys_of([new_key] if rows.new.has_key else _completed(rows.new, [key], [new_key]))[0]] = None
        except (ApplierError, *UNREADABLE):
            # The rows behind this one cannot be found.
            pass
        return (rows.old_shape, list(keys)) if keys else None

    def _rows(self, data: bytes, at: int, kind: int) -> Rows:
        """Return what the front of an event says. Events of one table and kind have few fronts: parsing one costs 2 us, knowing it 0.2."""
        front = data[at + TABLE_ID_BYTES : at + self._front_bytes[kind]]
        return self._fronts.get((kind, front)) or self._read_front(data, at, kind, front)

    def _read_front(self, data: bytes, at: int, kind: int, front: bytes) -> Rows:
        old, new, size = _bitmaps(data, at, kind, len(self.code.columns))
        old_code, new_code = self.code.image(old), self.code.image(new) if new else None
        is_alone = new_code is not None and set(old_code.places) <= set(new_code.places)
        # The first byte of the flags: they come behind the number of the table.
        hides_actions = not data[at + TABLE_ID_BYTES] & _NO_HIDDEN_ACTIONS
        old_shape = self._shape(old, b"", hides_actions=hides_actions)
        images = (new, b"") if is_alone else (old, new)
        shape = old_shape if new_code is None else self._shape(*images, hides_actions=hides_actions)
        rows = Rows(kind, old_code, new_code, shape, old_shape, is_alone, size)
        # Additional data make it longer: then each is parsed.
        if size == self._front_bytes[kind] and len(self._fronts) < MAX_FRONTS:
            self._fronts[kind, front] = rows
        return rows

    def _plain(self, data: bytes, rows: Rows, at: int, end: int) -> EventRows:
        readers, size = rows.old.readers, rows.old.readers.null_bytes
        keys, images = [], []
        at += rows.size
        while at < end:
            first, at = at, at + size
            at, key = readers[data[first:at]](data, at)
            keys.append(key)
            images.append(data[first:at])
        if at != end:
            raise ValueError("the last row is too short")
        count = len(keys)
        kind = _DELETE if OPERATIONS[rows.kind] is DELETE else _UPSERT
        if not self.code.key:
            self._check_whole(rows.shape)
        return EventRows([rows.shape] * count, [kind] * count, range(count), self._keys(rows.old, keys), images)

    def _keys(self, code: ImageCode, values: Sequence[tuple[object, ...]]) -> list[bytes]:
        if not code.has_key:
            raise ProtocolError.at(None, "row_image", "an image lacks a column of its table's key")
        return self.code.keys_of(values)

    def _updates(self, data: bytes, rows: Rows, new: ImageCode, at: int, end: int) -> EventRows:
        old = rows.old
        old_readers, old_size, new_readers, new_size = old.readers, old.readers.null_bytes, new.readers, new.readers.null_bytes
        before, after, bounds = [], [], []
        at += rows.size
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
        if not new.has_key:
            after = _completed(new, before, after) if old.has_key else after
        old_keys = self._keys(old, before)
        # A transaction of one row, which leaves the key as it is.
        if len(bounds) == 1 and before == after and self.code.key:
            return EventRows((rows.shape,), _ONE_UPSERT, _FIRST, old_keys, (data[middle if rows.is_alone else first : at],))
        # Compared as they are written: most updates leave the key as it is.
        new_keys = old_keys if after == before else self.code.keys_of(after)
        images = [data[middle if rows.is_alone else first : last] for first, middle, last in bounds]
        if old_keys == new_keys and self.code.key:
            return EventRows([rows.shape] * len(images), [_UPSERT] * len(images), range(len(images)), new_keys, images)
        found = EventRows([], [], [], [], [])
        for number, (first, middle, _) in enumerate(bounds):
            if old_keys[number] != new_keys[number] or not self.code.key:
                self._check_whole(rows.shape)
                _add(found, rows.old_shape, _DELETE, number, old_keys[number], data[first:middle])
            _add(found, rows.shape, _UPSERT, number, new_keys[number], images[number])
        return found

    def _check_whole(self, shape: Shape) -> None:
        """Refuse a row that lacks columns where nothing has them: under a new key, or without one."""
        if len(shape.columns) != len(self.code.columns):
            what = "an update changes the key of a row" if self.code.key else "the table has no key"
            error = ProtocolError.at(None, "partial_key", f"{what}, and the binlog does not have all columns of the row")
            error.remedy = WHOLE_REMEDY
            raise error

    def _shape(self, old: bytes, new: bytes, *, hides_actions: bool) -> Shape:
        identity = old, new, hides_actions
        found = self._known.get(identity)
        if found is None:
            shape = self.code.shape(*self.name, self.code.image(old), self.code.image(new) if new else None)
            shape = self._selected.routed(shape)._replace(hides_actions=hides_actions)
            found = self._known[identity] = self._shapes.setdefault(shape, shape)
        return found


def _is_sequence(code: TableCode) -> bool:
    return {column.name for column in code.columns} == _OF_SEQUENCE


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
