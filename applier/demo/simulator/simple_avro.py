"""The simple protocol in its Avro encoding (canal_json_and_simple.md 4.4): Avro's binary form without a registry, written field by field.

Independent of the applier's decoders. The schema is not written here: its fields and their order are in the calls.
"""

import struct
from collections.abc import Sequence

from applier.demo.simulator.column_type import TypeClass, UpstreamType
from applier.demo.simulator.item import DdlItem, RowItem
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.operation import Row
from applier.demo.simulator.schema_versions import VersionedTable
from applier.demo.simulator.simple import ZONE, SentColumn, SentIndex, SimpleMessages, columns_of, indexes_of, row_word
from applier.demo.simulator.value_text import charset_of, display_length, is_bytes, raw_bytes, type_name
from applier.demo.simulator.wire_format import KeyExtras, SentImages, utf8
from applier.model.events import Value
from applier.model.position import Ts

_MESSAGE = 11
"""The position of the message among the records of the codec's schema file: the top-level schema is their union."""
_WATERMARK, _BOOTSTRAP, _DDL, _DML = range(4)
_DDL_WORDS = ("CREATE", "ALTER", "ERASE", "RENAME", "TRUNCATE", "CINDEX", "DINDEX", "QUERY")
_ROW_WORDS = ("INSERT", "UPDATE", "DELETE")
_NULL, _LONG, _FLOAT, _DOUBLE, _STRING, _BYTES, _TIMESTAMP, _UNSIGNED = range(8)
"""The positions of the types in the union of a value."""
_NUMERIC = frozenset({TypeClass.INTEGER, TypeClass.FLOAT, TypeClass.DOUBLE, TypeClass.DECIMAL})
_LONGS = frozenset({TypeClass.INTEGER, TypeClass.YEAR, TypeClass.BIT, TypeClass.ENUM, TypeClass.SET})
_WORD = 1 << 64
_BIGINT_BITS = 64


def long(number: int) -> bytes:
    """Write a long: zigzag, then seven bits a byte. Numbers above the signed ones become negative."""
    signed = number - _WORD if number >= _WORD >> 1 else number
    left = (signed << 1) ^ (signed >> 63)
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)


def string(text: str) -> bytes:
    """Write a string; it may hold bytes that are no UTF-8."""
    return data(utf8(text))


def data(raw: bytes) -> bytes:
    """Write bytes."""
    return long(len(raw)) + raw


def boolean(flag: bool) -> bytes:  # noqa: FBT001 - the one value of a field
    """Write a boolean."""
    return b"\1" if flag else b"\0"


def optional(value: bytes | None) -> bytes:
    """Write a union of null and something."""
    return long(0) if value is None else long(1) + value


def blocks(items: Sequence[bytes]) -> bytes:
    """Write an array or a map: one block, if there is anything, and the end."""
    return (long(len(items)) + b"".join(items) if items else b"") + long(0)


class SimpleAvroWire(SimpleMessages):
    """Implements ``Wire``."""

    def _row(self, item: RowItem, images: SentImages, extras: KeyExtras, built_ms: int) -> bytes:
        name, schema = item.table.name, item.schema
        is_reduced = extras.only_handle_key or extras.claim_check is not None
        return _message(
            _DML,
            long(1),
            string(name.schema),
            string(name.table),
            long(item.physical_id),
            long(_ROW_WORDS.index(row_word(item))),
            long(item.ts),
            long(built_ms),
            long(schema.version),
            optional(None if extras.claim_check is None else string(extras.claim_check)),
            optional(boolean(flag=True) if is_reduced else None),
            optional(None),
            optional(self._image(item, item.after, images.after)),
            optional(self._image(item, item.before, images.before)),
        )

    def _image(self, item: RowItem, row: Row | None, places: Sequence[int] | None) -> bytes | None:
        if row is None or places is None:
            return None
        columns = item.table.columns
        return blocks([string(columns[place].name) + self._value(columns[place].type, row[place]) for place in places])

    def _value(self, kind: UpstreamType, value: Value) -> bytes:
        if value is None:
            return long(_NULL)
        if kind.kind is TypeClass.BIT and self.flavour is Flavour.TICDC:
            return long(_STRING) + string(str(value))
        if kind.kind in _LONGS:
            is_unsigned = kind.kind is TypeClass.INTEGER and kind.unsigned and kind.size == _BIGINT_BITS
            return long(_UNSIGNED if is_unsigned else _LONG) + long(int(value))
        if kind.kind is TypeClass.TIMESTAMP:
            return long(_TIMESTAMP) + string(ZONE) + string(str(value))
        return _other_value(kind, value)

    def _ddl(self, item: DdlItem, statement: tuple[str, str], before: VersionedTable | None, built_ms: int) -> bytes:
        word, text = statement
        return _message(
            _DDL,
            long(1),
            long(_DDL_WORDS.index(word)),
            string(text),
            long(item.ts),
            long(built_ms),
            optional(None if item.after is None else self._schema(item.after)),
            optional(None if before is None else self._schema(before)),
        )

    def _watermark(self, ts: Ts, built_ms: int) -> bytes:
        return _message(_WATERMARK, long(1), long(ts), long(built_ms))

    def _bootstrap(self, schema: VersionedTable, built_ms: int) -> bytes:
        return _message(_BOOTSTRAP, long(1), long(built_ms), self._schema(schema))

    def _schema(self, schema: VersionedTable) -> bytes:
        name = schema.table.name
        columns = blocks([self._column(column) for column in columns_of(schema, self.flavour)])
        indexes = blocks(list(map(_index, indexes_of(schema))))
        return b"".join((string(name.schema), string(name.table), long(schema.table_id), long(schema.version), columns, indexes))

    def _column(self, column: SentColumn) -> bytes:
        kind = column.type
        has_decimal = kind.kind is TypeClass.DECIMAL or (kind.kind is TypeClass.TIMESTAMP and self.flavour is Flavour.TICDC)
        is_numeric = kind.kind in _NUMERIC
        return b"".join(
            (
                string(column.name),
                *map(string, (type_name(kind), *charset_of(kind))),
                long(display_length(kind)),
                optional(long(column.decimal) if has_decimal else None),
                optional(blocks(list(map(string, kind.labels))) if kind.labels else None),
                optional(boolean(kind.unsigned) if is_numeric else None),
                optional(boolean(flag=False) if is_numeric else None),
                boolean(column.nullable),
                optional(None if column.default is None else string(column.default)),
            )
        )


def _message(kind: int, *fields: bytes) -> bytes:
    return b"".join((long(_MESSAGE), long(kind), long(kind), *fields))


def _other_value(kind: UpstreamType, value: Value) -> bytes:
    if kind.kind is TypeClass.FLOAT and isinstance(value, float):
        return long(_FLOAT) + struct.pack("<f", value)
    if kind.kind is TypeClass.DOUBLE and isinstance(value, float):
        return long(_DOUBLE) + struct.pack("<d", value)
    return long(_BYTES) + data(raw_bytes(value)) if is_bytes(kind) else long(_STRING) + string(str(value))


def _index(index: SentIndex) -> bytes:
    flags = b"".join(map(boolean, (index.unique, index.primary, index.nullable)))
    return string(index.name) + flags + blocks(list(map(string, index.columns)))
