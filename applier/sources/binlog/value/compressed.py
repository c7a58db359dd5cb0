"""Columns that MariaDB compresses (``VARCHAR(…) COMPRESSED``): each value has its own header.

Source: MariaDB's ``field.cc`` (Field_longstr::compress). The first byte is 0 for what is stored as it is; else its high half is the
method (8: zlib), and its low half how many bytes the length has that follows, the highest byte first; bit 3: a deflate stream without
zlib's header. An empty value has no byte at all.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final
from zlib import MAX_WBITS, decompressobj
from zlib import error as ZlibError  # noqa: N812 - a class

_ZLIB: Final = 8


def decompressing(read: Callable[[Sequence[Any]], Sequence[Any]] | None) -> Callable[[Sequence[bytes]], Sequence[Any]]:
    """Return what reads compressed values; ``read``: what makes values of their bytes. None: they are bytes."""

    def read_compressed(values: Sequence[bytes]) -> Sequence[Any]:
        plain = list(map(_plain, values))
        return plain if read is None else read(plain)

    return read_compressed


def _plain(value: bytes) -> bytes:
    if not value or not value[0]:
        return value[1:]
    method, is_raw, size = value[0] >> 4, value[0] & 8, value[0] & 7
    length = int.from_bytes(value[1 : 1 + size])
    if method != _ZLIB:
        raise ValueError("a value is compressed by an unknown method")
    stream = decompressobj(-MAX_WBITS if is_raw else MAX_WBITS)
    try:
        found = stream.decompress(value[1 + size :], length + 1)
    except ZlibError as cause:
        raise ValueError("a value cannot be decompressed") from cause
    if len(found) != length:
        raise ValueError("a compressed value has another length")
    return found
