"""The lines of copied rows: what separates their values, and how a value that holds a separator is escaped. As bulk loads have them.

The separators are control characters, which texts hardly hold: whole blocks are looked through for them, and not each value.
"""

from collections.abc import Sequence
from typing import Final

FIELD_END: Final = b"\x1f"
LINE_END: Final = b"\x1e"
ESCAPE: Final = b"\x1b"
NULL: Final = ESCAPE + b"N"

_SPECIAL: Final = (ESCAPE, FIELD_END, LINE_END)


def lines_of(rows: Sequence[Sequence[bytes | None]]) -> bytes:
    """Return the lines of some rows."""
    fields = sum(map(len, rows)) - len(rows)
    nulls = sum(row.count(None) for row in rows)
    lines = b"".join([FIELD_END.join([NULL if value is None else value for value in row]) + LINE_END for row in rows])
    # Each separator occurs as often as we have written it: then no value holds one.
    if (lines.count(ESCAPE), lines.count(FIELD_END), lines.count(LINE_END)) == (nulls, fields, len(rows)):
        return lines
    return b"".join([FIELD_END.join([NULL if value is None else _escaped(value) for value in row]) + LINE_END for row in rows])


def _escaped(value: bytes) -> bytes:
    for special in _SPECIAL:
        value = value.replace(special, ESCAPE + special)
    return value


def rows_of(lines: bytes) -> list[list[bytes | None]]:
    """Return the rows of some lines: the inverse of ``lines_of``."""
    if ESCAPE not in lines:
        return [line.split(FIELD_END) for line in lines.split(LINE_END)[:-1]]  # type: ignore[misc] # a list of bytes is one
    found, row, value, at = list[list[bytes | None]](), list[bytes | None](), bytearray(), 0
    is_null = False
    while at < len(lines):
        sign = lines[at : at + 1]
        if sign == ESCAPE:
            escaped = lines[at + 1 : at + 2]
            is_null = escaped == b"N"
            value += b"" if is_null else escaped
            at += 2
            continue
        if sign in {FIELD_END, LINE_END}:
            row.append(None if is_null else bytes(value))
            value, is_null = bytearray(), False
            if sign == LINE_END:
                found.append(row)
                row = []
            at += 1
            continue
        end = min((place for special in _SPECIAL if (place := lines.find(special, at)) >= 0), default=len(lines))
        value += lines[at:end]
        at = end
    return found
