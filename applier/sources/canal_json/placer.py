"""Places the records of one range: runs of plain rows by their matchers, everything else one by one.

Large rows (canal_json_and_simple.md 2.6): a placeholder with the handle key in the record; the whole row in an object, or in upstream.
What all formats of TiCDC have in common is ``ticdc.large_row``. The handle key of such a row is all that its image holds: ``pkNames`` is
empty where it is a unique index. A delete by its handle key is complete.

Rows of one table and operation begin with the same bytes, up to ``,"es":``. What the full parse has found for them once, a ``RowMatcher``
checks of all others: a msgspec struct with what the record must be (names, operation, types of all columns) and what is wanted of it (the
timestamp, and the old values of the key). The image is cut out by its bytes. What a matcher refuses takes the full parse (``place_row``): a
refusal costs time and never decides anything. Values outside of the key are not looked at: the image decoder finds what is wrong there.

Why the bytes between ``,"data":[`` and ``],"_tidb":{"commitTs":`` + digits + ``}}`` at the record's end are its image. The matcher has read
the record as one JSON object. ``_tidb`` holds no brace, so the two at the end close it and the record: it is a member of the record, and
the array before it is one. The bytes between form one JSON object, by a second matcher. So they are all of an array that is the member
``data`` of the record, the last of this name. (No text holds ``,"data":[``: its quotes would be escaped.)

Records and images are read as lines of one text: see ``open_protocol.placer`` for why that accepts what each of them alone is.

Measured with 5 columns and 490 bytes: 1.4 us a row, the matchers take 0.8 of it; 12 us for the full parse.
"""

from binascii import a2b_base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec

from applier.model.errors import ProtocolError
from applier.model.events import (
    MARKER_IMAGE,
    AdminEvent,
    DdlEvent,
    Event,
    ExcludedTable,
    PlacedRow,
    ResolvedEvent,
    RowEvent,
    RowKind,
    RowOperation,
    Shape,
    TableName,
    Value,
)
from applier.model.position import Offset, RecordPosition, Stream
from applier.selection import EVERYTHING, SelectedTable, TableSelection
from applier.sources.canal_json.record import MAX_TS, CanalRecord, CanalRow, read_record, row_event, shape_of, unpacked, whole_event
from applier.sources.canal_json.value import ReadValues, key_values_of, read_value_of
from applier.sources.compiled import MAX_SHAPES, CompiledShapes, forget_shapes, intern_shape
from applier.sources.port import EventHead, Placed, PlacedEvent, PlacedRows, Record, Unplaced
from applier.sources.row_key import KEYLESS, canonical_float, encode_key, encode_plain
from applier.sources.selected_events import SelectedEvents, gather_rows, located
from applier.sources.ticdc.json_text import parse_object
from applier.sources.ticdc.large_row import (
    REFUSED,
    ClaimCheckStore,
    ClaimedObjects,
    WholeRowSources,
    as_placeholder,
    differs,
    no_columns,
    useless,
    with_claimed_rows,
)


def place_row(head: EventHead, row: CanalRow) -> list[PlacedRow]:
    """Return the row of an event, or a delete and an upsert. ProtocolError, without a position.

    An update is both where it has changed its key, and where the key is not on the wire: then it may have.
    """
    shape = intern_shape(shape_of(head.name, row))
    key = key_of(shape, row.data)
    if row.operation is RowOperation.DELETE:
        return [PlacedRow(head.ts, int(RowKind.DELETE), shape, key, row.data_json)]
    new = PlacedRow(head.ts, int(RowKind.UPSERT), shape, key, row.data_json)
    if row.operation is RowOperation.INSERT:
        return [new]
    old_key = key_of(shape, row.before)
    if old_key == key and not shape.has_unknown_key:
        return [new]
    return [PlacedRow(head.ts, int(RowKind.DELETE), shape, old_key, row.before_json), new]


def markers_of(head: EventHead, row: CanalRow) -> list[PlacedRow]:
    """Return a marker for each row that the event is about. ProtocolError if a key cannot be read."""
    shape = intern_shape(shape_of(head.name, row).key_alone())
    if not shape.columns:
        return []
    keys = {key_of(shape, image): None for image in ((row.data,) if row.old is None else (row.before, row.data))}
    return [PlacedRow(head.ts, int(RowKind.UPSERT), shape, key, MARKER_IMAGE) for key in keys]


def key_of(shape: Shape, texts: Mapping[str, str | None]) -> bytes:
    """Return the key of a row. ProtocolError (value_type)."""
    if not shape.handle_key:
        return KEYLESS
    values: list[Value] = []
    for column in shape.handle_key:
        text = cast("str", texts[column.name])  # a row whose key has a NULL is refused when it is read
        value = read_value_of(column, is_bytes=column.is_bytes)(text)
        values.append(canonical_float(value) if isinstance(value, float) else value)
    return encode_key(values)


HEAD_END: Final = b',"es":'
DATA: Final = b',"data":[{'
TAIL: Final = b'}],"_tidb":{"commitTs":'
END: Final = b"}}"
IMAGE_AT: Final = len(DATA) - 1
TS_AT: Final = len(TAIL)
USUAL_TS: Final = slice(-18 - len(END), -len(END))
"""The timestamp, if it has 18 digits, as in the years 2010 to 2085."""
USUAL_TAIL: Final = slice(-len(TAIL) - 18 - len(END), -18 - len(END))
USUAL_IMAGE_END: Final = -len(TAIL) - 18 - len(END) + 1
TAIL_BYTES: Final = len(TAIL) + 20 + len(END)
"""Where TAIL is looked for: no timestamp has more than 20 digits."""


class Matched(NamedTuple):
    """Rows that a matcher has read: their timestamps and keys. ``olds``: the images that they replace, where each replaces one."""

    commit_ts: Sequence[int]
    keys: Sequence[bytes]
    olds: Sequence[bytes] = ()


class RowMatcher(msgspec.Struct, eq=False, frozen=True):
    """Reads rows of one shape and operation. ``match`` returns None if one of them is not such a row."""

    shape: Shape
    kind: int
    read_records: Callable[[bytes], list[Any]]
    read_images: Callable[[bytes], list[Any]]
    keys_of: Callable[[list[Any]], Sequence[bytes]]
    keep_keys: Callable[[list[Any], list[Any]], bool]
    read_olds: Callable[[bytes], list[Any]] | None = None
    """Of updates whose key is not known: reads old images, which must be whole."""

    def match(self, records: Sequence[bytes], images: Sequence[bytes]) -> Matched | None:
        """Return the timestamps and the keys of some rows."""
        try:
            rows, found = self.read_records(b"\n".join(records)), self.read_images(b"\n".join(images))
            if not len(rows) == len(found) == len(records) or any(map(_is_ddl, rows)) or not self.keep_keys(rows, found):
                return None
            commit_ts, olds = list(map(_commit_ts, rows)), self._olds_of(rows)
            if olds is None or not 0 < min(commit_ts) <= max(commit_ts) <= MAX_TS:
                return None
            return Matched(commit_ts, self.keys_of(found), olds)
        except (ValueError, RecursionError, ProtocolError):  # ValueError: msgspec's errors and UnicodeDecodeError
            return None

    def _olds_of(self, rows: list[Any]) -> Sequence[bytes] | None:
        if self.read_olds is None:
            return ()
        olds = [bytes(old) for (old,) in map(_old, rows)]
        return olds if len(self.read_olds(b"\n".join(olds))) == len(olds) else None


_commit_ts: Final = attrgetter("_tidb.commitTs")
_is_ddl: Final = attrgetter("isDdl")
_old: Final = attrgetter("old")


def begin_range() -> None:
    """Forget the shapes of earlier ranges if they are many. Within a range none is forgotten: its report names each of them once."""
    forget_shapes(matcher.shape for matcher in _matchers.kept() if matcher is not None)


def matcher_of(shape: Shape, name: TableName, row: CanalRow, pk_names: Any) -> RowMatcher | None:
    """Return the matcher of rows like this one, of a table that upstream calls ``name``. None: such rows need the full parse."""
    described = (shape.encoding, row.operation, name, list(row.types.items()), pk_names)
    try:
        packed = msgspec.msgpack.encode(described)
    except UnicodeEncodeError:  # bytes that are not UTF-8, in the elements of an ENUM
        return None
    return _matchers.get(shape._replace(encoding=packed))


def _compile(described: Shape) -> RowMatcher | None:
    encoding, operation, name, types, pk_names = msgspec.msgpack.decode(described.encoding)
    shape = intern_shape(described._replace(encoding=encoding))
    try:
        record = _record_type(shape, operation, name, types, pk_names)
        image = _key_type("Image", shape, str)
        read_records, read_images = msgspec.json.Decoder(record), msgspec.json.Decoder(image)
        read_olds = msgspec.json.Decoder(_whole_type(shape))
    except (ValueError, TypeError):  # a name with quotes, backslashes or control characters
        return None
    is_update = operation == RowOperation.UPDATE
    # An update of a row whose key is not known is a delete and an upsert.
    replaces = is_update and shape.has_unknown_key
    return RowMatcher(
        shape=shape,
        kind=int(RowKind.DELETE if operation == RowOperation.DELETE else RowKind.UPSERT),
        read_records=read_records.decode_lines,
        read_images=read_images.decode_lines,
        keys_of=_keys_of(shape),
        keep_keys=_keep_keys(len(shape.handle_key)) if is_update and not replaces else lambda _rows, _found: True,
        read_olds=read_olds.decode_lines if replaces else None,
    )


def _record_type(shape: Shape, operation: str, name: Sequence[str], types: Sequence[Sequence[str]], pk_names: Any) -> type[msgspec.Struct]:
    type_fields: list[Any] = [(f"t{index}", Literal[text]) for index, (_, text) in enumerate(types)]
    type_names = {f"t{index}": column for index, (column, _) in enumerate(types)}
    old = tuple[_key_type("Old", shape, str | msgspec.UnsetType, msgspec.UNSET)]  # type: ignore[misc,valid-type] # made here
    fields: list[Any] = [
        ("database", Literal[name[0]]),
        ("table", Literal[name[1]]),
        # One that is repeated with another value would count instead of the first.
        ("pkNames", None if pk_names is None else tuple[tuple(Literal[column] for column in pk_names)]),  # type: ignore[misc] # made here
        ("isDdl", bool),
        ("type", Literal[operation.upper()]),
        ("mysqlType", msgspec.defstruct("Types", type_fields, rename=type_names, forbid_unknown_fields=True, gc=False)),
        ("old", None if operation != RowOperation.UPDATE else tuple[msgspec.Raw] if shape.has_unknown_key else old),
        ("_tidb", _Extension),
    ]
    return msgspec.defstruct("Record", fields, gc=False, kw_only=True)


class _Extension(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    commitTs: int  # noqa: N815 - the name on the wire


def _whole_type(shape: Shape) -> type[msgspec.Struct]:
    """Make the struct of a whole image."""
    fields: list[Any] = [(f"f{index}", str | None) for index in range(len(shape.columns))]
    names = {f"f{index}": column.name for index, column in enumerate(shape.columns)}
    return msgspec.defstruct("WholeImage", fields, rename=names, forbid_unknown_fields=True, gc=False)


def _key_type(kind: str, shape: Shape, value_type: Any, *default: Any) -> type[msgspec.Struct]:
    """Make the struct of an image, only its key is read."""
    fields: list[Any] = [(f"k{index}", value_type, *default) for index in range(len(shape.handle_key))]
    names = {f"k{index}": column.name for index, column in enumerate(shape.handle_key)}
    return msgspec.defstruct(kind, fields, rename=names, gc=False)


def _keys_of(shape: Shape) -> Callable[[list[Any]], Sequence[bytes]]:
    if not shape.handle_key:
        return lambda rows: [KEYLESS] * len(rows)
    readers = [(attrgetter(f"k{index}"), key_values_of(column, is_bytes=column.is_bytes)) for index, column in enumerate(shape.handle_key)]

    def keys_of(rows: list[Any]) -> Sequence[bytes]:
        columns = [_read(list(map(getter, rows)), reader) for getter, reader in readers]
        return list(map(encode_plain, zip(*columns, strict=True)))

    return keys_of


def _read(texts: list[str], reader: ReadValues | None) -> Sequence[Any]:
    return texts if reader is None else reader(texts)


def _keep_keys(count: int) -> Callable[[list[Any], list[Any]], bool]:
    """Return a function of records and images: whether no update has changed a value of the key."""
    getters = [attrgetter(f"k{index}") for index in range(count)]
    unset = msgspec.UNSET

    def keep_keys(rows: list[Any], images: list[Any]) -> bool:
        olds = [old for (old,) in map(_old, rows)]
        for getter in getters:
            before, after = list(map(getter, olds)), list(map(getter, images))
            # An old image may hold changed columns only.
            if before != after and any(one is not unset and one != other for one, other in zip(before, after, strict=True)):
                return False
        return True

    return keep_keys


_matchers: Final = CompiledShapes(_compile, MAX_SHAPES)


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
        self._found, self._is_out = found, is_out
        self.objects = ClaimedObjects(stream, found.claims, self._locations)

    def place(self, head: EventHead, row: CanalRow, offset: int) -> list[PlacedRow]:
        """Return the rows of an event. ProtocolError, without a position; SourceError with it if the storage fails."""
        if row.claim_check is not None:
            return self._place_claimed(head, row, offset)
        if not row.data:
            raise no_columns("the row was too large for Kafka: only its key was sent, and the row has no key")
        if row.operation is not RowOperation.DELETE and self._found.lookup is None:
            raise no_columns()
        return list(map(as_placeholder, place_row(head, row)))

    def _place_claimed(self, head: EventHead, row: CanalRow, offset: int) -> list[PlacedRow]:
        claimed = read_claim_check(self.objects.content(row.claim_check or "", offset), head, row)
        return place_row(claimed.head, claimed.row)

    def _locations(self, record: Record) -> Iterator[str]:
        # Most records hold no such row, and are not parsed for this.
        if record.value and b'"claimCheckLocation"' in (plain := unpacked(record.value)):
            found = read_record(record.key, plain)
            if found.is_row and not self._is_out(found.head()) and (location := found.row().claim_check):
                yield location


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


RUN_ROWS: Final = 256
"""Rows of a run at most. What one call decodes should stay in the processor's cache."""
MAX_HEADS: Final = 65_536
"""Beginnings of records that a placer remembers; then it begins again."""
MAX_MATCHERS: Final = 8
"""Shapes of one table and operation that are tried: deletes may be reduced, and types change."""


class KnownHead:
    """Rows that begin with the same bytes: of one table and operation. ``matchers``: their shapes, the last used one first."""

    __slots__ = ("_routed", "matchers", "selected")

    def __init__(self, selected: SelectedTable) -> None:
        # Of this range only. What the process knows from earlier ranges must not count: a bad value outside of the key is found by the
        # full parse and not by a matcher, and a range that another process reads again must give the same report.
        self.matchers: list[RowMatcher] = []
        self.selected = selected
        self._routed: dict[int, Shape] = {}

    def learn(self, matcher: RowMatcher) -> None:
        """Remember how rows are read."""
        if matcher not in self.matchers:
            self.matchers.insert(0, matcher)
            del self.matchers[MAX_MATCHERS:]

    def match(self, records: Sequence[bytes], images: Sequence[bytes]) -> tuple[RowMatcher, Matched] | None:
        """Return what the first matcher that knows all of these rows says of them."""
        for matcher in self.matchers:
            if (found := matcher.match(records, images)) is not None:
                if matcher is not self.matchers[0]:
                    self.matchers.remove(matcher)
                    self.matchers.insert(0, matcher)
                return matcher, found
        return None

    def shape_of(self, matcher: RowMatcher) -> Shape:
        """Return the shape of a matcher's rows in the sink."""
        if not self.selected.is_routed:
            return matcher.shape
        if id(matcher) not in self._routed:
            self._routed[id(matcher)] = intern_shape(self.selected.routed(matcher.shape))
        return self._routed[id(matcher)]


RunRow: TypeAlias = tuple[KnownHead, int, bytes, bytes]
"""A row of a run: its head, its offset, the record, its image."""


class _Columns:
    """The rows of a run, as columns. The key is None where no matcher has read the row."""

    __slots__ = ("_numbers", "_rows", "commit_ts", "keys", "kinds", "olds", "shape", "shapes")

    def __init__(self, rows: Sequence[RunRow]) -> None:
        self._rows = rows
        self.shapes: list[Shape] = []
        self.shape = [0] * len(rows)
        self.commit_ts = [0] * len(rows)
        self.kinds = bytearray(len(rows))
        self.keys: list[Any] = [None] * len(rows)
        self.olds: dict[int, bytes] = {}
        self._numbers: dict[int, int] = {}

    def match(self, head: KnownHead, chosen: Sequence[int]) -> None:
        """Read the rows of one head: together, and divided where they do not match as a whole."""
        found = head.match([self._rows[at][2] for at in chosen], [self._rows[at][3] for at in chosen])
        if found is not None:
            matcher, (commit_ts, keys, olds) = found
            self.olds.update(zip(chosen, olds, strict=False))
            number = self._number(head.shape_of(matcher))
            for at, ts, key in zip(chosen, commit_ts, keys, strict=True):
                self.keys[at], self.commit_ts[at], self.kinds[at], self.shape[at] = key, ts, matcher.kind, number
        elif len(chosen) > 1 and head.matchers:
            middle = len(chosen) // 2
            self.match(head, chosen[:middle])
            self.match(head, chosen[middle:])

    def rows(self, at: int) -> list[PlacedRow]:
        """Return a row, and before it the row that it replaces; [] if no matcher can read it."""
        if self.keys[at] is None:
            self.match(self._rows[at][0], (at,))
        if self.keys[at] is None:
            return []
        shape = self.shapes[self.shape[at]]
        row = PlacedRow(self.commit_ts[at], self.kinds[at], shape, self.keys[at], self._rows[at][3])
        if at not in self.olds:
            return [row]
        return [row._replace(kind=int(RowKind.DELETE), image=self.olds[at]), row]

    def _number(self, shape: Shape) -> int:
        number = self._numbers.get(id(shape))
        if number is None:
            number = self._numbers[id(shape)] = len(self.shapes)
            self.shapes.append(shape)
        return number


class CanalJsonPlacer:
    """Implements ``Placer``. Not thread-safe; compiled matchers are shared by the process."""

    def __init__(self, stream: Stream, whole_rows: WholeRowSources = REFUSED, selection: TableSelection = EVERYTHING) -> None:
        begin_range()
        self._events = SelectedEvents(stream, selection)
        self._large_rows = CanalLargeRows(stream, whole_rows, lambda head: self._events.table(head.name).is_out)
        self._heads: dict[bytes, KnownHead] = {}
        self._has_out = False

    def place_all(self, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        """Yield the events of some records in order: rows as columns. ProtocolError names the first record that cannot be read.

        Bad values outside of the handle key may be found only by the image decoder.
        """
        for first in range(0, len(records), RUN_ROWS):
            some = records[first : first + RUN_ROWS]
            self._large_rows.objects.begin(some)
            yield from self._place_some(some)

    def _place_some(self, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        run: list[RunRow] = []
        known = self._heads.get
        for record in records:
            offset, _, value = record
            # Written out here: a call per row would be a tenth of its cost. Slices, since rfind() takes five times as long.
            if value is not None and value[USUAL_TAIL] == TAIL and value[-2:] == END and value[USUAL_TS].isdigit():
                head, data_at = known(value[: value.find(HEAD_END)]), value.rfind(DATA)
                if head is not None and data_at > 0:
                    run.append((head, offset, value, value[data_at + IMAGE_AT : USUAL_IMAGE_END]))
                    continue
            if (row := self._unusual_row(record)) is not None:
                run.append(row)
                continue
            yield from self._end_run(run)
            run = []
            yield from gather_rows((record.offset, 0, placed) for placed in self._place_other(record))
        yield from self._end_run(run)

    def _unusual_row(self, record: Record) -> RunRow | None:
        """Return a row as one of a run that is compressed, followed by white space, or has a timestamp of other digits; None for others."""
        plain = record.value or b""
        if plain[-2:] != END or plain[:1] != b"{":
            try:
                plain = unpacked(plain).rstrip()
            except ProtocolError:
                return None
        head = self._heads.get(plain[: plain.find(HEAD_END)])
        tail_at, data_at = plain.rfind(TAIL, -TAIL_BYTES), plain.rfind(DATA)
        if head is None or plain[-2:] != END or not 0 < data_at < tail_at or not plain[tail_at + TS_AT : -2].isdigit():
            return None
        return head, record.offset, plain, plain[data_at + IMAGE_AT : tail_at + 1]

    def _end_run(self, run: Sequence[RunRow]) -> Iterator[PlacedRows | PlacedEvent]:
        if self._has_out:
            yield from _left_out(run)
            run = [row for row in run if not row[0].selected.is_out]
        if not run:
            return
        heads, offset, record, image = zip(*run, strict=True)
        head: KnownHead = heads[0]
        if heads.count(head) == len(heads) and (found := head.match(record, image)) is not None:
            matcher, matched = found
            yield _rows_of(head.shape_of(matcher), matcher.kind, matched, offset, image)
            return
        columns = _Columns(run)
        by_head: dict[KnownHead, list[int]] = {}
        for at, one in enumerate(heads):
            by_head.setdefault(one, []).append(at)
        for one, of_head in by_head.items():
            columns.match(one, of_head)
        if columns.olds or None in columns.keys:
            yield from gather_rows(self._place_in_order(run, columns))
        else:
            index = bytes(len(run))
            yield PlacedRows(columns.shapes, columns.shape, columns.commit_ts, columns.kinds, offset, index, columns.keys, image)

    def _place_in_order(self, run: Sequence[RunRow], columns: _Columns) -> Iterator[tuple[int, int, Placed]]:
        """Place what no matcher has read by the full parse. In order, so that the first error is that of the first row."""
        for at, (_, offset, record, _) in enumerate(run):
            # What the full parse has learned of one row counts for those after it, however a reader divides the records.
            placed: Sequence[Placed] = columns.rows(at) or self._place_other(Record(Offset(offset), None, record))
            yield from ((offset, 0, one) for one in placed)

    def _place_other(self, record: Record) -> Sequence[Placed]:
        """Place what is not known, and learn it if it is a plain row. ProtocolError names its position."""
        try:
            event = CanalEvent(read_record(record.key, record.value), self, record.offset)
        except ProtocolError as error:
            raise self._events.located(error, record.offset, None) from error
        placed = self._events.place(event, record.offset, 0)
        self._learn_excluded(event)
        return placed

    def place_each(self, offset: int, key: bytes | None, value: bytes | None) -> list[tuple[int, Placed | Unplaced]]:
        """Return the event of one record; one that cannot be read as markers and an ``Unplaced``. Raises nothing."""
        self._large_rows.objects.begin(())
        try:
            event = CanalEvent(read_record(key, value), self, offset)
        except ProtocolError as error:
            return self._events.unplaced(error, offset)
        return [(0, found) for found in self._events.place_or_mark(event, offset, 0)]

    def place_parsed(self, record: CanalRecord, head: EventHead, row: CanalRow, offset: int) -> list[PlacedRow]:
        """Place a row by the full parse, and learn how to read the others of its kind. ProtocolError, without a position."""
        if row.is_reduced:
            return self._large_rows.place(head, row, offset)
        placed = place_row(head, row)
        self._learn(record, head.name, row, placed[-1].shape)
        return placed

    def _learn(self, record: CanalRecord, name: TableName, row: CanalRow, shape: Shape) -> None:
        selected = self._events.table(name)
        # Which rows of such a table are excluded is decided row by row.
        if selected.ignored or (start := record.beginning(HEAD_END)) is None:
            return
        if (matcher := matcher_of(shape, name, row, record.pk_names)) is not None:
            self._head(start, selected).learn(matcher)

    def _learn_excluded(self, event: "CanalEvent") -> None:
        """Remember how rows begin that are not applied, so that they are not parsed."""
        if event.head is None or not event.is_row() or not (selected := self._events.table(event.head.name)).is_out:
            return
        if (start := event.beginning()) is not None:
            self._has_out = True
            self._head(start, selected)

    def _head(self, start: bytes, selected: SelectedTable) -> KnownHead:
        if len(self._heads) >= MAX_HEADS:
            self._heads.clear()
        return self._heads.setdefault(start, KnownHead(selected))


def _rows_of(shape: Shape, kind: int, matched: Matched, offset: Sequence[int], image: Sequence[bytes]) -> PlacedRows:
    commit_ts, keys, olds = matched
    kinds = bytes((kind,)) * len(keys)
    if olds:
        commit_ts = [ts for ts in commit_ts for _ in RowKind]
        offset = [one for one in offset for _ in RowKind]
        keys = [key for key in keys for _ in RowKind]
        kinds = bytes((RowKind.DELETE, RowKind.UPSERT)) * len(olds)
        image = [one for pair in zip(olds, image, strict=True) for one in pair]
    return PlacedRows((shape,), bytes(len(keys)), commit_ts, kinds, offset, bytes(len(keys)), keys, image)


def _left_out(run: Sequence[RunRow]) -> Iterator[PlacedEvent]:
    """Yield each table with skipped rows, at its last row: of a replay that comes first, nothing is missed."""
    last = {row[0].selected.name: row for row in run if row[0].selected.is_filtered}
    for name, (_, offset, record, _) in last.items():
        yield PlacedEvent(offset, 0, ExcludedTable(int(record[record.rfind(TAIL) + TS_AT : -2]), name))


class CanalEvent:
    """Implements ``UnreadEvent``."""

    __slots__ = ("_head", "_offset", "_placer", "_record")

    def __init__(self, record: CanalRecord, placer: CanalJsonPlacer, offset: int) -> None:
        self._record, self._placer, self._offset = record, placer, offset
        self._head: EventHead | None = None

    @property
    def head(self) -> EventHead | None:
        """What ``read_head`` has returned."""
        return self._head

    def beginning(self) -> bytes | None:
        """Return the bytes that all rows of this table and operation begin with."""
        return self._record.beginning(HEAD_END)

    def read_head(self) -> EventHead:
        """Read timestamp, table and kind."""
        self._head = self._record.head()
        return self._head

    def is_row(self) -> bool:
        """Whether it is the change of a row."""
        return self._record.is_row

    def operation(self) -> RowOperation:
        """Return what happened to the row."""
        return self._record.operation()

    def rows(self) -> list[PlacedRow]:
        """Place the row."""
        return self._placer.place_parsed(self._record, self._known, self._record.row(), self._offset)

    def plain(self) -> DdlEvent | ResolvedEvent | AdminEvent:
        """Read a DDL or a watermark."""
        return self._record.plain_event()

    def markers(self) -> list[PlacedRow]:
        """Return a marker for each row whose key can be read."""
        try:
            return markers_of(self._known, self._record.row())
        except ProtocolError:
            return []

    @property
    def _known(self) -> EventHead:
        if self._head is None:
            raise AssertionError("the head is read first")
        return self._head
