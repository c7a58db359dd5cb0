"""Bytes in, events out: the format's side of the source's port."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote

from applier.model.errors import ProtocolError
from applier.model.events import (
    MARKER_IMAGE,
    UNKNOWN_KEYS,
    Column,
    DdlEvent,
    Event,
    Image,
    PlacedRow,
    ResolvedEvent,
    RowEvent,
    RowKind,
    RowOperation,
    Shape,
    TableName,
    Value,
)
from applier.model.position import RecordPosition, Stream, Ts
from applier.selection import EVERYTHING, TableSelection
from applier.sources.column_flags import keys_of, shape_of
from applier.sources.compiled import intern_shape
from applier.sources.port import EventHead, Placed, PlacedEvent, PlacedRows, Record, Unplaced
from applier.sources.row_key import decode_key, encode_key
from applier.sources.selected_events import SelectedEvents, gather_rows, located
from applier.sources.ticdc.large_row import REFUSED, WholeRowSources

INTEGER = 3
VERBS = {"put": 5, "del": 5, "upd": 7, "ddl": 6, "resolved": 2}
ROWS = {"put": RowOperation.UPDATE, "upd": RowOperation.UPDATE, "del": RowOperation.DELETE}
NO_FLAGS, BETWEEN = "?", "|"
"""Verb -> how many fields it has at least."""


def _refuse(kind: str, message: str) -> ProtocolError:
    return ProtocolError.at(None, kind, message)


def _value(mysql_type: int, text: str) -> Value:
    if text == "~":
        return None
    try:
        return int(text) if mysql_type == INTEGER else unquote(text)
    except ValueError as cause:
        raise _refuse("value_type", "a value does not fit the type of its column") from cause


class LineEvent:
    """Implements ``UnreadEvent``."""

    def __init__(self, line: str) -> None:
        self._fields = line.split(" ")
        self.head: EventHead | None = None

    def read_head(self) -> EventHead:
        verb = self._fields[0]
        if verb not in VERBS or len(self._fields) < VERBS[verb] or not self._fields[1].isdigit():
            raise _refuse("event_type", "the line is no event")
        name = TableName("", "") if verb == "resolved" else TableName(unquote(self._fields[2]), unquote(self._fields[3]).strip("~"))
        self.head = EventHead(Ts(int(self._fields[1])), name, verb == "ddl")
        return self.head

    def is_row(self) -> bool:
        return self._fields[0] in ROWS

    def operation(self) -> RowOperation:
        return ROWS[self._fields[0]]

    def rows(self) -> list[PlacedRow]:
        return [self._placed(kind, *self._columns(fields)) for kind, fields in self._images()]

    def plain(self) -> DdlEvent | ResolvedEvent:
        ts, name, is_ddl = self.head or self.read_head()
        if not is_ddl:
            return ResolvedEvent(ts)
        ddl_type, query = self._fields[4:6]
        return DdlEvent(commit_ts=ts, schema=name.schema, table=name.table, query=unquote(query), ddl_type=int(ddl_type))

    def markers(self) -> list[PlacedRow]:
        try:
            rows = self.rows()
        except ProtocolError:
            return []
        # Of rows without a known key there is none to mark.
        return [
            row._replace(kind=int(RowKind.UPSERT), shape=intern_shape(row.shape.key_alone()), image=MARKER_IMAGE) for row in rows if row.key
        ]

    def event(self) -> Event:
        """Return the whole event, every value decoded."""
        ts, name, _ = self.read_head()
        if not self.is_row():
            return self.plain()
        images = {kind: self._image(fields) for kind, fields in self._images()}
        return RowEvent(
            commit_ts=ts,
            schema=name.schema,
            table=name.table,
            partition_id=None,
            operation=self.operation(),
            only_handle_key=False,
            claim_check=None,
            after=images.get(RowKind.UPSERT),
            before=images.get(RowKind.DELETE),
        )

    def _images(self) -> list[tuple[RowKind, list[str]]]:
        """Return the images, the one before first."""
        fields, verb = self._fields[4:], self._fields[0]
        if verb != "upd":
            return [(RowKind.DELETE if verb == "del" else RowKind.UPSERT, fields)]
        if BETWEEN not in fields:
            raise _refuse("field_type", "the row has one image")
        middle = fields.index(BETWEEN)
        return [(RowKind.DELETE, fields[:middle]), (RowKind.UPSERT, fields[middle + 1 :])]

    def _image(self, fields: list[str]) -> Image:
        shape, texts = self._columns(fields)
        return {c.name: Column(c.mysql_type, c.flags, _value(c.mysql_type, texts[c.name]), c in shape.handle_key) for c in shape.columns}

    def _placed(self, kind: RowKind, shape: Shape, texts: dict[str, str]) -> PlacedRow:
        key = [_value(column.mysql_type, texts[column.name]) for column in shape.handle_key]
        return PlacedRow(int(self._fields[1]), int(kind), shape, encode_key(key), " ".join(texts.values()).encode())

    def _columns(self, fields: list[str]) -> tuple[Shape, dict[str, str]]:
        columns, texts, tells_key = [], {}, True
        for field in fields:
            description, separator, text = field.partition("=")
            name, *numbers = description.split(":")
            if numbers[1:] == [NO_FLAGS]:
                tells_key, numbers[1] = False, "0"
            if not separator or len(numbers) != 2 or not all(map(str.isdigit, numbers)):
                raise _refuse("field_type", "a column has no name, type, flags or value")
            columns.append((unquote(name), *map(int, numbers)))
            texts[unquote(name)] = text
        if tells_key and not keys_of(columns).handle:
            raise _refuse("field_type", "the row has no key")
        schema, table = self.head.name if self.head is not None else ("", "")
        shape = shape_of(schema, table, tuple(columns))
        return intern_shape(shape if tells_key else shape._replace(keys=UNKNOWN_KEYS)), texts


def split(key: bytes | None, value: bytes | None) -> list[LineEvent]:
    """Take a record apart. ProtocolError if it is none of this format."""
    if key is not None or value is None:
        raise _refuse("version", "the record is not of the made-up format")
    try:
        lines = value.decode("ascii").splitlines()
    except UnicodeDecodeError as cause:
        raise _refuse("version", "the record is not of the made-up format") from cause
    return [LineEvent(line) for line in lines]


class LinePlacer:
    """Implements ``Placer``: the events are read one by one."""

    def __init__(self, stream: Stream, selection: TableSelection) -> None:
        self._events = SelectedEvents(stream, selection)

    def place_all(self, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        """Yield the events of some records in order; ProtocolError names the first that cannot be read."""
        return gather_rows(self._place(records))

    def _place(self, records: Sequence[Record]) -> Iterator[tuple[int, int, Placed]]:
        for offset, key, value in records:
            try:
                events = list(split(key, value))
            except ProtocolError as error:
                raise self._events.located(error, offset, None) from error
            for index, event in enumerate(events):
                for placed in self._events.place(event, offset, index):
                    yield offset, index, placed

    def place_each(self, offset: int, key: bytes | None, value: bytes | None) -> list[tuple[int, Placed | Unplaced]]:
        """Return the events of one record, each with its index. Raises nothing."""
        try:
            events = list(split(key, value))
        except ProtocolError as error:
            return self._events.unplaced(error, offset)
        return [(index, found) for index, event in enumerate(events) for found in self._events.place_or_mark(event, offset, index)]


@dataclass(frozen=True, slots=True)
class LineDecoder:
    """Implements ``Decoder``."""

    whole_rows: WholeRowSources = REFUSED
    selection: TableSelection = EVERYTHING

    @property
    def keeps_order(self) -> bool:
        return False

    @property
    def row_lookup(self) -> None:
        return None

    def placer(self, stream: Stream) -> LinePlacer:
        return LinePlacer(stream, self.selection)

    def image_decoder(self, shape: Shape) -> Callable[[bytes], Sequence[Value]]:
        types = [column.mysql_type for column in shape.columns]
        return lambda image: list(map(_value, types, image.decode().split(" ")))

    def images_decoder(self, shape: Shape) -> Callable[[Sequence[bytes]], Sequence[Sequence[Value]]]:
        decode = self.image_decoder(shape)
        return lambda images: list(zip(*map(decode, images), strict=True))

    def encode_image(self, shape: Shape, values: Sequence[Value]) -> bytes:
        assert len(shape.columns) == len(values)
        return " ".join("~" if value is None else quote(str(value), safe="") for value in values).encode()

    def decode_key(self, key: bytes) -> Sequence[Value]:
        return decode_key(key)

    def events(self, record: Record, place: RecordPosition) -> list[Event]:
        found, number, event = [], None, None
        try:
            for number, event in enumerate(split(record.key, record.value)):  # noqa: B007 - where reading fails
                found.append(event.event())
        except ProtocolError as error:
            raise located(error, place, number, None if event is None else event.head) from error
        return found

    whole_events = events
