"""One record as a message: what it is about, its images as bytes. Both encodings, plain or compressed (canal_json_and_simple.md 4, 5).

A record is one message, its key is null. Nothing but the bytes says which encoding it has, or whether it is compressed: what parses is it.
A compressed record whose first byte is that of a plain one is tried as plain first.
"""

from typing import Any, Final, NamedTuple

import msgspec

from applier.model.errors import ProtocolError
from applier.model.events import RowOperation, TableName
from applier.sources.simple.avro import MESSAGE, AvroMessage, read_avro
from applier.sources.simple.table_version import WireTable
from applier.sources.ticdc.compression import LZ4_MAGIC, unpack_lz4, unpack_snappy
from applier.sources.ticdc.foreign_record import SIMPLE, refuse_other
from applier.sources.ticdc.json_text import parse_object, refuse

VERSION: Final = 1
MAX_UINT64: Final = 2**64 - 1
ROWS: Final = {"INSERT": RowOperation.INSERT, "UPDATE": RowOperation.UPDATE, "DELETE": RowOperation.DELETE}
DDLS: Final = frozenset({"CREATE", "ALTER", "ERASE", "RENAME", "TRUNCATE", "CINDEX", "DINDEX", "QUERY"})
WATERMARK, BOOTSTRAP = "WATERMARK", "BOOTSTRAP"
AVRO_ROW: Final = b"\x16\x06\x06\x02"
"""How a plain row in Avro begins."""

_NOTHING: Final = msgspec.Raw(b"null")


class WireChecksum(msgspec.Struct, gc=False, frozen=True):
    """The checksum of a row. The columns' order and forms are not wholly on the wire, so only TiCDC's own verdict counts."""

    corrupted: bool = False


class JsonMessage(msgspec.Struct, gc=False, frozen=True):
    """A message in JSON, its images and schemas as the bytes that came (``null`` where there is none)."""

    version: int
    type: str
    commitTs: int = 0  # noqa: N815 - names of the wire, here and below
    buildTs: int = 0  # noqa: N815
    database: str = ""
    table: str = ""
    tableID: int = 0  # noqa: N815
    schemaVersion: int = 0  # noqa: N815
    sql: str = ""
    data: msgspec.Raw = _NOTHING
    old: msgspec.Raw = _NOTHING
    claimCheckLocation: str | None = None  # noqa: N815
    handleKeyOnly: bool | None = None  # noqa: N815
    checksum: WireChecksum | None = None
    tableSchema: msgspec.Raw = _NOTHING  # noqa: N815
    preTableSchema: msgspec.Raw = _NOTHING  # noqa: N815


class SimpleMessage(NamedTuple):
    """A message of either encoding. ``new`` and ``old``: JSON objects or maps of values; None where there is no image.

    ``zones``: of Avro, the zones that its TIMESTAMP values name.
    ``kind``: the member ``type``. ``table_id``: the physical one. ``is_reduced``: the images hold the handle key only.
    """

    kind: str
    commit_ts: int
    built_ms: int
    name: TableName = TableName("", "")
    table_id: int = 0
    version: int = 0
    sql: str = ""
    new: bytes | dict[str, Any] | None = None
    old: bytes | dict[str, Any] | None = None
    is_reduced: bool = False
    claim_check: str | None = None
    is_corrupted: bool = False
    schema: WireTable | None = None
    schema_before: WireTable | None = None
    zones: frozenset[str] = frozenset()


decode_json: Final = msgspec.json.Decoder(JsonMessage).decode
"""The fast way for a plain JSON message: ValueError or RecursionError for any other record, and for bad ones. It checks types only."""
_schema: Final = msgspec.json.Decoder(WireTable | None).decode


def read_message(key: bytes | None, value: bytes | None) -> SimpleMessage:
    """Read a record. ProtocolError (version, json, avro, compression, field_type); it names the protocol that the record has instead."""
    try:
        if key:
            raise ProtocolError.at(None, "version", "the record has a key, which no record of the simple protocol has")
        if not value:
            raise ProtocolError.at(None, "version", "the record has no value")
        message = _unpacked(value)
    except ProtocolError as error:
        raise refuse_other(SIMPLE, key, value) or error from None
    return message


def _unpacked(value: bytes) -> SimpleMessage:
    if value.startswith(LZ4_MAGIC):
        return _plain(unpack_lz4(value))
    try:
        return _plain(value)
    except ProtocolError as plain_error:
        try:
            plain = unpack_snappy(value)
        except ProtocolError:
            raise plain_error from None
        return _plain(plain)


def _plain(value: bytes) -> SimpleMessage:
    return _of_avro(read_avro(value)) if value[:1] == MESSAGE else of_json(_json_message(value))


def _json_message(value: bytes) -> JsonMessage:
    try:
        return decode_json(value)
    except (ValueError, RecursionError) as cause:
        members = parse_object(value)
        if not {"version", "type"} <= members.keys():
            raise ProtocolError.at(None, "version", "the record is not a message of the simple protocol") from cause
        raise ProtocolError.at(None, "field_type", "a member of the message has the wrong type or range") from cause


def of_json(message: JsonMessage) -> SimpleMessage:
    """Return what a message in JSON says. ProtocolError (version, json)."""
    return SimpleMessage(
        kind=message.type,
        commit_ts=message.commitTs,
        built_ms=message.buildTs,
        name=TableName(message.database, message.table),
        table_id=message.tableID,
        version=_version(message.version, message.schemaVersion),
        sql=message.sql,
        new=_image(message.data),
        old=_image(message.old),
        is_reduced=bool(message.handleKeyOnly),
        claim_check=message.claimCheckLocation or None,
        is_corrupted=message.checksum is not None and message.checksum.corrupted,
        schema=_table(message.tableSchema),
        schema_before=_table(message.preTableSchema),
    )


def _version(version: int, schema_version: int) -> int:
    if version != VERSION:
        raise ProtocolError.at(None, "version", "the message is not of version 1 of the simple protocol", version=version)
    return schema_version


def _image(raw: msgspec.Raw) -> bytes | None:
    data = bytes(raw)
    return None if data == b"null" else data


def _table(raw: msgspec.Raw) -> WireTable | None:
    try:
        found: WireTable | None = _schema(raw)
    except (ValueError, RecursionError) as cause:
        raise refuse("the schema of a table cannot be read") from cause
    return found


def _of_avro(message: AvroMessage) -> SimpleMessage:
    return SimpleMessage(
        kind=message.kind,
        commit_ts=message.commit_ts,
        built_ms=message.built_ms,
        name=TableName(message.database, message.table),
        table_id=message.table_id,
        version=_version(message.version, message.schema_version),
        sql=message.sql,
        new=message.new,
        old=message.old,
        is_reduced=message.is_reduced,
        claim_check=message.claim_check or None,
        is_corrupted=message.is_corrupted,
        schema=message.schema,
        schema_before=message.schema_before,
        zones=message.zones,
    )
