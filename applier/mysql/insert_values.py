"""Reads the values of an INSERT of a dump, row by row: what the dumpers write, and nothing else. Pure.

Bytes stay bytes: what a text means depends on its column and on the character set of the file (``file_value``).
"""

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, TypeAlias


class LiteralKind(IntEnum):
    """How a value is written."""

    NUMBER = 1
    TEXT = 2
    """In quotes: characters of the file's character set; raw bytes, where the column is binary."""
    BYTES = 3
    """As hexadecimal digits, as bits, or in quotes after ``_binary``."""


Literal: TypeAlias = tuple[LiteralKind, bytes] | None
"""A value without its quotes and escapes; None: NULL."""

_QUOTED: Final = rb"'((?:[^'\\]++|\\.|'')*+)'|\"((?:[^\"\\]++|\\.|\"\")*+)\""
_VALUE: Final = re.compile(
    rb"\s*+(?:(NULL)"
    rb"|(?:_binary\s*)?(?:0x([0-9a-f]*)|x'([0-9a-f]*)')"
    rb"|(?:_binary\s*)?(?:0b([01]+)|b'([01]*)')"
    rb"|([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)"
    rb"|(?:" + _QUOTED + rb")"
    rb"|_binary\s*(?:" + _QUOTED + rb")"
    # mydumper writes documents so.
    rb"|CONVERT\(\s*(?:" + _QUOTED + rb")\s*USING\s+utf8mb4\s*\)"
    rb")\s*+[,)]",
    re.IGNORECASE | re.DOTALL,
)
"""A value and the sign after it. The number of the group says how it is written."""
_HEX, _BITS, _NUMBER, _RAW = (2, 3), (4, 5), 6, (9, 10)
_DOUBLE: Final = frozenset({8, 10, 12})
"""In double quotes."""
_CLOSE: Final = ord(")")
_HEAD: Final = re.compile(rb"\s*(?:\(((?:`(?:[^`]|``)+`|[^()`])*)\))?\s*VALUES?\s*", re.IGNORECASE)
_NAME: Final = re.compile(rb"`((?:[^`]|``)+)`|([0-9A-Za-z_$\x80-\xff]+)")
_OPEN: Final = re.compile(rb"\s*\(")
_NEXT: Final = re.compile(rb"\s*(,)?")
_ESCAPES: Final = {
    b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a", b"%": b"\\%", b"_": b"\\_",
}  # fmt: skip
"""What represents another byte after a backslash (manual, "String Literals"); any other byte represents itself."""
_ESCAPED: Final = {quote: re.compile(rb"\\(.)|(" + quote + quote + rb")", re.DOTALL) for quote in (b"'", b'"')}


def columns_of(text: bytes, at: int) -> tuple[list[str], int]:
    """Return the columns that an INSERT lists after the table's name, which ends at ``at``, and where the rows begin. ValueError."""
    head = _HEAD.match(text, at)
    if head is None:
        raise ValueError("no VALUES follows the name of the table")
    names = [(quoted.replace(b"``", b"`") or plain).decode() for quoted, plain in _NAME.findall(head[1] or b"")]
    return names, head.end()


def rows_of(text: bytes, at: int) -> Iterator[list[Literal]]:
    """Yield the rows that begin at ``at``. ValueError: something else than a value is there."""
    value, following = _VALUE.match, _NEXT.match
    while True:
        found = _OPEN.match(text, at)
        if found is None:
            raise ValueError(f"no row begins at byte {at} of the statement")
        at, row = found.end(), list[Literal]()
        while not row or text[at - 1] != _CLOSE:
            found = value(text, at)
            if found is None:
                raise ValueError(f"the text at byte {at} of the statement is not a literal of a dump")
            row.append(_literal(found))
            at = found.end()
        yield row
        rest = following(text, at)
        if rest is None or rest[1] is None:
            break
        at = rest.end()
    if text[at:].strip():
        raise ValueError(f"something follows the rows, at byte {at} of the statement")


def _literal(found: re.Match[bytes]) -> Literal:
    group = found.lastindex or 0
    data = found[group]
    if group == 1:
        return None
    if group == _NUMBER:
        return LiteralKind.NUMBER, data
    if group in _HEX:
        return LiteralKind.BYTES, bytes.fromhex((b"0" * (len(data) % 2) + data).decode())
    if group in _BITS:
        return LiteralKind.BYTES, int(data or b"0", 2).to_bytes((len(data) + 7) // 8)
    kind = LiteralKind.BYTES if group in _RAW else LiteralKind.TEXT
    return kind, _unescaped(data, b'"' if group in _DOUBLE else b"'")


def _unescaped(data: bytes, quote: bytes) -> bytes:
    if b"\\" not in data and quote not in data:
        return data
    return _ESCAPED[quote].sub(lambda found: quote if found[1] is None else _ESCAPES.get(found[1], found[1]), data)
