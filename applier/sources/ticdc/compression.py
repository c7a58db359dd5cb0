"""Bodies that the producer compressed one by one (large-message-handle-compression): lz4 frames and snappy blocks.

The wire does not say which, or whether (open_protocol.md 2.10). An lz4 frame has its magic. A snappy block begins with its plain
length, which for 123 bytes is the byte of ``{``: only a body that does not parse as JSON is tried as snappy, by the caller.
"""

import cramjam
import lz4.frame

from applier.model.errors import ProtocolError

LZ4_MAGIC = b"\x04\x22\x4d\x18"

MAX_BODY_BYTES = 1 << 30
"""Largest plain body accepted. TiDB's largest row is 120 MiB (txn-entry-size-limit); escapes can make it several times that."""

_SNAPPY_EXPANSION = 64
"""No element of a snappy block yields more than 64 bytes, and each takes at least one: a bound on what a length may claim."""


def unpack_lz4(body: bytes) -> bytes:
    """Return the content of exactly one lz4 frame. ProtocolError (compression)."""
    decompressor = lz4.frame.LZ4FrameDecompressor()
    try:
        plain: bytes = decompressor.decompress(body, max_length=MAX_BODY_BYTES)
    except RuntimeError as cause:
        raise ProtocolError.at(None, "compression", "the lz4 frame is damaged") from cause
    if not decompressor.eof or decompressor.unused_data:
        raise ProtocolError.at(None, "compression", "the lz4 frame is cut off, too large, or followed by something else")
    return plain


def unpack_snappy(body: bytes) -> bytes:
    """Return the content of a snappy block. ProtocolError (compression)."""
    claimed = _claimed_length(body)
    if claimed > min(len(body) * _SNAPPY_EXPANSION, MAX_BODY_BYTES):
        raise ProtocolError.at(None, "compression", "the body is neither JSON nor lz4 nor snappy")
    try:
        return bytes(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError as cause:
        raise ProtocolError.at(None, "compression", "the body is neither JSON nor lz4 nor a whole snappy block") from cause


def _claimed_length(body: bytes) -> int:
    """Read the varint at the head: checked before the library reserves that much memory."""
    length = 0
    for index, byte in enumerate(body[:5]):
        length |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return length
    return MAX_BODY_BYTES + 1
