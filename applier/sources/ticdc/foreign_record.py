"""Names the protocol of a record that is not Open Protocol, by its content (canal_json_and_simple.md 10)."""

from collections.abc import Collection
from typing import Final

import msgspec

from applier.model.errors import OTHER_PROTOCOL, ProtocolError
from applier.sources.ticdc.compression import LZ4_MAGIC, unpack_lz4, unpack_snappy

NO_SCHEMA_ID: Final = bytes(4)
SIMPLE_AVRO: Final = frozenset(b"\x16" + bytes((kind, kind)) + b"\x02" for kind in (0, 2, 4, 6))
"""How a record of the simple protocol begins in Avro: the message's record, its union twice, version 1."""

_parse = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def refuse_foreign(key: bytes | None, value: bytes | None) -> ProtocolError | None:
    """Return the error (version) that names the protocol of a record whose framing is not Open Protocol's; None: not known."""
    name = foreign_protocol(key, value)
    if name is None:
        return None
    return ProtocolError.at(None, "version", f"the record is {name}, not Open Protocol", remedy=OTHER_PROTOCOL)


def foreign_protocol(key: bytes | None, value: bytes | None) -> str | None:
    """Return the name of the protocol that the record seems to have, with what it lacks; None: of no protocol that is known here."""
    if key and value and _has_schema_id(key) and _has_schema_id(value):
        return "avro with a schema registry"
    for plain in _plain_forms(value or b""):
        if plain[: len(b"\x16\0\0\2")] in SIMPLE_AVRO:
            return "simple (Avro)"
        try:
            members = _parse(plain)
        except (ValueError, RecursionError):
            continue
        return _of_members(members.keys())
    return None


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


def _of_members(names: Collection[str]) -> str | None:
    def has(*wanted: str) -> bool:
        return all(name in names for name in wanted)

    if has("isDdl", "es"):
        return "canal-json" if "_tidb" in names else "canal-json without enable-tidb-extension"
    if has("version", "type", "commitTs", "buildTs"):
        return "simple (JSON)"
    if "payload" in names:
        return "debezium"
    if has("database", "table", "type", "ts"):
        return "maxwell"
    return None
