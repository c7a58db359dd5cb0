"""Places the messages of one range. Plain rows that follow one another are a run, whose images are read together.

What one row costs is one parse of its message (JSON) or one walk over its bytes (Avro), and a share of one parse of many images.
Everything else (compressed messages, large rows, the first rows of a version, anything wrong) goes message by message, and decides.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from applier.ddl import parse_ddl
from applier.ddl.ddl_type import tidb_ddl_type
from applier.ddl.parser import BY_HAND
from applier.model.errors import SKIP_RECORD, ProtocolError, Remedy
from applier.model.events import (
    MARKER_IMAGE,
    DdlEvent,
    DdlRefusal,
    ExcludedTable,
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
from applier.model.position import Offset, RecordPosition, Stream, Ts
from applier.selection import EVERYTHING, SelectedTable, TableSelection
from applier.sources.compiled import forget_shapes
from applier.sources.port import EventHead, LogReader, Placed, PlacedEvent, PlacedRows, Record, Unplaced
from applier.sources.row_key import KEYLESS, canonical_float, encode_key, encode_plain
from applier.sources.selected_events import SelectedEvents, gather_rows, rows_of
from applier.sources.simple.avro_rows import RowCutter
from applier.sources.simple.image_code import (
    AVRO,
    JSON,
    RowReader,
    kept_shapes,
    pack_values,
    read_columns,
    read_members,
    read_value,
    row_reader,
)
from applier.sources.simple.large_row import read_object
from applier.sources.simple.message import (
    AVRO_ROW,
    BOOTSTRAP,
    DDLS,
    ROWS,
    WATERMARK,
    JsonMessage,
    SimpleMessage,
    decode_json,
    of_json,
    read_message,
)
from applier.sources.simple.schema_log import SchemaSearch
from applier.sources.simple.table_version import TableVersion
from applier.sources.simple.zone import NamedZones
from applier.sources.ticdc.json_text import write
from applier.sources.ticdc.large_row import (
    REFUSED,
    ClaimedObjects,
    WholeRowSources,
    as_placeholder,
    check_claimed,
    no_columns,
    useless,
)

RUN_ROWS: Final = 256
"""Rows of a run. What one call decodes should stay in the processor's cache."""
NO_COLUMNS: Final = "an image of the row has no columns"
NO_IMAGE: Final = "the row lacks an image. An update needs the old one too: its key may have changed"
MAX_READERS: Final = 8
"""Shapes of one version that are tried before the exact way."""

CORRUPTED: Final = Remedy(
    "simple.compare-corrupted-row",
    f"TiCDC found a wrong checksum of the row. Compare the row upstream with its indexes (ADMIN CHECK TABLE), and repair it there. Then "
    f"skip the record, and let upstream write the row again: `{SKIP_RECORD}`",
)

_UPSERT, _DELETE = int(RowKind.UPSERT), int(RowKind.DELETE)


# --- one row ---------------------------------------------------------------------------------------------------------


def place_rows(message: SimpleMessage, version: TableVersion) -> list[PlacedRow]:
    """Return the row of a message, or two where an update changed its key. ProtocolError, without a position: a value is wrong."""
    if ROWS[message.kind] is RowOperation.DELETE:
        return [_row(message, version, RowKind.DELETE, _image(message.old))]
    image = _image(message.new)
    new = _row(message, version, RowKind.UPSERT, image)
    if ROWS[message.kind] is RowOperation.INSERT:
        return [new]
    old = _row(message, version, RowKind.DELETE, _laid_over(image, _image(message.old)))
    # Rows without a key are their whole image, so each of their updates replaces one.
    has_same_key = old.key == new.key != KEYLESS and old.shape.keys.handle == new.shape.keys.handle
    return [new] if has_same_key else [old, new]


def _image(image: bytes | dict[str, Any] | None) -> bytes | dict[str, Any]:
    if image is None:
        raise ProtocolError.at(None, "empty_row", NO_IMAGE)
    return image


def _laid_over(new: bytes | dict[str, Any], old: bytes | dict[str, Any]) -> bytes | dict[str, Any]:
    """Return the old image; a column that it lacks has not changed."""
    is_avro = isinstance(old, dict)
    before, after = _members(old), _members(new)
    if not before:
        raise ProtocolError.at(None, "empty_row", NO_COLUMNS)
    if after.keys() <= before.keys():
        return old
    whole = {**after, **before}
    return whole if is_avro else write(whole)


def _members(image: bytes | dict[str, Any]) -> dict[str, Any]:
    return image if isinstance(image, dict) else read_members(image, JSON)


def _shape_of(message: SimpleMessage, version: TableVersion, members: dict[str, Any], encoding: bytes) -> Shape:
    if not members:
        raise ProtocolError.at(None, "empty_row", NO_COLUMNS)
    is_partitioned = message.table_id != version.table_id
    return version.shape(message.name, tuple(sorted(members)), encoding, is_partitioned=is_partitioned)


def _row(message: SimpleMessage, version: TableVersion, kind: RowKind, image: bytes | dict[str, Any]) -> PlacedRow:
    members = _members(image)
    encoding = AVRO if isinstance(image, dict) else JSON
    shape = _shape_of(message, version, members, encoding)
    values = {column.name: read_value(column, members[column.name], encoding) for column in shape.columns}
    key = _key([values[column.name] for column in shape.handle_key])
    return PlacedRow(message.commit_ts, int(kind), shape, key, pack_values(image) if isinstance(image, dict) else image)


def _key(values: list[Value]) -> bytes:
    return encode_key([canonical_float(value) if isinstance(value, float) else value for value in values])


def row_event(message: SimpleMessage, version: TableVersion) -> RowEvent:
    """Return the row of a message with all values decoded. ProtocolError, without a position."""
    operation = ROWS[message.kind]
    new = None if operation is RowOperation.DELETE or message.new is None else _columns(message, version, message.new)
    old = None if operation is RowOperation.INSERT or message.old is None else _columns(message, version, message.old)
    needed = {RowOperation.INSERT: (new,), RowOperation.UPDATE: (old, new), RowOperation.DELETE: (old,)}[operation]
    if None in needed and not message.is_reduced:
        raise ProtocolError.at(None, "empty_row", NO_IMAGE)
    return RowEvent(
        commit_ts=Ts(message.commit_ts),
        schema=message.name.schema,
        table=message.name.table,
        partition_id=None if message.table_id == version.table_id else message.table_id,
        operation=operation,
        only_handle_key=message.is_reduced,
        claim_check=message.claim_check,
        after=new,
        before=old,
    )


def _columns(message: SimpleMessage, version: TableVersion, image: bytes | dict[str, Any]) -> Image:
    members = _members(image)
    return read_columns(_shape_of(message, version, members, AVRO if isinstance(image, dict) else JSON), members)


def markers_of(message: SimpleMessage, version: TableVersion) -> list[PlacedRow]:
    """Return a marker for each key that can be read."""
    markers = dict[bytes, PlacedRow]()
    for image in (message.old, message.new):
        try:
            members = {} if image is None else _members(image)
            encoding = AVRO if isinstance(image, dict) else JSON
            known = [name for name in members if name in version.columns]
            handle = version.shape(message.name, tuple(sorted(known)), encoding).handle_key
            key = _key([read_value(column, members[column.name], encoding) for column in handle])
        except ProtocolError:
            continue
        if key != KEYLESS:
            shape = version.shape(message.name, tuple(sorted(column.name for column in handle)), encoding)
            markers[key] = PlacedRow(message.commit_ts, _UPSERT, shape, key, MARKER_IMAGE)
    return list(markers.values())


# --- one message -----------------------------------------------------------------------------------------------------


def head_of(message: SimpleMessage) -> EventHead:
    """Return what a message is about. ProtocolError (event_type, field_type)."""
    if message.kind not in ROWS and message.kind not in DDLS and message.kind not in {WATERMARK, "DDL"}:
        raise ProtocolError.at(None, "event_type", "the message has an unknown type", event_type=message.kind)
    if not 0 < message.commit_ts < 1 << 64:
        raise ProtocolError.at(None, "field_type", "the message has no commit timestamp, or an impossible one")
    if message.kind in ROWS:
        if not message.name.table:
            raise ProtocolError.at(None, "field_type", "the row does not name its table")
        return EventHead(Ts(message.commit_ts), message.name, is_ddl=False)
    if message.kind == WATERMARK:
        return EventHead(Ts(message.commit_ts), TableName("", ""), is_ddl=False)
    return EventHead(Ts(message.commit_ts), _ddl_name(message), is_ddl=True)


def _ddl_name(message: SimpleMessage) -> TableName:
    """Return the table of a DDL: that of its schema; without one, what its statement names (a schema; a view)."""
    if message.schema is not None:
        return TableName(message.schema.schema, message.schema.table)
    if not message.sql:
        raise ProtocolError.at(None, "field_type", "a DDL has no statement")
    statement = parse_ddl(DdlEvent(commit_ts=Ts(message.commit_ts), schema="", table="", query=message.sql, ddl_type=0))
    if statement is None:
        return TableName("", "")
    return TableName(statement.schema, "") if statement.schema else next(iter(statement.names), TableName("", ""))


def plain_event(message: SimpleMessage, head: EventHead) -> DdlEvent | ResolvedEvent:
    """Return an event that is not a row."""
    if not head.is_ddl:
        return ResolvedEvent(head.ts)
    if not message.sql:
        raise ProtocolError.at(None, "field_type", "a DDL has no statement")
    ddl_type = tidb_ddl_type(message.sql)
    return DdlEvent(
        commit_ts=head.ts,
        schema=head.name.schema,
        table=head.name.table,
        query=message.sql,
        ddl_type=ddl_type or 0,
        refusal=DdlRefusal("the applier cannot read this statement, and its type does not come with it", BY_HAND)
        if ddl_type is None
        else None,
    )


def zones_of(message: SimpleMessage, version: TableVersion) -> Collection[str]:
    """Return the zones that the TIMESTAMP values of a row name. ProtocolError (json)."""
    image = message.old if message.kind == "DELETE" else message.new
    if not isinstance(image, bytes) or not version.timestamps:
        return message.zones
    members = _members(image)
    stamps = [members.get(column) for column in version.timestamps]
    return {str(stamp.get("location", "")) for stamp in stamps if isinstance(stamp, dict)}


class RowFinder:
    """Finds what the rows of one range need in addition to their messages: schemas, and the objects of large rows."""

    def __init__(self, stream: Stream, found: WholeRowSources, log: LogReader | None, zones: NamedZones) -> None:
        self.schemas = SchemaSearch(stream, log)
        self._zones = zones
        self._found = found
        self._objects = ClaimedObjects(stream, found.claims, _locations)

    def begin(self, records: Sequence[Record]) -> None:
        """Note the records that are placed now, one after the other: their objects may be read ahead."""
        if records:
            self.schemas.begin(records[0].offset)
        self._objects.begin(records)

    def rows(self, message: SimpleMessage, offset: int) -> list[PlacedRow]:
        """Return the rows of a message. ProtocolError, without a position; SourceError with it if storage or log fail."""
        if message.is_corrupted:
            error = ProtocolError.at(None, "checksum", "TiCDC says that the row is corrupted")
            error.remedy = CORRUPTED
            raise error
        version = self.schemas.version(message, offset)
        if message.claim_check:
            message = claimed_message(self._objects.content(message.claim_check, offset), message, version)
        self._zones.check(zones_of(message, version))
        if not message.is_reduced:
            return place_rows(message, version)
        is_delete = ROWS[message.kind] is RowOperation.DELETE
        if (message.old if is_delete else message.new) is None:
            raise no_columns("the row was too large for Kafka: only its key was sent, and the row has no key")
        rows = place_rows(message, version)
        if not rows[-1].key:
            raise no_columns("the row was too large for Kafka: only its key was sent, and the row has no key")
        if is_delete:
            return rows
        if self._found.lookup is None:
            raise no_columns()
        return list(map(as_placeholder, rows))


def _locations(record: Record) -> Iterator[str]:
    if location := read_message(record.key, record.value).claim_check:
        yield location


def claimed_message(
    content: bytes, announced: SimpleMessage, version: TableVersion, position: RecordPosition | None = None
) -> SimpleMessage:
    """Return the row that an object holds, which must be the one that was announced. ProtocolError (claim_check)."""
    event = row_event(announced, version)
    try:
        whole = read_object(content)
        if whole.version != announced.version:
            raise ProtocolError.at(None, "claim_check", "its schema version differs")
        check_claimed(event, row_event(whole, version))
    except ProtocolError as cause:
        raise useless(cause, event, position) from cause
    return whole


class SimpleEvent:
    """Implements ``UnreadEvent``."""

    __slots__ = ("_finder", "_message", "_offset", "head")

    def __init__(self, message: SimpleMessage, finder: RowFinder, offset: int) -> None:
        self._message, self._finder, self._offset = message, finder, offset
        self.head: EventHead | None = None

    def read_head(self) -> EventHead:
        """Check what the message is about."""
        self.head = head_of(self._message)
        return self.head

    def is_row(self) -> bool:
        """Whether it is the change of a row."""
        return self._message.kind in ROWS

    def operation(self) -> RowOperation:
        """Return the kind of the change."""
        return ROWS[self._message.kind]

    def rows(self) -> list[PlacedRow]:
        """Place the row."""
        return self._finder.rows(self._message, self._offset)

    def plain(self) -> DdlEvent | ResolvedEvent:
        """Return the DDL or the promise."""
        return plain_event(self._message, self.head or self.read_head())

    def markers(self) -> list[PlacedRow]:
        """Return a marker for each row whose key can be read."""
        try:
            return markers_of(self._message, self._finder.schemas.version(self._message, self._offset))
        except ProtocolError:
            return []


# --- runs of rows ----------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class KnownRows:
    """One version of a table, as rows of this range use it: the selection's decision, and the readers of its shapes.

    Of one encoding. Of this range only: a bad value outside of the key is found by the exact way and not by a reader, and a range that
    another process reads again must give the same report. ``table_ids``: what its rows have been found to name, one id for a table without
    a key. ``version``: None if rows of the table are skipped.
    """

    selected: SelectedTable
    version: TableVersion | None
    table_ids: set[int] = field(default_factory=set)
    readers: list[RowReader] = field(default_factory=list)

    def learn(self, rows: Sequence[PlacedRow]) -> None:
        """Remember the shapes of rows that were read in the exact way."""
        for row in rows:
            reader = row_reader(row.shape)
            if reader is not None and reader not in self.readers:
                self.readers.insert(0, reader)
                del self.readers[MAX_READERS:]


RunRow: TypeAlias = tuple[int, KnownRows, int, int, bytes, bytes, JsonMessage | bytes]
"""A row of a run: commit_ts, table, kind, offset, image, old image (b"": none), message (of Avro: the record)."""


class KeyedImages(NamedTuple):
    """The shape of some images, the key of each, and whether each update kept its key."""

    shape: Shape
    keys: Sequence[bytes]
    keeps: Sequence[bool]


def _keyed(reader: RowReader, images: Sequence[bytes], old: Sequence[bytes], zones: NamedZones) -> KeyedImages:
    """Read some images of one shape. ValueError, RecursionError: one has another, or names another zone."""
    rows = reader.rows(images)
    for getter in reader.stamps:
        if not all(map(zones.accepts, {stamp.location for stamp in map(getter, rows) if stamp is not None})):
            raise ValueError("a value is of another zone")
    keys = _keys_of(reader, rows)
    updates = [at for at, image in enumerate(old) if image]
    keeps = [True] * len(images)
    if updates:
        before = _keys_of(reader, reader.rows([old[at] for at in updates]))
        for at, key in zip(updates, before, strict=True):
            keeps[at] = key == keys[at] != KEYLESS
    return KeyedImages(reader.shape, keys, keeps)


def _keys_of(reader: RowReader, rows: list[Any]) -> Sequence[bytes]:
    if not reader.handle:
        return [KEYLESS] * len(rows)
    columns = [reader.columns[at](rows) for at in reader.handle]
    return list(map(encode_plain, zip(*map(_canonical, columns), strict=True)))


def _canonical(values: Sequence[Value]) -> Sequence[Value]:
    """Return the values of a column of the key: -0.0 is 0.0. A column has one type."""
    is_float = isinstance(next((value for value in values if value is not None), None), float)
    return [canonical_float(value) if isinstance(value, float) else value for value in values] if is_float else values


class SimplePlacer:
    """Places the messages of one range. Not thread-safe. ``log``: where schemas are looked for that the range does not have.

    ``time_zone``: the one that TIMESTAMP values must name; '': any.
    """

    def __init__(
        self,
        stream: Stream,
        whole_rows: WholeRowSources = REFUSED,
        selection: TableSelection = EVERYTHING,
        log: LogReader | None = None,
        time_zone: str = "",
    ) -> None:
        forget_shapes(kept_shapes())
        self._events = SelectedEvents(stream, selection)
        self._zones = NamedZones(time_zone)
        self._finder = RowFinder(stream, whole_rows, log, self._zones)
        self._known: dict[tuple[str, str, int, bytes], KnownRows] = {}
        self._cutter = RowCutter[KnownRows]()

    def place_all(self, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        """Yield the events of some records in order; ProtocolError names the first that cannot be read."""
        run: list[RunRow] = []
        for first in range(0, len(records), RUN_ROWS):
            some = records[first : first + RUN_ROWS]
            self._finder.begin(some)
            for offset, key, value in some:
                if not self._add(run, offset, key, value):
                    yield from self._place_other(run, offset, key, value)
            yield from self._end_run(run)

    def _add(self, run: list[RunRow], offset: int, key: bytes | None, value: bytes | None) -> bool:
        """Add a plain row of a known version to the run; False, with nothing added, for any other message."""
        if value is None or value[:4] == AVRO_ROW:
            return value is not None and self._add_avro(run, offset, key, value)
        try:
            message = decode_json(value)
        except (ValueError, RecursionError):
            return False
        known = self._known.get((message.database, message.table, message.schemaVersion, JSON))
        if (
            known is None
            or key
            or message.version != 1
            or message.handleKeyOnly
            or message.claimCheckLocation
            or message.checksum is not None
            or message.tableID not in known.table_ids
            or not 0 < message.commitTs < 1 << 64
        ):
            return False
        match message.type:
            case "INSERT":
                kind, image, old = _UPSERT, bytes(message.data), b""
            case "UPDATE":
                kind, image, old = _UPSERT, bytes(message.data), bytes(message.old)
            case "DELETE":
                kind, image, old = _DELETE, bytes(message.old), b""
            case _:
                return False
        if image[:1] != b"{" or (old and old[:1] != b"{"):
            return False
        run.append((message.commitTs, known, kind, offset, image, old, message))
        return True

    def _add_avro(self, run: list[RunRow], offset: int, key: bytes | None, value: bytes) -> bool:
        """Do the same for a row in Avro."""
        row = None if key else self._cutter.cut(value)
        if row is None:
            return False
        known, commit_ts, is_delete, image, before, width = row
        # The first reader asks for each of its columns: with as many entries, none comes twice.
        if not (known.selected.is_out or (known.readers and width == len(known.readers[0].columns))):
            return False
        run.append((commit_ts, known, _DELETE if is_delete else _UPSERT, offset, image, before, value))
        return True

    def _place_other(self, run: list[RunRow], offset: int, key: bytes | None, value: bytes | None) -> Iterator[PlacedRows | PlacedEvent]:
        """Place any message. What was gathered before it comes first."""
        try:
            message = read_message(key, value)
            self._learn(message)
        except ProtocolError as error:
            yield from self._end_run(run)
            raise self._events.located(error, offset, None) from error
        if message.kind == BOOTSTRAP:
            return
        yield from self._end_run(run)
        placed = self._events.place(SimpleEvent(message, self._finder, offset), offset, 0)
        if message.kind in ROWS:
            self._note(message, placed)
        yield from gather_rows((offset, 0, one) for one in placed)

    def _learn(self, message: SimpleMessage) -> None:
        if message.schema is not None:
            self._finder.schemas.learn(message)

    def _note(self, message: SimpleMessage, placed: Sequence[Placed]) -> None:
        """Let the rows that follow of this version be read together."""
        encoding = AVRO if isinstance(message.new or message.old, dict) else JSON
        name = (*message.name, message.version, encoding)
        known, version = self._known.get(name), self._finder.schemas.known(message)
        rows = [row for row in placed if isinstance(row, PlacedRow)]
        if known is None or known.version is not version:
            selected = self._events.table(message.name)
            if selected.ignored and not selected.is_out:
                return
            known = self._known[name] = KnownRows(selected, version)
        if not any(row.shape.keys.handle == () for row in rows) or known.table_ids <= {message.table_id}:
            known.table_ids.add(message.table_id)
            known.learn(rows)
            if encoding == AVRO:
                self._cutter.accept(filter(self._zones.accepts, message.zones))
                self._cutter.learn(message.name, message.table_id, message.version, known)

    # --- runs ------------------------------------------------------------------------------------------------------

    def _end_run(self, run: list[RunRow]) -> Iterator[PlacedRows | PlacedEvent]:
        rows, kept = list(run), [row for row in run if not row[1].selected.is_out]
        run.clear()
        if len(kept) < len(rows):
            # Each table at its last row: of a replay that comes first, nothing is missed.
            filtered = {row[1].selected.name: (row[0], row[3]) for row in rows if row[1].selected.is_filtered}
            for name, (ts, offset) in filtered.items():
                yield PlacedEvent(offset, 0, ExcludedTable(ts, name))
        if kept:
            yield self._place_run(kept)

    def _place_run(self, run: Sequence[RunRow]) -> PlacedRows:
        """Return the rows of a run of at least one."""
        by_table: dict[int, list[int]] = {}
        for at, row in enumerate(run):
            by_table.setdefault(id(row[1]), []).append(at)
        shapes = dict[int, int]()
        found = list[Shape]()
        shape, keys = [0] * len(run), list[bytes | None]([None]) * len(run)
        for numbers in by_table.values():
            keyed = self._match(run, numbers)
            if keyed is None or not all(keyed.keeps):
                return self._place_in_order(run)
            number = shapes.setdefault(id(keyed.shape), len(found))
            if number == len(found):
                found.append(keyed.shape)
            for at, key in zip(numbers, keyed.keys, strict=True):
                shape[at], keys[at] = number, key
        commit_ts, _, kinds, offsets, images, _, _ = zip(*run, strict=True)
        return PlacedRows(tuple(found), shape, commit_ts, kinds, offsets, bytes(len(run)), keys, images)  # type: ignore[arg-type] # each has its key

    def _match(self, run: Sequence[RunRow], numbers: Sequence[int]) -> KeyedImages | None:
        """Read rows of one version together; None: they have several shapes, or one is unusual."""
        readers = run[numbers[0]][1].readers
        if not readers:
            return None
        try:
            return _keyed(readers[0], [run[at][4] for at in numbers], [run[at][5] for at in numbers], self._zones)
        except (ValueError, RecursionError):
            return None

    def _place_in_order(self, run: Sequence[RunRow]) -> PlacedRows:
        """Place the rows one by one. In order, so that the first error is that of the first row."""
        placed = list[tuple[int, int, PlacedRow]]()
        for ts, known, kind, offset, image, old, message in run:
            for reader in () if isinstance(message, bytes) else known.readers:
                try:
                    keyed = _keyed(reader, (image,), (old,), self._zones)
                except (ValueError, RecursionError):
                    continue
                if keyed.keeps[0]:
                    placed.append((offset, 0, PlacedRow(ts, kind, keyed.shape, keyed.keys[0], image)))
                    break
            else:
                whole = read_message(None, message) if isinstance(message, bytes) else of_json(message)
                rows = self._events.place(SimpleEvent(whole, self._finder, offset), offset, 0)
                self._note(whole, rows)
                placed += [(offset, 0, row) for row in rows if isinstance(row, PlacedRow)]
        return rows_of(placed)

    # --- message by message ----------------------------------------------------------------------------------------

    def place_each(self, offset: int, key: bytes | None, value: bytes | None) -> list[tuple[int, Placed | Unplaced]]:
        """Return the events of one record, each with its index: none of a BOOTSTRAP. Raises nothing but what a failing log does."""
        self._finder.begin((Record(Offset(offset), key, value),))
        try:
            message = read_message(key, value)
            self._learn(message)
        except ProtocolError as error:
            return self._events.unplaced(error, offset)
        if message.kind == BOOTSTRAP:
            return []
        return [(0, found) for found in self._events.place_or_mark(SimpleEvent(message, self._finder, offset), offset, 0)]
