"""The Open Protocol as producers write it: events to the key and value bytes of records (open_protocol.md section 2).

Independent of ``applier.sources.open_protocol``: what one misunderstands, the other must not share.
"""

import struct
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, cast

from applier.demo.simulator.json_text import STRING_WRITERS, Flavour, float_text, go_quote
from applier.demo.simulator.wire_format import COMPRESSORS, NO_EXTRAS, RECORD_OVERHEAD, KeyExtras, RecordBytes, WireEvent, utf8
from applier.model.events import Value
from applier.model.position import Ts
from applier.sources.column_flags import Flag

VERSION = struct.pack(">Q", 1)
_STRING_CODES = frozenset({15, 253, 254})
_BLOB_CODES = frozenset({249, 250, 251, 252})
_FLOAT, _DOUBLE = 4, 5
_ROW, _DDL, _RESOLVED, _ADMIN = 1, 2, 3, 4


class EncodedColumn(NamedTuple):
    """A column as the wire describes it. ``written``: what is written as ``f`` instead of its flags; 0 omits ``f``."""

    name: str
    mysql_type: int
    flags: int
    written: int | None = None


class Encoder:
    """Writes events in one flavour with one compression (``none``, ``lz4``, ``snappy``)."""

    def __init__(self, flavour: Flavour = Flavour.TIFLOW, compression: str = "none") -> None:
        self.flavour = flavour
        self._string = STRING_WRITERS[flavour]
        self._compress = COMPRESSORS[compression]
        self._images: dict[tuple[EncodedColumn, ...], ImageWriter] = {}

    def image_writer(self, columns: tuple[EncodedColumn, ...]) -> "ImageWriter":
        """Return the writer of images with these columns, compiled once."""
        writer = self._images.get(columns)
        if writer is None:
            writer = self._images[columns] = ImageWriter(self.flavour, columns)
        return writer

    def row_key(self, ts: Ts, schema: str, table: str, extras: KeyExtras = NO_EXTRAS) -> bytes:
        """Write the key JSON of a row event."""
        members = [f'"ts":{ts}', *self._names(schema, table)]
        partition = [] if extras.partition_id is None else [f'"ptn":{extras.partition_id}']
        if self.flavour is Flavour.TIFLOW:
            members += [*partition, f'"t":{_ROW}']
            members += ['"ohk":true'] if extras.only_handle_key else []
        else:
            members.append(f'"t":{_ROW}')
            # ticdc writes the member twice in claim-check mode; the last one counts.
            members += ['"ohk":true'] if extras.only_handle_key or extras.claim_check is not None else []
            members += ['"ohk":false'] if extras.claim_check is not None else []
        if extras.claim_check is not None:
            members.append(f'"ccl":{self._string(extras.claim_check)}')
        if self.flavour is Flavour.TICDC:
            members += partition
        return utf8("{" + ",".join(members) + "}")

    def row_value(self, *, after: str | None = None, previous: str | None = None, deleted: str | None = None) -> bytes:
        """Write the value of a row event from image texts: ``u``, ``p``, ``d``."""
        images = [(name, image) for name, image in (("u", after), ("p", previous), ("d", deleted)) if image is not None]
        return self._compress(utf8("{" + ",".join(f'"{name}":{image}' for name, image in images) + "}"))

    def ddl(self, ts: Ts, name: tuple[str, str], query: str, ddl_type: int) -> WireEvent:
        """Write a DDL event; ``name`` is (schema, table), table "" for a schema DDL."""
        key = "{" + ",".join([f'"ts":{ts}', *self._names(*name), f'"t":{_DDL}']) + "}"
        return WireEvent(utf8(key), self._compress(utf8(f'{{"q":{self._string(query)},"t":{ddl_type}}}')))

    def resolved(self, ts: Ts) -> WireEvent:
        """Write a resolved event."""
        return WireEvent(f'{{"ts":{ts},"t":{_RESOLVED}}}'.encode(), b"")

    def admin(self, partitions: int) -> WireEvent:
        """Write the admin event of the founding design: the new number of partitions. It has no ts."""
        return WireEvent(f'{{"t":{_ADMIN}}}'.encode(), self._compress(f'{{"partition":{partitions}}}'.encode()))

    def _names(self, schema: str, table: str) -> list[str]:
        keep_empty = self.flavour is Flavour.TICDC
        return [f'"{name}":{self._string(text)}' for name, text in (("scm", schema), ("tbl", table)) if text or keep_empty]


class ImageWriter:
    """Writes images of one column list. Hot path: prefixes and value writers are chosen once per table."""

    def __init__(self, flavour: Flavour, columns: tuple[EncodedColumn, ...]) -> None:
        places = list(range(len(columns)))
        if flavour is Flavour.TIFLOW:  # a Go map is written in the byte order of its keys
            places.sort(key=lambda place: utf8(columns[place].name))
        string = STRING_WRITERS[flavour]
        self._members = [(place, _member_prefix(columns[place], string), _value_writer(columns[place], flavour)) for place in places]

    def write(self, values: Sequence[Value]) -> str:
        """Write the image of a whole row, values in the order of the columns."""
        return self._write(self._members, values)

    def write_some(self, values: Sequence[Value], places: Iterable[int]) -> str:
        """Write an image of the columns at ``places`` only."""
        wanted = frozenset(places)
        return self._write([member for member in self._members if member[0] in wanted], values)

    @staticmethod
    def _write(members: list[tuple[int, str, Callable[[Value], str]]], values: Sequence[Value]) -> str:
        parts = [prefix + ("null" if values[place] is None else writer(values[place])) for place, prefix, writer in members]
        return "{" + "},".join(parts) + "}}" if parts else "{}"


def _member_prefix(column: EncodedColumn, string: Callable[[str], str]) -> str:
    handle = '"h":true,' if column.flags & Flag.HANDLE_KEY else ""
    written = column.flags if column.written is None else column.written
    flags = f'"f":{written},' if written else ""
    return f'{string(column.name)}:{{"t":{column.mysql_type},{handle}{flags}"v":'


def _value_writer(column: EncodedColumn, flavour: Flavour) -> Callable[[Value], str]:
    string = STRING_WRITERS[flavour]
    code = column.mysql_type
    if code in _BLOB_CODES:
        return lambda value: '"' + b64encode(value if isinstance(value, bytes) else utf8(str(value))).decode() + '"'
    if code in (_FLOAT, _DOUBLE):
        single = code == _FLOAT
        return lambda value: float_text(cast("float", value), single=single, flavour=flavour)
    if code in _STRING_CODES and column.flags & Flag.BINARY:
        return lambda value: string(go_quote(value if isinstance(value, bytes) else utf8(str(value))))
    return lambda value: string(value) if isinstance(value, str) else str(value)


def frame(events: Sequence[WireEvent]) -> RecordBytes:
    """Frame events as one record (open_protocol.md 2.1)."""
    lengths = struct.Struct(">Q").pack
    key = VERSION + b"".join(lengths(len(event.key)) + event.key for event in events)
    return RecordBytes(key, b"".join(lengths(len(event.value)) + event.value for event in events))


def record_length(events: Sequence[WireEvent]) -> int:
    """Return the length that producers compare with max-message-bytes."""
    # 8: the version in front of the key.
    return sum(event.length for event in events) + RECORD_OVERHEAD + 8
