"""One record is one event: a row, a DDL or a watermark (canal_json_and_simple.md 2).

The value is one JSON object, which may be compressed as a whole. The order of its members is not promised, and unknown ones are ignored.
What is not canal-json with the extension is named, with the option that the changefeed lacks (section 10).
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from applier.ddl.ddl_type import tidb_ddl_type
from applier.ddl.parser import BY_HAND
from applier.model.errors import ProtocolError, Remedy
from applier.model.events import (
    Column,
    ColumnShape,
    DdlEvent,
    DdlRefusal,
    Event,
    Image,
    KnownKeys,
    ResolvedEvent,
    RowEvent,
    RowOperation,
    Shape,
    TableName,
    Value,
)
from applier.model.position import Ts
from applier.sources.canal_json.value import NULL_TEXT, column_shape, encoding_of, read_value_of, refuse
from applier.sources.port import EventHead
from applier.sources.ticdc.compression import LZ4_MAGIC, unpack_lz4, unpack_snappy
from applier.sources.ticdc.foreign_record import CANAL_JSON, refuse_other
from applier.sources.ticdc.json_text import is_valid_text, parse, parse_object, write
from applier.sources.unknown_member import note_unknown

MAX_TS: Final = 2**64 - 1
WATERMARK: Final = "TIDB_WATERMARK"
OPERATIONS: Final[Mapping[str, RowOperation]] = {
    "INSERT": RowOperation.INSERT,
    "UPDATE": RowOperation.UPDATE,
    "DELETE": RowOperation.DELETE,
}
NO_BOOTSTRAP: Final = Remedy(
    "canal-json.no-bootstrap-at-start", "Set send-all-bootstrap-at-start = false in the changefeed, and skip the record: `applier skip`"
)
_NO_TYPE: Final = 0

_KNOWN_MEMBERS: Final = frozenset({"commitTs", "watermarkTs", "onlyHandleKey", "claimCheckLocation", "rowkey"})


class _RawRows(msgspec.Struct, gc=False):
    data: list[msgspec.Raw]
    old: list[msgspec.Raw] | None = None


_raw_rows = msgspec.json.Decoder(_RawRows).decode


class CanalRow(NamedTuple):
    """The change of a row. ``data`` is the row after it, of a delete the row before it; ``old`` is what an update has changed, or more.

    ``handle``: the columns of the handle key, none of them NULL; () if it is not known. ``only_handle_key``: the other columns were too
    large for Kafka.
    """

    operation: RowOperation
    handle: tuple[str, ...]
    types: Mapping[str, str]
    data: Mapping[str, str | None]
    old: Mapping[str, str | None] | None
    data_json: bytes
    old_json: bytes
    only_handle_key: bool
    claim_check: str | None

    @property
    def is_reduced(self) -> bool:
        """Whether the images hold the handle key alone, as they declare."""
        return self.only_handle_key or self.claim_check is not None

    @property
    def before(self) -> dict[str, str | None]:
        """The row before an update: complete, in the order of ``data``."""
        return {**self.data, **(self.old or {})}

    @property
    def before_json(self) -> bytes:
        """Its JSON."""
        old = self.old or {}
        return self.old_json if old.keys() == self.data.keys() else write(self.before)


class CanalRecord:
    """A record whose value is canal-json with the extension. Its parts are read when they are asked for."""

    __slots__ = ("_extension", "_members", "_plain")

    def __init__(self, plain: bytes, members: dict[str, Any]) -> None:
        self._plain, self._members = plain, members
        extension = members["_tidb"]
        if not isinstance(extension, dict):
            raise refuse("field_type", "_tidb is not an object")
        self._extension: dict[str, Any] = extension
        if not _KNOWN_MEMBERS.issuperset(extension):
            note_unknown(CANAL_JSON, (f"_tidb.{name}" for name in sorted(extension.keys() - _KNOWN_MEMBERS)))

    @property
    def is_ddl(self) -> bool:
        """Whether it is a DDL."""
        return self._members.get("isDdl") is True

    @property
    def is_row(self) -> bool:
        """Whether it is the change of a row."""
        return not self.is_ddl and self._members.get("type") != WATERMARK

    def head(self) -> EventHead:
        """Read timestamp, table and kind. ProtocolError (event_type, field_type)."""
        if type(self._members.get("isDdl")) is not bool:
            raise refuse("field_type", "isDdl is not a boolean")
        if self.is_row and self._members.get("type") not in [*OPERATIONS]:
            raise refuse("event_type", "the event has an unknown type", event_type=self._members.get("type"))
        ts_name = "commitTs" if self.is_ddl or self.is_row else "watermarkTs"
        ts = self._extension.get(ts_name)
        if type(ts) is not int or not 0 < ts <= MAX_TS:
            if self.is_ddl and not self._members.get("sql"):
                raise ProtocolError.at(
                    None, "field_type", "a DDL has neither a statement nor a timestamp: a bootstrap", remedy=NO_BOOTSTRAP
                )
            raise refuse("field_type", f"_tidb has no {ts_name}")
        if ts_name == "watermarkTs":
            return EventHead(Ts(ts), TableName("", ""), is_ddl=False)
        return EventHead(Ts(ts), TableName(self._text("database"), self._text("table")), self.is_ddl)

    def _text(self, name: str) -> str:
        text = self._members.get(name)
        if not isinstance(text, str) or not is_valid_text(text):
            raise refuse("field_type", "a member of the record is not a text", member=name)
        return text

    def operation(self) -> RowOperation:
        """Return what happened to the row; ``head`` was read."""
        return OPERATIONS[self._members["type"]]

    @property
    def pk_names(self) -> list[str] | None:
        """What the row says of its primary key; ``row`` was read."""
        found: list[str] | None = self._members.get("pkNames")
        return found

    def beginning(self, end: bytes) -> bytes | None:
        """Return the bytes before the first ``end``; None if there is none."""
        at = self._plain.find(end)
        return None if at < 0 else self._plain[:at]

    def plain_event(self) -> DdlEvent | ResolvedEvent:
        """Read what is not a row."""
        ts, name, is_ddl = self.head()
        if not is_ddl:
            return ResolvedEvent(ts)
        query = self._text("sql")
        ddl_type = tidb_ddl_type(query)
        refusal = None
        if ddl_type is None:
            refusal = DdlRefusal("canal-json does not say the type of a DDL, and the applier cannot read this statement", BY_HAND)
        return DdlEvent(
            commit_ts=ts,
            schema=name.schema,
            table=name.table,
            query=query,
            ddl_type=_NO_TYPE if ddl_type is None else ddl_type,
            refusal=refusal,
        )

    def row(self) -> CanalRow:
        """Read the change of a row. ProtocolError (field_type, empty_row)."""
        operation = self.operation()
        only_handle_key, claim_check = self._extension.get("onlyHandleKey"), self._extension.get("claimCheckLocation")
        if not isinstance(only_handle_key, bool | None) or not isinstance(claim_check, str | None):
            raise refuse("field_type", "a member of _tidb has the wrong type")
        is_reduced = bool(only_handle_key or claim_check)
        types = self._types(is_reduced=is_reduced)
        data = _image(self._members.get("data"), types, "data")
        old = _image(self._members.get("old"), types, "old")
        # A large row of a table without a key has no columns.
        if data is None or not (data or is_reduced):
            raise refuse("empty_row", "the row has no image")
        if (old is None) != (operation is not RowOperation.UPDATE):
            raise refuse("empty_row", "the images of the row contradict its type")
        if old is not None and not data.keys() >= old.keys():
            raise refuse("field_type", "the old image has a column that the new one lacks")
        data_json, old_json = self._images_json(data, old)
        handle = tuple(data) if is_reduced else _handle(self._members.get("pkNames"), data)
        _refuse_null_key(handle, data, old or {})
        return CanalRow(
            operation=operation,
            handle=handle,
            types={name: str(types[name]) for name in data},
            data=data,
            old=old,
            data_json=data_json,
            old_json=old_json,
            only_handle_key=bool(only_handle_key),
            claim_check=claim_check or None,
        )

    def _types(self, *, is_reduced: bool) -> dict[str, Any]:
        """Return the text of each column's type; null, in the new architecture, where a large row has no columns."""
        types = self._members.get("mysqlType")
        return {} if types is None and is_reduced else _texts_of(types, "mysqlType")

    def _images_json(self, data: Mapping[str, str | None], old: Mapping[str, str | None] | None) -> tuple[bytes, bytes]:
        """Return the images as the bytes that came."""
        try:
            rows = _raw_rows(self._plain)
            # A column twice in one image: the last one counts, as for any reader of JSON.
            return bytes(rows.data[0]), b"" if old is None or not rows.old else bytes(rows.old[0])
        except (ValueError, RecursionError):  # bytes that are not UTF-8
            return write(data), b"" if old is None else write(old)


def _texts_of(found: Any, member: str) -> dict[str, Any]:
    if not isinstance(found, dict) or not all(map(is_valid_text, found)):
        raise refuse("field_type", "a member of the row is not an object of named columns", member=member)
    return found


def _image(found: Any, types: Mapping[str, Any], member: str) -> dict[str, str | None] | None:
    """Read an image, which is the one member of an array; ``[null]`` is none, as a row of v5.1 has it (tiflow#4597)."""
    if found is None or found == [None]:
        return None
    if not isinstance(found, list) or len(found) != 1:
        raise refuse("field_type", "an image is not an array of one object", member=member)
    image = _texts_of(found[0], member)
    for name, text in image.items():
        if not isinstance(types.get(name), str):
            raise refuse("column_type", "a column has no type", column=name)
        if text is not None and not isinstance(text, str):
            raise refuse("value_type", "a value is neither text nor null", column=name)
    return image


def _handle(names: Any, data: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the columns of the primary key, if they are all sent. Another key is not on the wire."""
    if names is None:
        return ()
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise refuse("field_type", "pkNames is not an array of names")
    return tuple(names) if all(name in data for name in names) else ()


def _refuse_null_key(handle: Iterable[str], *images: Mapping[str, str | None]) -> None:
    """No column of a handle key is NULL, neither before a change nor after it. ProtocolError (value_type)."""
    for image in images:
        if absent := [name for name in handle if image.get(name, "") is None]:
            raise refuse("value_type", f"a column of the handle key is NULL. {NULL_TEXT}", column=absent[0])


def shape_of(name: TableName, row: CanalRow) -> Shape:
    """Return the shape of a row. ProtocolError (column_type)."""
    columns = tuple(column_shape(column, text) for column, text in row.types.items())
    # No key: the table may have a NOT NULL unique index, which is not on the wire (canal_json_and_simple.md 7).
    handle = tuple(sorted(row.handle, key=str.casefold)) or None
    primary = None if row.is_reduced else handle
    keys = KnownKeys(handle=handle, primary=primary, unique=None, identifying=handle or ())
    # Nor are the partitions of a table, whose rows keep no order among one another.
    return Shape(name.schema, name.table, columns, keys, encoding=encoding_of(columns))


def image_of(shape: Shape, texts: Mapping[str, str | None]) -> Image:
    """Read the values of an image. ProtocolError (value_type)."""
    handle = frozenset(shape.keys.handle or ())
    return {
        column.name: Column(column.mysql_type, column.flags, _value(column, texts[column.name]), column.name in handle)
        for column in shape.columns
    }


def _value(column: ColumnShape, text: str | None) -> Value:
    return None if text is None else read_value_of(column, is_bytes=column.is_bytes)(text)


def row_event(head: EventHead, row: CanalRow) -> RowEvent:
    """Return the whole event of a row. ProtocolError (column_type, value_type)."""
    shape = shape_of(head.name, row)
    data = image_of(shape, row.data)
    is_delete = row.operation is RowOperation.DELETE
    return RowEvent(
        commit_ts=head.ts,
        schema=head.name.schema,
        table=head.name.table,
        partition_id=None,
        operation=row.operation,
        only_handle_key=row.only_handle_key,
        claim_check=row.claim_check,
        after=None if is_delete else data,
        before=data if is_delete else None if row.old is None else image_of(shape, row.before),
    )


def whole_event(record: CanalRecord) -> Event:
    """Return the event of a record, every value decoded. ProtocolError, without a position."""
    head = record.head()
    return row_event(head, record.row()) if record.is_row else record.plain_event()


# --- from bytes to a record ------------------------------------------------------------------------------------------


def read_record(key: bytes | None, value: bytes | None) -> CanalRecord:
    """Take a record apart. ProtocolError (version): it is not canal-json with the extension; (json, compression): it is damaged."""
    try:
        plain = unpacked(value or b"")
        members = parse_object(plain)
    except ProtocolError as error:
        raise refuse_other(CANAL_JSON, key, value) or error from None
    if members.keys() >= {"isDdl", "es", "_tidb"}:
        return CanalRecord(plain, members)
    raise refuse_other(CANAL_JSON, key, value) or refuse("version", "the record is not canal-json")


def unpacked(value: bytes) -> bytes:
    """Return the plain value. ProtocolError (json, compression)."""
    if value.startswith(LZ4_MAGIC):
        return unpack_lz4(value)
    if not value.startswith(b"{"):
        return unpack_snappy(value)
    try:
        parse(value)
    except ProtocolError as plain_error:
        # A snappy block of 123 bytes begins with a brace too.
        try:
            return unpack_snappy(value)
        except ProtocolError:
            raise plain_error from None
    return value
