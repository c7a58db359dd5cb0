"""Row keys: handle-key values as bytes. Equal rows have equal keys, whichever shape, dialect or process wrote them.

A key is the msgpack list of the values in the order of ``Shape.handle_key``: integers, text, bytes, None; -0.0 is 0.0. Text with
foreign bytes (lone surrogates), which msgpack cannot hold, is extension type 1 with the bytes as they came upstream.
"""

from collections.abc import Sequence

import msgspec

from applier.model.errors import InvariantViolation
from applier.model.events import Value

KEYLESS = b""
"""The key of every row of a table without handle key."""

_FOREIGN_TEXT = 1
encode_plain = msgspec.msgpack.Encoder().encode
"""``encode_key`` for one value or more, none foreign text: the hot path has no need of its checks."""


def encode_key(values: Sequence[Value]) -> bytes:
    """Return the key of the values; ``KEYLESS`` for none."""
    if not values:
        return KEYLESS
    try:
        return encode_plain(values)
    except UnicodeEncodeError:
        return encode_plain([_wrap_foreign(value) for value in values])


def decode_key(key: bytes) -> list[Value]:
    """Return the values of a key. InvariantViolation if it is not a key."""
    if key == KEYLESS:
        return []
    try:
        return _decoder.decode(key)
    except (msgspec.DecodeError, UnicodeDecodeError) as cause:
        raise InvariantViolation("these bytes are not a row key", size=len(key)) from cause


def canonical_float(value: float) -> float:
    """Return the value that represents all that compare equal: -0.0 becomes 0.0."""
    return value + 0.0


def _wrap_foreign(value: Value) -> Value | msgspec.msgpack.Ext:
    if not isinstance(value, str):
        return value
    data = value.encode("utf-8", "surrogateescape")
    try:
        data.decode()
    except UnicodeDecodeError:
        return msgspec.msgpack.Ext(_FOREIGN_TEXT, data)
    return value


def _unwrap_foreign(code: int, data: memoryview) -> str:
    if code != _FOREIGN_TEXT:
        raise InvariantViolation("these bytes are not a row key", extension=code)
    return bytes(data).decode("utf-8", "surrogateescape")


_decoder = msgspec.msgpack.Decoder(list, ext_hook=_unwrap_foreign)
