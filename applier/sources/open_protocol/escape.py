r"""Binary strings: Go's strconv.Quote without the outer quotes (open_protocol.md 2.7).

Python's ``unicode_escape`` is not equivalent: it maps ``\x89`` to U+0089 and misreads printable text outside of ASCII.
"""

import re
from codecs import escape_decode
from typing import Final

from applier.model.errors import ProtocolError

is_shared_by_python: Final = re.compile(rb'(?:[^\\"\n]+|\\(?:x[0-9a-fA-F]{2}|[abfnrtv\\"]))*+').fullmatch
"""Texts whose escapes mean the same in Go and in Python's bytes literals: everything that Quote writes for bytes that are no runes."""

_TOKEN = re.compile(rb'\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|[abfnrtv\\"]|)|["\n]')


def unquote(text: str) -> bytes:
    """Return the bytes that Go quoted as ``text``. ProtocolError (escape) where Go's Unquote refuses."""
    data = text.encode("utf-8", "surrogateescape")
    if is_shared_by_python(data) is not None:
        # The reader of bytes literals, in C: 0.8 us for a 16-byte key, against 2.6 us escape by escape.
        return escape_decode(data)[0]
    return _TOKEN.sub(_unquote_token, data)


def _unquote_token(match: re.Match[bytes]) -> bytes:
    token = match[0]
    kind = token[1:2]
    if kind in (b"u", b"U"):
        rune = int(token[2:].decode(), 16)
        if rune < 0xD800 or 0xDFFF < rune < 0x110000:
            return chr(rune).encode()
    elif kind.isdigit():
        if int(token[1:], 8) < 256:
            return bytes([int(token[1:], 8)])
    elif kind:
        return escape_decode(token)[0]
    raise ProtocolError.at(None, "escape", "a binary string holds something that Go's Quote does not write")
