"""JSON as the two producers write it: strings, floats, and the members of a column object (open_protocol.md 2.4).

tiflow uses Go's encoding/json: HTML characters and U+2028/2029 are escaped, invalid UTF-8 becomes U+FFFD. ticdc uses a streaming
writer: nothing is escaped beyond what JSON needs, and bytes that are not UTF-8 are copied raw. Text that is not UTF-8 is
held here as lone surrogates (surrogateescape); the encoder turns it to bytes at the very end. ``go_quote`` writes binary strings, as Go's
``strconv.Quote`` does (open_protocol.md 2.7).
"""

import re
import struct
from collections.abc import Callable
from enum import StrEnum

_SHORT_ESCAPES = {7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v", 0x5C: "\\\\", 0x22: '\\"'}


def go_quote(raw: bytes) -> str:
    """Quote ``raw``; the result is valid UTF-8 text."""
    return "".join(map(_quote_rune, raw.decode("utf-8", "surrogateescape")))


def _quote_rune(char: str) -> str:
    code = ord(char)
    if code in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[code]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as surrogateescape shows it
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    # str.isprintable and Go's IsPrint know the same categories: letters, marks, numbers, punctuation, symbols, ASCII space.
    if char.isprintable():
        return char
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class Flavour(StrEnum):
    """Which producer writes: the classic architecture or the new one."""

    TIFLOW = "tiflow"
    TICDC = "ticdc"


_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TIFLOW_SHORT = _SHORT | {"\b": "\\b", "\f": "\\f"}
_TICDC_SPECIAL = re.compile(r'[\x00-\x1f"\\]')
_TIFLOW_SPECIAL = re.compile('[\x00-\x1f"\\\\<>&\u2028\u2029\udc80-\udcff]')


def _escape_ticdc(found: re.Match[str]) -> str:
    char = found[0]
    return _SHORT.get(char) or f"\\u{ord(char):04x}"


def _escape_tiflow(found: re.Match[str]) -> str:
    char = found[0]
    if "\udc80" <= char <= "\udcff":
        return "\\ufffd"
    return _TIFLOW_SHORT.get(char) or f"\\u{ord(char):04x}"


def _escape_easyjson(found: re.Match[str]) -> str:
    char = found[0]
    if "\udc80" <= char <= "\udcff":
        return "\ufffd"
    return _SHORT.get(char) or f"\\u{ord(char):04x}"


def tiflow_string(text: str) -> str:
    """Write a JSON string as Go's encoding/json does."""
    return '"' + _TIFLOW_SPECIAL.sub(_escape_tiflow, text) + '"'


def ticdc_string(text: str) -> str:
    """Write a JSON string as ticdc's streaming writer does."""
    return '"' + _TICDC_SPECIAL.sub(_escape_ticdc, text) + '"'


def easyjson_string(text: str) -> str:
    """Write a JSON string as the rows of canal-json have it: invalid UTF-8 is U+FFFD, byte by byte."""
    return '"' + _TIFLOW_SPECIAL.sub(_escape_easyjson, text) + '"'


STRING_WRITERS: dict[Flavour, Callable[[str], str]] = {Flavour.TIFLOW: tiflow_string, Flavour.TICDC: ticdc_string}


def float_text(value: float, *, single: bool, flavour: Flavour) -> str:
    """Write the shortest decimal that reads back as ``value``: plain from 1e-6 up to 1e21, else with an exponent."""
    digits = _shortest_single(value) if single else repr(value)
    sign, mantissa, exponent = _split(digits)
    if value == 0:
        return sign + "0"
    if not 1e-6 <= _comparable(abs(value), single=single) < 1e21:
        head = mantissa[0] + ("." + mantissa[1:] if len(mantissa) > 1 else "")
        # encoding/json shortens e-09 to e-9; the streaming writer leaves two digits.
        small = f"{abs(exponent)}" if flavour is Flavour.TIFLOW and exponent < 0 else f"{abs(exponent):02d}"
        return f"{sign}{head}e{'-' if exponent < 0 else '+'}{small}"
    return sign + _plain(mantissa, exponent)


def plain_float_text(value: float, *, single: bool) -> str:
    """Write the shortest decimal that reads back as ``value``, without an exponent whatever its size."""
    sign, mantissa, exponent = _split(_shortest_single(value) if single else repr(value))
    return sign + ("0" if value == 0 else _plain(mantissa, exponent))


def _plain(mantissa: str, exponent: int) -> str:
    if exponent < 0:
        return f"0.{'0' * (-exponent - 1)}{mantissa}"
    whole = mantissa[: exponent + 1].ljust(exponent + 1, "0")
    fraction = mantissa[exponent + 1 :]
    return whole + ("." + fraction if fraction else "")


def _comparable(size: float, *, single: bool) -> float:
    """Compare a FLOAT with the bounds as the 32-bit number's shortest decimal (float32(1e-6) is below 1e-6)."""
    return float(_shortest_single(size)) if single else size


def _shortest_single(value: float) -> str:
    packed = struct.pack("<f", value)
    for digits in range(1, 9):
        text = f"{value:.{digits}g}"
        if _pack_single(float(text)) == packed:
            return text
    return f"{value:.9g}"


def _pack_single(value: float) -> bytes:
    try:
        return struct.pack("<f", value)
    except OverflowError:  # rounded up past the largest 32-bit number
        return b""


def _split(text: str) -> tuple[str, str, int]:
    """Split a decimal text into sign, digits without leading or trailing zeros, and the exponent of the first digit."""
    sign = "-" if text.startswith("-") else ""
    number, _, power = text.removeprefix("-").partition("e")
    whole, _, fraction = number.partition(".")
    digits = whole + fraction
    exponent = len(whole) - 1 + int(power or 0)
    stripped = digits.lstrip("0")
    exponent -= len(digits) - len(stripped)
    return sign, stripped.rstrip("0") or "0", exponent
