"""The hot path: the position of each event of a range's records (table, timestamp, operation, key), images left as the bytes that came.

Rows that follow one another are a run, whichever tables they belong to; other events end it. So most of what a row costs
is paid per run: one call for hundreds of images.

What is still known of an unreadable event: which rows it is about.

A row event whose key can be read, although something else in it cannot, leaves a marker for each key (``MARKER_IMAGE``).

Large rows (open_protocol.md 2.9): a placeholder with the handle key in the record; the whole row in an object, or in upstream. What all
formats of TiCDC have in common is ``ticdc.large_row``. A delete by its handle key is complete.

Placing a run: the images of many rows of one shape are checked and their keys found by one call. A body ``{"u":`` + X + ``}`` is split by
its bytes, and a known shape's matcher reads X as one whole JSON object; the same with ``,"p":`` in between, and with ``d``. Everything
else (another shape, compression, a repeated image, invalid UTF-8 in a key, anything wrong) takes the full parse, which decides. The two
agree, because the fast path accepts only what the full parse would read alike. Values outside of the key are not looked at: the image
decoder finds what is wrong with them.

Images are read as lines of one text. Why that accepts exactly what reading each of them alone accepts: every image begins with ``{`` and
ends with ``}``, JSON refuses a line feed within a string, and in JSON ``}`` is followed by ``{`` only between two documents. So no
document reaches over the end of an image, and if there are as many documents as images, each image is one. (As the elements of one array
they could: three images may be two halves of an element and two whole ones.)

Event keys of plain rows are read without JSON where only the timestamp differs from one that was read before. Producers write
``{"ts":458173202432000000,"scm":"shop","tbl":"orders","t":1}``: what follows 18 digits is the same for all rows of a table, and represents
the members that it was parsed into. So JSON is parsed once per table and range, not once per transaction.
"""

from binascii import a2b_base64
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import compress, repeat
from operator import itemgetter
from struct import Struct
from struct import error as StructError  # noqa: N812 - a class
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from applier.model.errors import ProtocolError
from applier.model.events import (
    MARKER_IMAGE,
    AdminEvent,
    DdlEvent,
    Event,
    ExcludedTable,
    Image,
    PlacedRow,
    ResolvedEvent,
    RowEvent,
    RowKind,
    RowOperation,
    Shape,
    TableName,
)
from applier.model.position import Offset, RecordPosition, Stream, Ts
from applier.selection import EVERYTHING, SelectedTable, TableSelection
from applier.sources.column_flags import shape_of
from applier.sources.compiled import intern_shape
from applier.sources.open_protocol.matcher import Matcher, begin_range, compile_matcher
from applier.sources.open_protocol.record import (
    DDL,
    ROW,
    VERSION,
    Head,
    RowImages,
    decode_record,
    event_head,
    locate,
    read_head,
    read_plain,
    read_row,
    read_row_event,
    require_body,
    split_record,
    split_row,
)
from applier.sources.open_protocol.value import is_of_handle, read_column
from applier.sources.port import EventHead, Placed, PlacedEvent, PlacedRows, Record, Unplaced
from applier.sources.row_key import canonical_float, encode_key
from applier.sources.selected_events import SelectedEvents, gather_rows, routed_rows, rows_of
from applier.sources.ticdc.json_text import is_valid_text, parse, parse_object
from applier.sources.ticdc.large_row import (
    REFUSED,
    ClaimCheckStore,
    ClaimedObjects,
    WholeRowSources,
    as_placeholder,
    check_claimed,
    differs,
    no_columns,
    useless,
    with_claimed_rows,
)

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
"""From so many rows of one table and kind in a run on, they are read together. Two cost the same either way."""

AFTER, DELETED, OLD, END = b'{"u":{', b'{"d":{', b'}},"p":{', b"}}"
"""The fixed bytes of a body. A text value cannot hold the bytes of OLD, since its quotes would be escaped; a column named p can, and then
nothing matches."""

_UNUSUAL: Final = -1

FRONT: Final = len(b'{"u":')


class KnownTable:
    """The shapes of one table that a placer has seen, by what its rows do; ``unusual`` are rows that only the full parse can take.

    ``selected``: the selection's decision about the table. ``is_partitioned``: these rows name their physical partition.
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
"""Tables whose shapes a placer remembers; the oldest is forgotten. Each takes a few hundred bytes."""

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
    """Reads event keys of one range. Anything but a plain row (other events, reduced rows, anything wrong) is left to ``read_head``."""

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
        self._found, self._is_out = found, is_out
        self.objects = ClaimedObjects(stream, found.claims, self._locations)

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
        announced = read_row_event(head, body)
        claimed = read_claim_check(self.objects.content(head.ccl or "", offset), announced)
        return place_parsed(claimed.head, claimed.body)

    def _locations(self, record: Record) -> list[str]:
        # Most records hold no such row, and their keys are not parsed for this.
        if record.key is None or b'"ccl"' not in record.key:
            return []
        heads = [read_head(head_json) for head_json, _ in split_record(record.key, record.value)]
        return [head.ccl for head in heads if head.t == ROW and head.ccl and not self._is_out(head)]


def _has_handle_key(image: Image | None) -> bool:
    return any(column.is_key for column in (image or {}).values())


def whole_events(record: Record, position: RecordPosition, claims: ClaimCheckStore | None) -> Sequence[Event]:
    """Return the events of one record, claim-check rows as their objects hold them. Raises as ``with_claimed_rows``."""
    events = decode_record(record.key, record.value, position)
    return with_claimed_rows(events, position, claims, lambda content, row: read_claim_check(content, row, position).row)


def markers_of(head: Head | None, body: bytes | None) -> list[PlacedRow]:
    """Return a marker for each row that the event is about, if its keys can be read; [] for anything but a row event."""
    if head is None or head.t != ROW or body is None:
        return []
    try:
        row = split_row(body)
        after, old, deleted = (_columns(bytes(raw)) for raw in (row.u, row.p, row.d))
    except ProtocolError:
        return []
    images = [image for image in ({**after, **old} if old else {}, after, deleted) if image]
    markers = [marker for image in images if (marker := _marker(head, image)) is not None]
    return list({marker.key: marker for marker in markers}.values())


def _columns(data: bytes) -> dict[str, Any]:
    document = parse(data)
    return document if isinstance(document, dict) and all(map(is_valid_text, document)) else {}


def _marker(head: Head, image: dict[str, Any]) -> PlacedRow | None:
    try:
        handle = {name: read_column(name, members) for name, members in image.items() if is_of_handle(name, members)}
    except ProtocolError:
        return None
    if not handle:
        return None
    columns = tuple((name, column.mysql_type, column.flags) for name, column in handle.items())
    shape = intern_shape(shape_of(head.scm, head.tbl, columns))
    values = (handle[column.name].value for column in shape.handle_key)
    key = encode_key([canonical_float(value) if isinstance(value, float) else value for value in values])
    return PlacedRow(head.ts, int(RowKind.UPSERT), shape, key, MARKER_IMAGE)


RUN_ROWS: Final = 256
"""Approximate number of rows of a run. What one call decodes should stay in the processor's cache: 512 rows of 40 columns cost a fifth
more."""

_front = Struct(">Q6s").unpack_from
_FRONT_BYTES: Final = 14
_IMAGE_AT: Final = 13


class OpenProtocolPlacer:
    """Places the records of one range. Not thread-safe; compiled shapes are shared by the process."""

    def __init__(self, stream: Stream, whole_rows: WholeRowSources = REFUSED, selection: TableSelection = EVERYTHING) -> None:
        begin_range()
        self._stream = stream
        self._heads = RowHeads(selection)
        self._large_rows = LargeRowPlacer(stream, whole_rows, lambda head: self._heads.table(head).selected.is_out)
        self._events = SelectedEvents(stream, selection)

    def place_all(self, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        """Yield the events of some records in order: rows as columns, two where an update changed its handle key.

        ProtocolError as ``decode_record``, and for rows that cannot be applied: handle_key_only, claim_check. Bad values outside of
        the handle key may be found only by the image decoder.
        """
        run: list[RunRow] = []
        for first in range(0, len(records), RUN_ROWS):
            some = records[first : first + RUN_ROWS]
            self._large_rows.objects.begin(some)
            yield from self._place_some(run, some)
            yield from self._end_run(run)

    def _place_some(self, run: list[RunRow], records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        last_key: bytes | None = None
        head = None
        for offset, key, value in records:
            # Rows of one transaction and table have equal keys.
            if key != last_key:
                head, last_key = self._heads.of_record(key), key
            # A record of one plain row, written out here: a call per row would be a fifth of its cost.
            if head is not None and value and value[-2:] == END and len(value) > _FRONT_BYTES:
                length, front = _front(value)
                if length + 8 == len(value):
                    ts, table = head
                    if front == AFTER:
                        known = table.upserts
                        image, old = split_old(value[_IMAGE_AT:-1]) if known.has_old else (value[_IMAGE_AT:-1], b"")
                        run.append((ts, known, offset, 0, image, old))
                        continue
                    if front == DELETED:
                        run.append((ts, table.deletes, offset, 0, value[_IMAGE_AT:-1], b""))
                        continue
            if head is not None or not self._add_rows(run, offset, key, value):
                yield from self._place_record(run, offset, key, value)
            if len(run) >= RUN_ROWS:
                yield from self._end_run(run)

    def _add_rows(self, run: list[RunRow], offset: int, key: bytes | None, value: bytes | None) -> bool:
        """Add the rows of a record that holds plain rows only, in their usual form; False, with nothing added, for any other record."""
        heads = self._heads.of_rows(key)
        if not heads or not value:
            return False
        times, tables = heads
        known: list[KnownShapes] = []
        images: list[bytes] = []
        old: list[bytes] = [b""] * len(tables)
        at = 0
        try:
            for index, table in enumerate(tables):
                length, front = _front(value, at)
                image_at = at + _IMAGE_AT
                at += 8 + length
                if front == AFTER:
                    shapes = table.upserts
                elif front == DELETED:
                    shapes = table.deletes
                else:
                    return False
                if value[at - 2 : at] != END:
                    return False
                known.append(shapes)
                images.append(value[image_at : at - 1])
                if shapes.has_old:
                    images[index], old[index] = split_old(images[index])
        except StructError:  # the value is too short
            return False
        if at != len(value):
            return False
        run += zip(times, known, repeat(offset), range(len(known)), images, old, strict=False)
        return True

    def _place_record(self, run: list[RunRow], offset: int, key: bytes | None, value: bytes | None) -> Iterator[PlacedRows | PlacedEvent]:
        """Add the rows of a record to the run; yield what ends it, and events that are not plain rows."""
        try:
            parts = split_record(key, value)
        except ProtocolError as error:
            yield from self._end_run(run)
            raise locate(error, RecordPosition(self._stream, Offset(offset)), None, None) from error
        for index, (head_json, body) in enumerate(parts):
            head = None if body is None else self._heads.of_event(head_json)
            if head is not None and body is not None:
                run.append(run_row(*head, offset, index, body))
            else:
                yield from self._end_run(run)
                placed = self._place_other(offset, index, head_json, body)
                if placed is not None:
                    yield placed

    def _left_out(self, run: Sequence[RunRow]) -> Iterator[PlacedEvent]:
        """Yield each table with skipped rows, at its last row: of a replay that comes first, nothing is missed."""
        filtered = {row[1].table: (row[0], row[1].table.selected.name, row[2], row[3]) for row in run if row[1].table.selected.is_filtered}
        for ts, name, offset, index in filtered.values():
            yield PlacedEvent(offset, index, ExcludedTable(ts, name))

    def _end_run(self, run: list[RunRow]) -> Iterator[PlacedRows | PlacedEvent]:
        # Here and not where a row is added to the run: there it would cost something for each row of every table.
        kept = run
        if self._heads.has_left_out:
            kept = [row for row in run if not row[1].table.selected.is_out]
            yield from self._left_out(run)
        if kept:
            rows = place_run(self._stream, kept)
            run.clear()
            yield rows
        else:
            run.clear()

    def _place_other(self, offset: int, index: int, head_json: bytes, body: bytes | None) -> PlacedRows | PlacedEvent | None:
        """Place an event that is not a plain row; None if the selection excludes it."""
        event = _OpenEvent(self._heads, self._large_rows, offset, index, (head_json, body))
        placed = self._events.place(event, offset, index)
        return next(gather_rows((offset, index, found) for found in placed), None)

    def place_each(self, offset: int, key: bytes | None, value: bytes | None) -> list[tuple[int, Placed | Unplaced]]:
        """Return the events of one record, each with its index; an event that cannot be read as markers and an ``Unplaced``.

        A record that cannot be taken apart is one ``Unplaced`` with the index ``WHOLE_RECORD``. Raises nothing.
        """
        self._large_rows.objects.begin(())
        try:
            parts = split_record(key, value)
        except ProtocolError as error:
            return self._events.unplaced(error, offset)
        return [
            (index, found)
            for index, part in enumerate(parts)
            for found in self._events.place_or_mark(_OpenEvent(self._heads, self._large_rows, offset, index, part), offset, index)
        ]


class _OpenEvent:
    """Implements ``UnreadEvent``."""

    __slots__ = ("_body", "_head", "_head_json", "_heads", "_index", "_large_rows", "_offset")

    def __init__(self, heads: RowHeads, large_rows: LargeRowPlacer, offset: int, index: int, part: tuple[bytes, bytes | None]) -> None:
        self._heads, self._large_rows = heads, large_rows
        self._offset, self._index = offset, index
        self._head_json, self._body = part
        self._head: Head | None = None

    @property
    def head(self) -> EventHead | None:
        """What the event key says."""
        return event_head(self._head)

    def read_head(self) -> EventHead:
        """Read the event key."""
        self._head = read_head(self._head_json)
        return EventHead(Ts(self._head.ts), TableName(self._head.scm, self._head.tbl), self._head.t == DDL)

    def is_row(self) -> bool:
        """Whether it is the change of a row."""
        return self._known.t == ROW

    def operation(self) -> RowOperation:
        """Read the body for it."""
        return read_row(require_body(self._body)).operation

    def rows(self) -> list[PlacedRow]:
        """Place the row: with the shapes of the range if it is a plain one."""
        head, body = self._known, require_body(self._body)
        plain = self._heads.of_event(self._head_json)
        if plain is not None:
            return place_row(run_row(*plain, self._offset, self._index, body))
        return self._large_rows.place(head, body, self._offset) if head.ohk or head.ccl else place_parsed(head, body)

    def plain(self) -> DdlEvent | ResolvedEvent | AdminEvent:
        """Read the body."""
        return read_plain(self._known, self._body)

    def markers(self) -> list[PlacedRow]:
        """Return a marker for each row whose key can be read."""
        return markers_of(self._head, self._body)

    @property
    def _known(self) -> Head:
        if self._head is None:
            raise AssertionError("the head is read first")
        return self._head
