"""Placing a run of rows: the images of many rows of one shape are checked and their keys found by one call.

A body ``{"u":`` + X + ``}`` is split by its bytes, and a known shape's matcher reads X as one whole JSON object; the same with ``,"p":``
in between, and with ``d``. Everything else (another shape, compression, a repeated image, invalid UTF-8 in a key, anything wrong) takes the
full parse, which decides. The two agree, because the fast path accepts only what the full parse would read alike. Values outside of the
key are not looked at: the image decoder finds what is wrong with them.

Images are read as lines of one text. Why that accepts exactly what reading each of them alone accepts: every image begins with ``{`` and
ends with ``}``, JSON refuses a line feed within a string, and in JSON ``}`` is followed by ``{`` only between two documents. So no
document reaches over the end of an image, and if there are as many documents as images, each image is one. (As the elements of one array
they could: three images may be two halves of an element and two whole ones.)

Placing by the full parse: decides about every row that the fast path (``row_run``) does not take.

Event keys of plain rows, read without JSON where only the timestamp differs from one that was read before.

Producers write ``{"ts":458173202432000000,"scm":"shop","tbl":"orders","t":1}``: what follows 18 digits is the same for all rows of a
table, and represents the members that it was parsed into. So JSON is parsed once per table and range, not once per transaction.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import compress
from operator import itemgetter
from struct import Struct
from typing import Any, Final, TypeAlias

import msgspec

from applier.model.errors import ProtocolError
from applier.model.events import Image, PlacedRow, RowKind, RowOperation, Shape, TableName
from applier.model.position import Offset, RecordPosition, Stream
from applier.selection import EVERYTHING, SelectedTable, TableSelection
from applier.sources.column_flags import shape_of
from applier.sources.compiled import intern_shape
from applier.sources.open_protocol.matcher import Matcher, compile_matcher
from applier.sources.open_protocol.record import ROW, VERSION, Head, RowImages, locate, read_head, read_row
from applier.sources.port import PlacedRows
from applier.sources.row_key import canonical_float, encode_key
from applier.sources.selected_events import routed_rows, rows_of

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode_json = msgspec.json.Encoder().encode


def place_parsed(head: Head, body: bytes) -> list[PlacedRow]:
    """Return the row of a body, or two where an update changed its handle key. ProtocolError, without a position, as ``read_row``."""
    return place_images(head, read_row(body))


def place_images(head: Head, images: RowImages) -> list[PlacedRow]:
    """Return the row of a body that was read, or two where an update changed its handle key."""
    if images.operation is RowOperation.DELETE:
        return [_parsed_row(head, RowKind.DELETE, images.before or {}, images.before_json)]
    new = _parsed_row(head, RowKind.UPSERT, images.after or {}, images.after_json)
    return [*_replaced_row(head, images, new), new]


def _replaced_row(head: Head, images: RowImages, new: PlacedRow) -> list[PlacedRow]:
    """Return the delete of the row that an update replaces under another key: ``p`` laid over ``u``, which may hold changed columns only.

    Rows without a handle key are their whole image, so each of their updates replaces one, even alone.
    """
    is_replaced_by_itself = bool(images.before_json) and not new.key
    if images.operation is not RowOperation.UPDATE and not is_replaced_by_itself:
        return []
    old_json = _encode_json({**_members(images.after_json), **_members(images.before_json)})
    old = _parsed_row(head, RowKind.DELETE, {**(images.after or {}), **(images.before or {})}, old_json)
    if old.key and old.key == new.key and _handle_names(old) == _handle_names(new):
        return []
    return [old]


def _handle_names(row: PlacedRow) -> list[str]:
    return [column.name for column in row.shape.handle_key]


def _parsed_row(head: Head, kind: RowKind, image: Image, image_json: bytes) -> PlacedRow:
    shape = shape_of(head.scm, head.tbl, tuple((name, column.mysql_type, column.flags) for name, column in image.items()))
    # Only there: of rows with a key no one needs to know, and the partitions' rows stay of one shape.
    shape = intern_shape(shape if head.ptn is None or shape.handle_key else shape._replace(partitioned=True))
    values = (image[column.name].value for column in shape.handle_key)
    key = encode_key([canonical_float(value) if isinstance(value, float) else value for value in values])
    return PlacedRow(head.ts, int(kind), shape, key, image_json)


MAX_TABLE_SHAPES = 8
"""Shapes tried per table and kind before the full parse: whole images, deletes with keys only, and some that column changes leave."""

WORTH_JOINING: Final = 3
"""Rows of one table and kind in a run from which on they are read together. Two cost the same either way."""

AFTER, DELETED, OLD, END = b'{"u":{', b'{"d":{', b'}},"p":{', b"}}"
"""The fixed bytes of a body. A text value cannot hold the bytes of OLD, since its quotes would be escaped; a column named p can, and then
nothing matches."""

_UNUSUAL: Final = -1

FRONT: Final = len(b'{"u":')


class KnownTable:
    """The shapes of one table that a placer has seen, by what its rows do; ``unusual`` are rows that only the full parse can take.

    ``selected``: what the selection makes of the table. ``is_partitioned``: these rows name their physical partition.
    """

    __slots__ = ("deletes", "is_partitioned", "selected", "unusual", "upserts")

    def __init__(self, selected: SelectedTable, *, is_partitioned: bool = False) -> None:
        self.selected, self.is_partitioned = selected, is_partitioned
        self.upserts, self.deletes = KnownShapes(self, RowKind.UPSERT), KnownShapes(self, RowKind.DELETE)
        self.unusual = KnownShapes(self, _UNUSUAL)

    def learn(self, rows: Sequence[PlacedRow]) -> None:
        """Remember the shapes of rows that the full parse has read."""
        for row in rows:
            (self.upserts if row.kind == RowKind.UPSERT else self.deletes).learn(row.shape)


class KnownShapes:
    """The matchers of the shapes of one table and kind of row, the last used one first."""

    __slots__ = ("_matchers", "has_old", "kind", "table")

    def __init__(self, table: KnownTable, kind: int) -> None:
        self.table, self.kind = table, int(kind)
        # Of this range only. What the process knows from earlier ranges must not count: a bad value outside of the key is found by the
        # full parse and not by a matcher, and a range that another process reads again must give the same report.
        self._matchers: list[Matcher] = []
        self.has_old = False
        """Whether an update with an old image has come: where none comes, no one looks for one in each row (0.13 us)."""

    def learn(self, shape: Shape) -> None:
        """Remember a shape, unless it cannot be compiled."""
        matcher = compile_matcher(shape)
        if matcher is not None and matcher not in self._matchers:
            self._matchers.insert(0, matcher)
            del self._matchers[MAX_TABLE_SHAPES:]

    def match_all(self, images: Sequence[bytes], old: Sequence[bytes]) -> tuple[Shape, list[bytes]] | None:
        """Return the shape and the keys of rows that all have the shape used last; None if not all of them do. ``old``: b"" for none."""
        if not self._matchers:
            return None
        matcher = self._matchers[0]
        try:
            rows = matcher.match_lines(b"\n".join(images))
            if len(rows) != len(images):
                return None
            if any(old):
                old_rows = matcher.match_old_lines(b"\n".join(filter(None, old)))
                if not matcher.keep_keys(old_rows, list(compress(rows, old))):
                    return None
            return matcher.shape, matcher.keys_of(rows)
        except (ValueError, RecursionError, ProtocolError):  # ValueError: msgspec's errors and UnicodeDecodeError
            return None

    def match_one(self, image: bytes, old: bytes) -> tuple[Shape, bytes] | None:
        """Return the shape and the key of a row of a known shape; None if it needs the full parse."""
        for matcher in self._matchers:
            try:
                row = matcher.match(image)
                if old and not matcher.keeps_key(matcher.match_old(old), row):
                    continue
                key = matcher.key_of(row)
            except (ValueError, RecursionError, ProtocolError):
                continue
            if matcher is not self._matchers[0]:
                self._matchers.remove(matcher)
                self._matchers.insert(0, matcher)
            return matcher.shape, key
        return None


RunRow: TypeAlias = tuple[int, KnownShapes, int, int, bytes, bytes]
"""A row event of a run: commit_ts, what it may be, offset, index, image, old image (b"": none). For an unusual one the last is the body."""


def run_row(ts: int, table: KnownTable, offset: int, index: int, body: bytes) -> RunRow:
    """Split the body of a row event."""
    if body[-2:] == END:
        if body[:6] == AFTER:
            known = table.upserts
            return (
                (ts, known, offset, index, *split_old(body[FRONT:-1])) if known.has_old else (ts, known, offset, index, body[FRONT:-1], b"")
            )
        if body[:6] == DELETED:
            return ts, table.deletes, offset, index, body[FRONT:-1], b""
    return ts, table.unusual, offset, index, b"", body


def split_old(images: bytes) -> tuple[bytes, bytes]:
    """Split what follows ``{"u":`` into the image and the old image."""
    end = images.rfind(OLD)
    return (images, b"") if end < 0 else (images[: end + 2], images[end + len(OLD) - 1 :])


def place_run(stream: Stream, run: Sequence[RunRow]) -> PlacedRows:
    """Return the rows of a run of at least one. ProtocolError, with its position, of the first that cannot be read."""
    commit_ts, known, offset, index, image, old = zip(*run, strict=True)
    first = known[0]
    if known.count(first) == len(run) and (found := first.match_all(image, old)) is not None:
        shape, keys = found
        return PlacedRows((shape,), bytes(len(run)), commit_ts, bytes((first.kind,)) * len(run), offset, index, keys, image)
    matched = _Matched(len(run))
    by_shapes: dict[KnownShapes, list[int]] = {}
    for number, one in enumerate(known):
        by_shapes.setdefault(one, []).append(number)
    for one, numbers in by_shapes.items():
        matched.match(one, numbers, image, old)
    if None in matched.keys:
        return _place_in_order(stream, run, matched)
    kinds = [one.kind for one in known]
    return PlacedRows(tuple(matched.shapes), matched.shape, commit_ts, kinds, offset, index, matched.keys, image)


class _Matched:
    """The shapes and keys of a run of several tables or kinds. The key is None for a row that may need the full parse."""

    __slots__ = ("_numbers", "keys", "shape", "shapes")

    def __init__(self, count: int) -> None:
        self.shapes: list[Shape] = []
        self.shape = [0] * count
        self.keys: list[Any] = [None] * count
        self._numbers: dict[int, int] = {}

    def match(self, known: KnownShapes, numbers: Sequence[int], image: Sequence[bytes], old: Sequence[bytes]) -> None:
        """Match the rows of one table and kind: together, where they are several of one shape."""
        if len(numbers) >= WORTH_JOINING:
            chosen = itemgetter(*numbers)
            if (found := known.match_all(chosen(image), chosen(old))) is not None:
                number = self._number(found[0])
                for at, key in zip(numbers, found[1], strict=True):
                    self.keys[at], self.shape[at] = key, number
                return
        for at in numbers:
            if (one := known.match_one(image[at], old[at])) is not None:
                self.keys[at], self.shape[at] = one[1], self._number(one[0])

    def _number(self, shape: Shape) -> int:
        number = self._numbers.get(id(shape))
        if number is None:
            number = self._numbers[id(shape)] = len(self.shapes)
            self.shapes.append(shape)
        return number


def _place_in_order(stream: Stream, run: Sequence[RunRow], matched: _Matched) -> PlacedRows:
    """Place what was not matched by the full parse. In order, so that the first error is that of the first row."""
    rows = []
    for event, key, shape in zip(run, matched.keys, matched.shape, strict=True):
        if key is not None:
            rows.append((event[2], event[3], PlacedRow(event[0], event[1].kind, matched.shapes[shape], key, event[4])))
            continue
        try:
            rows += [(event[2], event[3], row) for row in place_row(event)]
        except ProtocolError as error:
            raise locate(error, RecordPosition(stream, Offset(event[2])), event[3], _head(event)) from error
    return rows_of(rows)


def place_row(event: RunRow) -> list[PlacedRow]:
    """Return the row of an event, or two where an update changed its handle key. ProtocolError, without a position."""
    ts, known, _, _, image, old = event
    if not old and known.kind == RowKind.UPSERT:
        image, old = split_old(image)
        known.has_old = known.has_old or bool(old)
    found = known.match_one(image, old) if image else None
    if found is not None:
        return [PlacedRow(ts, known.kind, found[0], found[1], image)]
    rows = routed_rows(known.table.selected, place_parsed(_head(event), _body(known, image, old)))
    known.table.learn(rows)
    return rows


def _head(event: RunRow) -> Head:
    table = event[1].table
    schema, name = table.selected.name
    return Head(ts=event[0], t=ROW, scm=schema, tbl=name, ptn=0 if table.is_partitioned else None)


def _body(known: KnownShapes, image: bytes, old: bytes) -> bytes:
    """Put the body together again, byte by byte as it came."""
    if not image:
        return old
    if known.kind == RowKind.DELETE:
        return b'{"d":' + image + b"}"
    return b'{"u":' + image + (b',"p":' + old if old else b"") + b"}"


MAX_TABLES: Final = 65_536
"""Tables whose shapes a placer remembers; the oldest is forgotten. Each takes some hundred bytes."""

_TS: Final = b'{"ts":'
_DIGITS: Final = 18
"""Of the timestamps of the years 2010 to 2085. Shorter and longer ones are read as JSON."""
_TAIL: Final = len(_TS) + _DIGITS
_LEAST: Final = 10 ** (_DIGITS - 1)

_VERSION: Final = len(VERSION)
_FRAME: Final = _VERSION + 8
_RECORD_TS: Final = _FRAME + len(_TS)
_RECORD_TAIL: Final = _FRAME + _TAIL


RowHead: TypeAlias = tuple[int, KnownTable]
"""What the event key of a plain row says: commit_ts and table. A plain tuple: a named one costs 0.2 us more, for each row."""


@lru_cache(maxsize=1024)
def _digits_of(size: int, count: int) -> Struct:
    """Return what cuts the timestamps out of ``count`` event keys of ``size`` bytes: 0.02 us each, 0.15 by slices."""
    before = _RECORD_TS - _VERSION
    return Struct(f"{_VERSION}x" + f"{before}x{_DIGITS}s{size - before - _DIGITS}x" * count)


class RowHeads:
    """Reads event keys of one range. What is no plain row (other events, reduced rows, anything wrong) is left to ``read_head``."""

    def __init__(self, selection: TableSelection = EVERYTHING) -> None:
        self._selection = selection
        self.has_left_out = False
        """Whether a table was met whose rows are skipped."""
        self._tables: dict[tuple[str, str, bool], KnownTable] = {}
        self._known: dict[bytes, tuple[bytes, KnownTable]] = {}

    def of_record(self, key: bytes | None) -> RowHead | None:
        """Return the head of a record of one event, if that is a plain row."""
        if key is None:
            return None
        # The tail fixes the length of the whole, and the front holds that length and the version: a record of exactly one event.
        known = self._known.get(key[_RECORD_TAIL:])
        if known is not None and key[:_RECORD_TS] == known[0] and (digits := key[_RECORD_TS:_RECORD_TAIL]).isdigit():
            number = int(digits)
            if number >= _LEAST:
                return number, known[1]
        if key[:_FRAME] != VERSION + (len(key) - _FRAME).to_bytes(8, "big", signed=True):
            return None
        return self.of_event(key[_FRAME:])

    def of_rows(self, key: bytes | None) -> tuple[Sequence[int], Sequence[KnownTable]] | None:
        """Return commit_ts and table of each of a record's events, if all of them are plain rows, and their keys are equally long."""
        if key is None or len(key) <= _FRAME or key[:_VERSION] != VERSION:
            return None
        size = 8 + int.from_bytes(key[_VERSION:_FRAME], "big")
        count, rest = divmod(len(key) - _VERSION, size)
        if rest:
            return None
        first = key[_VERSION : _VERSION + size]
        # Most records hold rows of one transaction and table: one comparison is enough for all of their keys.
        if first * count == key[_VERSION:]:
            head = self.of_event(first[8:])
            return None if head is None else ([head[0]] * count, [head[1]] * count)
        return self._of_times(key, first, size) or self._one_by_one(key, first, size)

    def _of_times(self, key: bytes, first: bytes, size: int) -> tuple[Sequence[int], Sequence[KnownTable]] | None:
        """Return the heads of events of one table that differ in their timestamps only, if the table is known."""
        front, tail = first[: _RECORD_TS - _VERSION], first[_RECORD_TAIL - _VERSION :]
        known = self._known.get(tail)
        if known is None or known[0] != VERSION + front:
            return None
        digits = _digits_of(size, (len(key) - _VERSION) // size).unpack(key)
        if front + (tail + front).join(digits) + tail != key[_VERSION:] or not b"".join(digits).isdigit():
            return None
        times = list(map(int, digits))
        return (times, [known[1]] * len(times)) if min(times) >= _LEAST else None

    def _one_by_one(self, key: bytes, first: bytes, size: int) -> tuple[Sequence[int], Sequence[KnownTable]] | None:
        times: list[int] = []
        tables: list[KnownTable] = []
        for at in range(_VERSION, len(key), size):
            one = key[at : at + size]
            head = self.of_event(one[8:]) if one[:8] == first[:8] else None
            if head is None:
                return None
            times.append(head[0])
            tables.append(head[1])
        return times, tables

    def of_event(self, head_json: bytes) -> RowHead | None:
        """Return the head of an event, if that is a plain row."""
        tail = head_json[_TAIL:]
        known = self._known.get(tail)
        digits = head_json[len(_TS) : _TAIL]
        is_usual = head_json[: len(_TS)] == _TS and digits.isdigit() and digits[0] != ord("0")
        if known is not None and is_usual:
            return int(digits), known[1]
        try:
            head = read_head(head_json)
        except ProtocolError:
            return None
        if head.t != ROW or head.ohk or head.ccl:
            return None
        table = self.table(head)
        if table.selected.ignored and not table.selected.is_out:  # which of its rows are skipped, only the full parse tells
            return None
        # A second "ts", however it is written, would count instead of the first one.
        if is_usual and len(digits) == _DIGITS and tail[:1] == b"," and b'"ts"' not in tail and b"\\" not in tail:
            self._remember(tail, table)
        return head.ts, table

    def _remember(self, tail: bytes, table: KnownTable) -> None:
        if len(self._known) >= MAX_TABLES:
            self._known.clear()
        size = len(tail) + _TAIL
        self._known[tail] = (VERSION + size.to_bytes(8, "big") + _TS, table)

    def table(self, head: Head) -> KnownTable:
        """Return what is known of the table of a row."""
        key = head.scm, head.tbl, head.ptn is not None
        return self._tables.get(key) or self._new_table(key)

    def _new_table(self, key: tuple[str, str, bool]) -> KnownTable:
        if len(self._tables) >= MAX_TABLES:
            del self._tables[next(iter(self._tables))]
        table = self._tables[key] = KnownTable(self._selection.table(TableName(*key[:2])), is_partitioned=key[2])
        self.has_left_out |= table.selected.is_out
        return table
