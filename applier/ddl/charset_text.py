"""Which texts a character set holds, as far as that is certain: what it lacks becomes a question mark upstream, or the DDL fails. Pure.

The tables of MySQL and MariaDB were compared with Python's (``sources/binlog/value/text.py``). Where they differ, only ASCII is certain.
"""

from collections.abc import Callable
from typing import Final

NARROW: Final = frozenset({"utf8", "utf8mb3", "ascii"})
"""Kinds of UTF-8 that do not hold all of it; a ``ColumnType`` does not tell them apart."""

_LIKE_PYTHON: Final = {
    **{name: name for name in ("cp850", "cp852", "cp1250", "cp1251", "cp1257", "gb2312", "gbk")},
    "euckr": "cp949", "latin2": "iso8859_2", "latin5": "iso8859_9", "latin7": "iso8859_13", "koi8r": "koi8_r", "macce": "mac_latin2",
    "macroman": "mac_roman", "hp8": "hp_roman8", "latin1": "cp1252",
}  # fmt: skip
_LAST_BASIC: Final = "\uffff"
_ALL: Final = frozenset({"", "utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
_BASIC: Final = frozenset({"utf8", "utf8mb3", "ucs2"})
_WITHOUT_ASCII: Final = frozenset({"swe7"})


def holder(charset: str) -> Callable[[str], bool]:
    """Return the function that says whether a character set holds a text; False where that is not certain."""
    if charset in _ALL:
        return lambda _text: True
    if charset in _BASIC:
        return lambda text: all(character <= _LAST_BASIC for character in text)
    codec = _LIKE_PYTHON.get(charset)
    if codec is None:
        return lambda text: text.isascii() and charset not in _WITHOUT_ASCII
    return lambda text: text.isascii() or _encodes(codec, text)


def _encodes(codec: str, text: str) -> bool:
    try:
        text.encode(codec)
    except UnicodeEncodeError:
        return False
    return True
