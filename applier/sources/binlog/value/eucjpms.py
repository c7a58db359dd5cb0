"""The character set eucjpms, of which Python has no codec: EUC with the characters of Windows' cp932.

Compared with MariaDB 10.11 and MySQL 9.7 for each code; codes that do not lead back there are refused.
"""

import re
from typing import Final

_CODE: Final = re.compile(rb"[\x00-\x7f]+|\x8e[\xa1-\xdf]|\x8f[\xa1-\xfe][\xa1-\xfe]|[\xa1-\xfe][\xa1-\xfe]")
_KANA, _THREE_BYTES, _NEC_ROW, _FIRST_PRIVATE_ROW = 0x8E, 0x8F, 0xAD, 0xF5
_NEC_DOUBLES: Final = 0xF0
"""From here on, NEC's row repeats characters of other rows."""
_UNCERTAIN: Final = frozenset("~\xa6\u2116")
_PRIVATE: Final = 0xE000
_ROW: Final = 94


def decode_eucjpms(data: bytes) -> str:
    """Return the text. UnicodeError: there is none, or it would not lead back to these bytes."""
    found, at = [], 0
    while at < len(data):
        code = _CODE.match(data, at)
        if code is None:
            raise UnicodeError("not a character of eucjpms")
        found.append(_character(code[0]))
        at = code.end()
    return "".join(found)


def _character(code: bytes) -> str:
    first = code[0]
    if first <= 0x7F:
        return code.decode("ascii")
    if first == _KANA:
        return chr(0xFF61 + code[1] - 0xA1)
    if first == _THREE_BYTES:
        found = code.decode("euc_jp")
        if found in _UNCERTAIN:
            raise UnicodeError("a character that does not lead back")
        return found
    if first >= _FIRST_PRIVATE_ROW:
        return chr(_PRIVATE + (first - _FIRST_PRIVATE_ROW) * _ROW + code[1] - 0xA1)
    if first == _NEC_ROW and code[1] >= _NEC_DOUBLES:
        raise UnicodeError("a character that does not lead back")
    return _shifted(first - 0xA0, code[1] - 0xA0).decode("cp932")


def _shifted(row: int, cell: int) -> bytes:
    """Return the code of cp932 of a place in the table of characters, which has two rows for each first byte there."""
    first = (row - 1 >> 1) + 0x81
    if row % 2 == 0:
        return bytes((first if first < 0xA0 else first + 0x40, cell + 0x9E))
    second = cell + 0x3F
    return bytes((first if first < 0xA0 else first + 0x40, second if second < 0x7F else second + 1))
