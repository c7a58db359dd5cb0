"""canal-json with the TiDB extension as producers write it (canal_json_and_simple.md section 2): one event in each record, no key.

Independent of the applier's decoders: what one misunderstands, the other must not share.
"""

import random
from collections.abc import Callable, Iterable, Sequence

from applier.demo.simulator.column_type import TypeClass, UpstreamType
from applier.demo.simulator.item import DdlItem, RowItem
from applier.demo.simulator.json_text import Flavour, easyjson_string, tiflow_string
from applier.demo.simulator.mysql_text import DdlWriter
from applier.demo.simulator.operation import Row, action_type, event_name
from applier.demo.simulator.schema import Table, UpstreamColumn
from applier.demo.simulator.schema_versions import VersionedTable
from applier.demo.simulator.value_text import compatible_type, ddl_word, is_bytes, plain_type, raw_bytes, text_of
from applier.demo.simulator.wire_format import (
    COMPRESSORS,
    KeyExtras,
    SentImages,
    WireEvent,
    WireOptions,
    length_of_value,
    only_event,
    utf8,
)
from applier.model.events import Value
from applier.model.position import Ts

_PHYSICAL_SHIFT = 18
_NO_COLUMNS = '"sqlType":null,"mysqlType":null,"data":null,"old":null'

_JAVA_TYPES: dict[TypeClass, int] = {
    TypeClass.FLOAT: 7,
    TypeClass.DOUBLE: 8,
    TypeClass.DECIMAL: 3,
    TypeClass.BINARY: 2004,
    TypeClass.BLOB: 2004,
    TypeClass.TEXT: 2005,
    TypeClass.DATE: 91,
    TypeClass.TIME: 92,
    TypeClass.DATETIME: 93,
    TypeClass.TIMESTAMP: 93,
    TypeClass.YEAR: 12,
    TypeClass.BIT: -7,
    TypeClass.ENUM: 4,
    TypeClass.SET: -7,
    TypeClass.JSON: 12,
}
_CHAR, _VARCHAR = 1, 12
_CHAR_CODE = 254
_INTEGER_TYPES: dict[int, tuple[int, int]] = {8: (-6, 5), 16: (5, 4), 24: (4, 4), 32: (4, -5), 64: (-5, 3)}
"""Bits -> Java type, and that of an unsigned value which the signed type cannot hold."""


def java_type(kind: UpstreamType, value: Value) -> int:
    """Return the code in ``sqlType``: it depends on the value of unsigned integers."""
    if kind.kind is TypeClass.INTEGER:
        base, larger = _INTEGER_TYPES[kind.size]
        # MEDIUMINT fits into Java's int, whatever its sign.
        return larger if kind.unsigned and isinstance(value, int) and value >= 1 << kind.size - 1 else base
    if kind.kind is TypeClass.STRING:
        return _CHAR if kind.code == _CHAR_CODE else _VARCHAR
    return _JAVA_TYPES[kind.kind]


class CanalJsonWire:
    """Implements ``Wire``."""

    broadcasts_ddls = False
    announces_keyless_rows = True

    def __init__(self, flavour: Flavour, compression: str, options: WireOptions) -> None:
        self.flavour = flavour
        self._compress = COMPRESSORS[compression]
        self._options = options
        self._ddl_text = DdlWriter(flavour)
        self._type_text = compatible_type if options.content_compatible else plain_type
        # A Go map: another order in each message. Drawn here, so that equal seeds give equal logs.
        self._order = random.Random("the order of mysqlType")
        self._types: dict[Table, list[str]] = {}

    def row(self, item: RowItem, images: SentImages, extras: KeyExtras, built_ms: int) -> WireEvent:
        """Write a row: ``data`` is the row after the change, or the deleted one."""
        table, places = item.table, images.after if images.after is not None else images.before or ()
        values = item.after if item.after is not None else item.before or ()
        word = "DELETE" if item.after is None else "INSERT" if item.before is None else "UPDATE"
        old = "null" if item.after is None or images.before is None else f"[{self._image(table, item.before or (), images.before)}]"
        columns, extension = table.columns, self._extension(self._row_extension(item.ts, extras))
        keys = ",".join(self._keys(table, places))
        java = ",".join(f"{_name(columns[place])}:{java_type(columns[place].type, values[place])}" for place in places)
        java_types = f"{{{java}}}" if places else "null"
        mysql_types = f"{{{self._mysql_types(table, places)}}}" if places or self.flavour is Flavour.TIFLOW else "null"
        text = (
            f'{{"id":0,"database":{easyjson_string(table.name.schema)},"table":{easyjson_string(table.name.table)}'
            f',"pkNames":[{keys}],"isDdl":false,"type":"{word}",{_times(item.ts, built_ms)},"sql":""'
            f',"sqlType":{java_types},"mysqlType":{mysql_types},"old":{old}'
            f',"data":[{self._image(table, values, places)}]{extension}}}'
        )
        return self._event(text)

    def ddl(self, item: DdlItem, built_ms: int) -> WireEvent:
        """Write a DDL, under its new name."""
        schema, table = event_name(item.ddl)
        extension = self._extension(f'"commitTs":{item.ts}')
        text = (
            f'{{"id":0,"database":{tiflow_string(schema)},"table":{tiflow_string(table)},"pkNames":null,"isDdl":true'
            f',"type":"{ddl_word(action_type(item.ddl))}",{_times(item.ts, built_ms)}'
            f',"sql":{tiflow_string(self._ddl_text.write(item.ddl))},{_NO_COLUMNS}{extension}}}'
        )
        return self._event(text)

    def watermark(self, ts: Ts, built_ms: int) -> WireEvent:
        """Write a watermark. It exists with the extension only."""
        text = (
            '{"id":0,"database":"","table":"","pkNames":null,"isDdl":false,"type":"TIDB_WATERMARK"'
            f',{_times(ts, built_ms)},"sql":"",{_NO_COLUMNS},"_tidb":{{"watermarkTs":{ts}}}}}'
        )
        return self._event(text)

    def bootstrap(self, schema: VersionedTable, built_ms: int) -> None:
        """Nothing: rows carry their types."""
        del schema, built_ms

    frame = staticmethod(only_event)
    length = staticmethod(length_of_value)

    def _event(self, text: str) -> WireEvent:
        return WireEvent(b"", self._compress(utf8(text)))

    def _keys(self, table: Table, places: Sequence[int]) -> Iterable[str]:
        """Yield the columns of the primary key in the table's order; tiflow knows only the columns that it sends."""
        key = {name for index in table.indexes if index.primary for name in index.columns}
        sent = range(len(table.columns)) if self.flavour is Flavour.TICDC else places
        return [_name(table.columns[place]) for place in sorted(sent) if table.columns[place].name in key]

    def _mysql_types(self, table: Table, places: Sequence[int]) -> str:
        found = self._types.get(table)
        if found is None:
            found = self._types[table] = [f"{_name(column)}:{easyjson_string(self._type_text(column.type))}" for column in table.columns]
        members = [found[place] for place in places]
        self._order.shuffle(members)
        return ",".join(members)

    def _image(self, table: Table, values: Row, places: Sequence[int]) -> str:
        columns = table.columns
        return "{" + ",".join(f"{_name(columns[place])}:{_value(columns[place].type, values[place])}" for place in places) + "}"

    @staticmethod
    def _row_extension(ts: Ts, extras: KeyExtras) -> str:
        members = [f'"commitTs":{ts}']
        members += ['"onlyHandleKey":true'] if extras.only_handle_key else []
        members += [] if extras.claim_check is None else [f'"claimCheckLocation":{easyjson_string(extras.claim_check)}']
        return ",".join(members)

    def _extension(self, members: str) -> str:
        return f',"_tidb":{{{members}}}' if self._options.extension else ""


def _name(column: UpstreamColumn) -> str:
    return easyjson_string(column.name)


def _times(ts: Ts, built_ms: int) -> str:
    return f'"es":{ts >> _PHYSICAL_SHIFT},"ts":{built_ms}'


def _value(kind: UpstreamType, value: Value) -> str:
    if value is None:
        return "null"
    write: Callable[[str], str] = easyjson_string
    return write(raw_bytes(value).decode("latin-1") if is_bytes(kind) else text_of(kind, value))
