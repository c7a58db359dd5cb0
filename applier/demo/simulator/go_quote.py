"""Go's ``strconv.Quote`` without the outer quotes: how producers write binary strings (open_protocol.md 2.7)."""

_SHORT = {7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v", 0x5C: "\\\\", 0x22: '\\"'}


def go_quote(raw: bytes) -> str:
    """Quote ``raw``; the result is valid UTF-8 text."""
    return "".join(map(_quote_rune, raw.decode("utf-8", "surrogateescape")))


def _quote_rune(char: str) -> str:
    code = ord(char)
    if code in _SHORT:
        return _SHORT[code]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as surrogateescape shows it
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    # str.isprintable and Go's IsPrint know the same categories: letters, marks, numbers, punctuation, symbols, ASCII space.
    if char.isprintable():
        return char
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
