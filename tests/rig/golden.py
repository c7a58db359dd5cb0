"""Encodes the events of golden records again with the simulator's encoder."""

import base64
import json
import struct

import cramjam
import lz4.frame

from applier.demo.simulator.encoder import EncodedColumn, Encoder, frame
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.wire_format import KeyExtras, RecordBytes, WireEvent

_OPEN = {
    "none": bytes,
    "lz4": lambda body: bytes(lz4.frame.decompress(body)),
    "snappy": lambda body: bytes(cramjam.snappy.decompress_raw(body)),
}
_VALUES = {"int": int, "float": float, "str": str, "bytes_b64": base64.b64decode}


def bodies(value, compression):
    place = 0
    while place < len(value):
        (length,) = struct.unpack_from(">Q", value, place)
        yield _OPEN[compression](value[place + 8 : place + 8 + length]) if length else b""
        place += 8 + length


def reencoded(line) -> RecordBytes:
    compression = line.get("compression", "none")
    encoder = Encoder(Flavour(line["flavour"]), compression)
    raw = base64.b64decode(line["value_b64"])
    return frame([encode(encoder, event, body) for event, body in zip(line["events"], bodies(raw, compression), strict=True)])


def encode(encoder, event, body) -> WireEvent:
    if event["type"] == "resolved":
        return encoder.resolved(event["ts"])
    if event["type"] == "ddl":
        return encoder.ddl(event["commit_ts"], (event["schema"], event["table"]), event["query"], event["ddl_type"])
    extras = KeyExtras(partition_id=event["partition_id"], only_handle_key=event["only_handle_key"], claim_check=event["claim_check"])
    key = encoder.row_key(event["commit_ts"], event["schema"], event["table"], extras)
    # The wire's own order of columns is that of the table, which events do not keep.
    order = json.loads(body.decode("utf-8", "surrogateescape"))
    before = image(encoder, event["before"], order.get("p") or order.get("d"))
    deletes = event["op"] == "delete"
    previous = None if deletes else before if before is not None else "{}" if "p" in order else None
    return WireEvent(
        key, encoder.row_value(after=image(encoder, event["after"], order.get("u")), previous=previous, deleted=before if deletes else None)
    )


def image(encoder, columns, order):
    if columns is None:
        return None
    names = list(order)
    wire = tuple(EncodedColumn(name, columns[name]["mysql_type"], columns[name]["flags"]) for name in names)
    return encoder.image_writer(wire).write([value(columns[name]["value"]) for name in names])


def value(tagged):
    if tagged is None:
        return None
    ((kind, text),) = tagged.items()
    return _VALUES[kind](text)
