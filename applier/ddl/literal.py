"""Literals of MySQL: strings, numbers, and bytes in hexadecimal or binary digits (manual, "Literal Values")."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from applier.ddl.tokens import Token

_DIGITS: Final = re.compile(
    r"""
      (?P<hex>0x[0-9a-f]+ | x'[0-9a-f]*')(?![\w$])
    | (?P<bits>0b[01]+ | b'[01]*')(?![\w$])
    | (?P<number>(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)(?![\w$])
    """,
    re.VERBOSE | re.IGNORECASE,
)
# \% and \_ keep their backslash outside of patterns. TiDB prints statements as they are read without NO_BACKSLASH_ESCAPES.
_BACKSLASH: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "'": "''", "\0": "\\0", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z"})


class Literal(NamedTuple):
    """``kind`` is string, number or bytes (``text`` is then hexadecimal digits); ``last`` is the place of its last token."""

    kind: str
    text: str
    last: int


def literal_at(text: str, tokens: Sequence[Token], at: int) -> Literal | None:
    """Read the literal whose first token is ``at``, which may be a charset introducer (``_utf8mb4'x'``); None if none stands there."""
    token = tokens[at]
    if token.kind == "string":
        return Literal("string", unescape(token.text), at)
    if is_introducer(text, tokens, at):
        return literal_at(text, tokens, at + 1)
    match = _DIGITS.match(text, token.start)
    if match is None or token.kind == "quoted":
        return None
    last = at
    while last + 1 < len(tokens) and tokens[last + 1].start < match.end():
        last += 1
    found = match.group()
    if match.lastgroup == "number":
        return Literal("number", found, last)
    return Literal("bytes", _whole_bytes(found[2:].rstrip("'"), 16 if match.lastgroup == "hex" else 2), last)


def is_introducer(text: str, tokens: Sequence[Token], at: int) -> bool:
    """Return whether a token only names the character set of the literal after it: ``_utf8mb4'x'``, ``_binary 0x41``, ``N'x'``."""
    token, following = tokens[at], tokens[at + 1] if at + 1 < len(tokens) else None
    if token.kind != "word" or following is None or token.text[0] not in "_nN":
        return False
    is_adjacent = token.end == following.start
    # _utf8mb4 may stand apart from its literal; N, as in N'x', must touch it (manual, "Character Set Introducers").
    if not (token.text[0] == "_" or (len(token.text) == 1 and is_adjacent)):
        return False
    match = _DIGITS.match(text, following.start)
    return following.kind == "string" or (match is not None and match.lastgroup != "number")


def _whole_bytes(digits: str, base: int) -> str:
    # Where half a byte is missing, MySQL puts a zero in front (manual, "Hexadecimal Literals").
    plain = digits if base == 16 else f"{int(digits or '0', base):x}"
    return plain.lower().rjust(len(plain) + len(plain) % 2, "0")


def unescape(raw: str) -> str:
    r"""Read a string literal of MySQL with its quotes: doubled quotes and backslash escapes (manual, "String Literals")."""
    quote, pieces, at, end = raw[0], [], 1, len(raw) - 1
    while at < end:
        letter = raw[at]
        if letter == "\\" and at + 1 < end:
            at += 1
            letter = _BACKSLASH.get(raw[at], raw[at])
        elif letter == quote:
            at += 1
        pieces.append(letter)
        at += 1
    return "".join(pieces)


def quote_text(text: str) -> str:
    r"""Write a string literal of MySQL that can stand inside a comment of SQL (``*/`` becomes ``*\/``, which MySQL reads as the same)."""
    return "'" + text.translate(_ESCAPES).replace("*/", "*\\/") + "'"
