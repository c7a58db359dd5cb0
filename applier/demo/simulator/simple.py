"""The simple protocol in its JSON encoding (canal_json_and_simple.md section 4): one event in each record, schemas in records of their own.

Independent of the applier's decoders: what one misunderstands, the other must not share. ``SimpleMessages`` is what both encodings have in
common: which message has what. ``simple_avro`` writes the same messages in Avro.
"""

import math
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Sequence
from typing import NamedTuple

from applier.demo.simulator.column_type import TypeClass, UpstreamType
from applier.demo.simulator.item import DdlItem, RowItem
from applier.demo.simulator.json_text import Flavour, tiflow_string
from applier.demo.simulator.mysql_text import DdlWriter, default_text, label_text
from applier.demo.simulator.operation import Row, action_type
from applier.demo.simulator.schema import UpstreamColumn, UpstreamIndex
from applier.demo.simulator.schema_versions import VersionedTable
from applier.demo.simulator.value_text import charset_of, ddl_word, display_length, is_bytes, raw_bytes, text_of, type_name
from applier.demo.simulator.wire_format import (
    COMPRESSORS,
    KeyExtras,
    SentImages,
    WireEvent,
    length_of_value,
    only_event,
    utf8,
)
from applier.model.events import TableName, Value
from applier.model.position import Ts

ZONE = "UTC"
"""The zone of the simulated TiCDC server."""
_WITHOUT_SCALE = frozenset({TypeClass.FLOAT, TypeClass.DOUBLE})
_WITH_FRACTION = frozenset({TypeClass.DATETIME, TypeClass.TIMESTAMP, TypeClass.TIME})


class SentColumn(NamedTuple):
    """A column of a schema message. ``decimal``: digits after the point, or of a second; ``default``: as text, None without one."""

    name: str
    type: UpstreamType
    nullable: bool
    default: str | None
    decimal: int


class SentIndex(NamedTuple):
    """An index of a schema message."""

    name: str
    unique: bool
    primary: bool
    nullable: bool
    columns: tuple[str, ...]


def columns_of(schema: VersionedTable, flavour: Flavour) -> list[SentColumn]:
    """Return the columns of a schema message, in their order of creation (tiflow) or in the table's.

    The hidden column of an index of an expression is one of them.
    """
    columns = [(number, _column(column)) for number, column in zip(schema.column_ids, schema.table.columns, strict=True)]
    if flavour is Flavour.TIFLOW:
        columns.sort(key=lambda pair: pair[0])
    hidden = [index for index in schema.table.indexes if index.expression]
    text = UpstreamType(sql="VARCHAR(255)", code=15, kind=TypeClass.STRING, size=255)
    return [column for _, column in columns] + [SentColumn(_hidden(index), text, True, None, 0) for index in hidden]


def _hidden(index: UpstreamIndex) -> str:
    return f"_v$_{index.name}_0"


def _column(column: UpstreamColumn) -> SentColumn:
    kind = column.type
    decimal = kind.scale if kind.kind is TypeClass.DECIMAL else kind.size if kind.kind in _WITH_FRACTION else 0
    return SentColumn(column.name, kind, column.nullable, _default(column), decimal)


def _default(column: UpstreamColumn) -> str | None:
    if not column.has_default or column.default is None:
        return None
    if column.type.kind in {TypeClass.ENUM, TypeClass.SET}:
        return label_text(column, int(column.default))
    if isinstance(column.default, bytes):
        return column.default.decode("utf-8", "replace")
    return default_text(column) if isinstance(column.default, int | float) else str(column.default)


def indexes_of(schema: VersionedTable) -> list[SentIndex]:
    """Return the indexes of a schema message: a clustered integer key is the last one, and is named ``primary``."""
    table = schema.table
    found, clustered = [], []
    for index in table.indexes:
        columns = (_hidden(index),) if index.expression else index.columns
        nullable = not index.expression and any(table.column(name).nullable for name in columns)
        made = SentIndex(index.name, index.unique, index.primary, nullable, columns)
        if index.primary and len(columns) == 1 and table.column(columns[0]).type.kind is TypeClass.INTEGER:
            clustered.append(made._replace(name="primary"))
        else:
            found.append(made)
    return found + clustered


class SimpleMessages(ABC):
    """Implements ``Wire``, apart from the bytes of each message."""

    broadcasts_ddls = True
    announces_keyless_rows = True

    def __init__(self, flavour: Flavour, compression: str) -> None:
        self.flavour = flavour
        self._compress = COMPRESSORS[compression]
        self._ddl_text = DdlWriter(flavour)

    def row(self, item: RowItem, images: SentImages, extras: KeyExtras, built_ms: int) -> WireEvent:
        """Write a row. The old row of a delete is ``old``."""
        return WireEvent(b"", self._compress(self._row(item, images, extras, built_ms)))

    def ddl(self, item: DdlItem, built_ms: int) -> WireEvent:
        """Write a DDL with the table after it, and before it where the producer says that."""
        before = item.before if self.flavour is Flavour.TIFLOW else None
        word, text = ddl_word(action_type(item.ddl)), self._ddl_text.write(item.ddl)
        return WireEvent(b"", self._compress(self._ddl(item, (word, text), before, built_ms)))

    def watermark(self, ts: Ts, built_ms: int) -> WireEvent:
        """Write a watermark."""
        return WireEvent(b"", self._compress(self._watermark(ts, built_ms)))

    def bootstrap(self, schema: VersionedTable, built_ms: int) -> WireEvent:
        """Write a schema. It has no commit ts."""
        return WireEvent(b"", self._compress(self._bootstrap(schema, built_ms)))

    frame = staticmethod(only_event)
    length = staticmethod(length_of_value)

    @abstractmethod
    def _row(self, item: RowItem, images: SentImages, extras: KeyExtras, built_ms: int) -> bytes: ...

    @abstractmethod
    def _ddl(self, item: DdlItem, statement: tuple[str, str], before: VersionedTable | None, built_ms: int) -> bytes: ...

    @abstractmethod
    def _watermark(self, ts: Ts, built_ms: int) -> bytes: ...

    @abstractmethod
    def _bootstrap(self, schema: VersionedTable, built_ms: int) -> bytes: ...


def row_word(item: RowItem) -> str:
    """Return the type of a row's message."""
    return "DELETE" if item.after is None else "INSERT" if item.before is None else "UPDATE"


class SimpleJsonWire(SimpleMessages):
    """Implements ``Wire``."""

    def _row(self, item: RowItem, images: SentImages, extras: KeyExtras, built_ms: int) -> bytes:
        name, schema = item.table.name, item.schema
        members = [
            '"version":1',
            *_names(name),
            f'"tableID":{item.physical_id}',
            f'"type":"{row_word(item)}"',
            *_times(item.ts, built_ms),
            f'"schemaVersion":{schema.version}',
        ]
        members += [] if extras.claim_check is None else [f'"claimCheckLocation":{tiflow_string(extras.claim_check)}']
        members += ['"handleKeyOnly":true'] if extras.only_handle_key or extras.claim_check is not None else []
        for member, row, places in (("data", item.after, images.after), ("old", item.before, images.before)):
            if row is not None and places:
                members.append(f'"{member}":{self._image(item, row, places)}')
        return utf8("{" + ",".join(members) + "}")

    def _image(self, item: RowItem, row: Row, places: Sequence[int]) -> str:
        columns = item.table.columns
        # A Go map: sorted by the bytes of its keys.
        ordered = sorted(places, key=lambda place: utf8(columns[place].name))
        return "{" + ",".join(f"{tiflow_string(columns[p].name)}:{self._value(columns[p].type, row[p])}" for p in ordered) + "}"

    def _value(self, kind: UpstreamType, value: Value) -> str:
        if value is None:
            return "null"
        if is_bytes(kind):
            return '"' + b64encode(raw_bytes(value)).decode() + '"'
        if kind.kind is TypeClass.TIMESTAMP:
            return f'{{"location":"{ZONE}","value":{tiflow_string(str(value))}}}'
        if isinstance(value, float) and self.flavour is Flavour.TICDC:
            return f'"{with_exponent(kind, value)}"'
        return tiflow_string(text_of(kind, value))

    def _ddl(self, item: DdlItem, statement: tuple[str, str], before: VersionedTable | None, built_ms: int) -> bytes:
        word, text = statement
        members = ['"version":1', f'"type":"{word}"', f'"sql":{tiflow_string(text)}', *_times(item.ts, built_ms)]
        members += [] if item.after is None else [f'"tableSchema":{self._schema(item.after)}']
        members += [] if before is None else [f'"preTableSchema":{self._schema(before)}']
        return utf8("{" + ",".join(members) + "}")

    def _watermark(self, ts: Ts, built_ms: int) -> bytes:
        return f'{{"version":1,"type":"WATERMARK","commitTs":{ts},"buildTs":{built_ms}}}'.encode()

    def _bootstrap(self, schema: VersionedTable, built_ms: int) -> bytes:
        return utf8(f'{{"version":1,"type":"BOOTSTRAP","commitTs":0,"buildTs":{built_ms},"tableSchema":{self._schema(schema)}}}')

    def _schema(self, schema: VersionedTable) -> str:
        name = schema.table.name
        columns = ",".join(map(_column_text, columns_of(schema, self.flavour)))
        indexes = ",".join(map(_index_text, indexes_of(schema)))
        return (
            f'{{"schema":{tiflow_string(name.schema)},"table":{tiflow_string(name.table)},"tableID":{schema.table_id}'
            f',"version":{schema.version},"columns":[{columns}],"indexes":[{indexes}]}}'
        )


def with_exponent(kind: UpstreamType, value: float) -> str:
    """Write a number as Go's ``%v`` does: ticdc up to v8.5.5 (ticdc#3973)."""
    text = text_of(kind, value)
    if value == 0 or -5 < math.floor(math.log10(abs(value))) < 21:
        return text
    digits = text.removeprefix("-").replace(".", "")
    exponent = len(text.removeprefix("-").split(".")[0]) - 1
    stripped = digits.lstrip("0")
    exponent -= len(digits) - len(stripped)
    mantissa = stripped.rstrip("0")
    head = mantissa[0] + ("." + mantissa[1:] if len(mantissa) > 1 else "")
    return f"{'-' if value < 0 else ''}{head}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _names(name: TableName) -> list[str]:
    return [f'"database":{tiflow_string(name.schema)}', f'"table":{tiflow_string(name.table)}']


def _times(ts: Ts, built_ms: int) -> list[str]:
    return [f'"commitTs":{ts}', f'"buildTs":{built_ms}']


def _column_text(column: SentColumn) -> str:
    kind = column.type
    charset, collation = charset_of(kind)
    members = [f'"mysqlType":"{type_name(kind)}"', f'"charset":"{charset}"', f'"collate":"{collation}"']
    members += [f'"length":{display_length(kind)}'] if display_length(kind) else []
    members += [f'"decimal":{column.decimal}'] if column.decimal and kind.kind not in _WITHOUT_SCALE else []
    members += ['"elements":[' + ",".join(map(tiflow_string, kind.labels)) + "]"] if kind.labels else []
    members += ['"unsigned":true'] if kind.unsigned and kind.kind is not TypeClass.BIT else []
    default = "null" if column.default is None else column.default if kind.kind is TypeClass.BIT else tiflow_string(column.default)
    nullable, described = "true" if column.nullable else "false", ",".join(members)
    return f'{{"name":{tiflow_string(column.name)},"dataType":{{{described}}},"nullable":{nullable},"default":{default}}}'


def _index_text(index: SentIndex) -> str:
    unique, primary, nullable = ("true" if flag else "false" for flag in (index.unique, index.primary, index.nullable))
    columns = ",".join(map(tiflow_string, index.columns))
    return f'{{"name":{tiflow_string(index.name)},"unique":{unique},"primary":{primary},"nullable":{nullable},"columns":[{columns}]}}'
