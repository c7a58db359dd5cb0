"""Names the protocol of a record by its content (canal_json_and_simple.md 10), and refuses a record of another one than is read.

A reader looks before it guesses: one record of another protocol stops it, with the name of that protocol and what the changefeed needs. It
is not quarantined: otherwise all that follow would be too, and the replica would silently lose rows.
"""

import re
from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec

from applier.model.errors import TIDB_EXTENSION, ProtocolError, Remedy, readable_protocol, source_protocol
from applier.model.failure import OTHER_PROTOCOL
from applier.sources.ticdc.compression import LZ4_MAGIC, unpack_lz4, unpack_snappy

OPEN_PROTOCOL: Final = "open-protocol"
CANAL_JSON: Final = "canal-json"
SIMPLE: Final = "simple"
NO_EXTENSION: Final = "canal-json without enable-tidb-extension"
SHOWN: Final = {OPEN_PROTOCOL: "Open Protocol"}
"""What messages call a protocol, if not by the name that it has in a sink URI."""

NO_SCHEMA_ID: Final = bytes(4)
SIMPLE_AVRO: Final = frozenset(b"\x16" + bytes((kind, kind)) + b"\x02" for kind in (0, 2, 4, 6))
"""How a record of the simple protocol begins in Avro: the message's record, its union twice, version 1."""
FRAMED: Final = (1).to_bytes(8, "big")
"""How the key of Open Protocol begins; Maxwell's has nothing after it."""

_FIRST_EVENT: Final = slice(16, 17)
_CSV: Final = re.compile(rb'"?[IUD]"?,"?[^",\n]+"?,"?[^",\n]*"?,')
_parse = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class RecordProtocol(NamedTuple):
    """What a record seems to be. ``reader``: the name in ``source.protocol`` by which it is read; '' if it cannot be applied.

    ``lacks``: why not; '' if the option ``enable-tidb-extension`` alone is missing.
    """

    name: str
    reader: str = ""
    lacks: str = ""


_NO_WATERMARK: Final = "It has no watermarks, so no transaction can be restored"
_NO_DDLS: Final = f"{_NO_WATERMARK}, and it drops DDLs"
_AVRO: Final = RecordProtocol("avro with a schema registry", lacks=_NO_DDLS)
_DEBEZIUM: Final = RecordProtocol("debezium", lacks=_NO_DDLS)
_CSV_ROWS: Final = RecordProtocol("csv", lacks=_NO_DDLS)
_MAXWELL: Final = RecordProtocol("maxwell", lacks=f"{_NO_WATERMARK}, and it has no commit timestamps")
_PLAIN_CANAL: Final = RecordProtocol(NO_EXTENSION)


def refuse_other(wanted: str, key: bytes | None, value: bytes | None) -> ProtocolError | None:
    """Return the error (protocol) that names the protocol of a record that the reader of ``wanted`` cannot take apart; None: not known.

    None too if the record seems to be of ``wanted``: then it is damaged, and the reader's own error says how.
    """
    found = protocol_of(key, value)
    if found is None or found.reader == wanted:
        return None
    return ProtocolError.at(None, OTHER_PROTOCOL, f"the record is {found.name}, not {SHOWN.get(wanted, wanted)}", remedy=remedy_of(found))


def remedy_of(found: RecordProtocol) -> Remedy:
    """Return what to do about a protocol that is not the one that is read."""
    if found.reader:
        return source_protocol(found.reader)
    return readable_protocol(found.lacks) if found.lacks else TIDB_EXTENSION


def protocol_of(key: bytes | None, value: bytes | None) -> RecordProtocol | None:
    """Return what protocol the record seems to have; None: none that is known here."""
    if key and key.startswith(FRAMED) and key[_FIRST_EVENT] == b"{":
        return RecordProtocol(SHOWN[OPEN_PROTOCOL], OPEN_PROTOCOL)
    if value and _has_schema_id(value) and (not key or _has_schema_id(key)):
        return _AVRO
    for plain in _plain_forms(value or b""):
        if plain[: len(b"\x16\0\0\2")] in SIMPLE_AVRO:
            return RecordProtocol("simple (Avro)", SIMPLE)
        try:
            members = _parse(plain)
        except (ValueError, RecursionError):
            continue
        return _of_members(members.keys())
    return _CSV_ROWS if value and _CSV.match(value) else None


def _has_schema_id(message: bytes) -> bool:
    """Tell a message with the id of its schema: 0 and four bytes (Confluent; ids begin with 1), or 3, 0 or 5, and a UUID (Glue)."""
    if message[:1] == b"\0":
        return len(message) > len(NO_SCHEMA_ID) and message[1:5] != NO_SCHEMA_ID
    return message[:2] in (b"\3\0", b"\3\5") and len(message) >= 2 + 16


def _plain_forms(value: bytes) -> list[bytes]:
    """Return the value as it came, then what it is if it is compressed."""
    unpack = unpack_lz4 if value.startswith(LZ4_MAGIC) else unpack_snappy
    try:
        return [value, unpack(value)]
    except ProtocolError:
        return [value]


def _of_members(names: Collection[str]) -> RecordProtocol | None:
    def has(*wanted: str) -> bool:
        return all(name in names for name in wanted)

    if has("isDdl", "es"):
        return RecordProtocol(CANAL_JSON, CANAL_JSON) if "_tidb" in names else _PLAIN_CANAL
    if has("version", "type", "commitTs", "buildTs"):
        return RecordProtocol("simple (JSON)", SIMPLE)
    if "payload" in names:
        return _DEBEZIUM
    return _MAXWELL if has("database", "table", "type", "ts") else None
