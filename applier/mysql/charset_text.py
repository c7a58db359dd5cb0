"""CHAR, VARCHAR, TEXT, BINARY, VARBINARY and BLOB: text by its character set, bytes as they are.

A sink converts text from UTF-8 by the tables of its server, and must get the same bytes again. Python's codecs were compared with MariaDB
10.11 and MySQL 9.7 for each character. A character that Python reads differently, or that does not lead back, is not read as text: the
whole value is then its bytes (lone surrogates), which sinks write as they are.

Python has no codec of eucjpms (EUC with the characters of Windows' cp932): it is read here, and codes that do not lead back are refused.
For 8-bit character sets without an exact codec in Python, a table gives the characters of the bytes 128 to 255. It was
made by asking both servers for each byte, to UTF-8 and back; U+FFFE: no character, or one that does not lead back to the byte.
"""

import codecs
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

# ruff: noqa: RUF001 - characters that look like others


UPPER_HALVES: Final = {
    "hebrew": (
        "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f"
        "\xa0\ufffe¢£¤¥¦§¨©\xd7«¬\xad®‾°±²³\xb4µ¶·¸¹÷»¼½¾\ufffe"
        "\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe‗"
        "אבגדהוזחטיךכלםמןנסעףפץצקרשת\ufffe\ufffe\u200e\u200f\ufffe"
    ),
    "tis620": (
        "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f"
        "\ufffeกขฃคฅฆงจฉชซฌญฎฏฐฑฒณดตถทธนบปผฝพฟ"
        "ภมยรฤลฦวศษสหฬอฮฯะัาำิีึืฺุู\ufffe\ufffe\ufffe\ufffe฿"
        "เแโใไๅๆ็่้๊๋์ํ๎๏๐๑๒๓๔๕๖๗๘๙๚๛\ufffe\ufffe\ufffe�"
    ),
    "koi8u": (
        "─│┌┐└┘├┤┬┴┼▀▄█▌▐░▒▓⌠■•√≈≤≥\xa0⌡°²·÷"
        "═║╒ёє╔ії╗╘╙╚╛ґ╝╞╟╠╡ЁЄ╣ІЇ╦╧╨╩╪Ґ╬©"
        "юабцдефгхийклмнопярстужвьызшэщчъ"
        "ЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ"
    ),
    "greek": (
        "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f"
        "\xa0\u02bd\u02bc£\ufffe\ufffe¦§¨©\ufffe«¬\xad\ufffe―°±²³΄΅Ά·ΈΉΊ»Ό½ΎΏ"
        "ΐΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ\ufffeΣΤΥΦΧΨΩΪΫάέήί"
        "ΰαβγδεζηθικλμνξοπρςστυφχψωϊϋόύώ\ufffe"
    ),
    "cp866": (
        "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ"
        "абвгдежзийклмноп░▒▓│┤╡╢╖╕╣║╗╝╜╛┐"
        "└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀"
        "рстуфхцчшщъыьэюяЁёЄєЇїЎў°∙·√ⁿ²■\xa0"
    ),
    "cp1256": (
        "€پ\u201aƒ„…†‡ˆ‰\ufffe‹Œچژ\ufffeگ\u2018\u2019\u201c\u201d•\u2013\u2014\ufffe™\ufffe›œ\u200c\u200d\ufffe"
        "\xa0،¢£¤¥¦§¨©\ufffe«¬\xad®¯°±²³\xb4µ¶·¸¹؛»¼½¾؟"
        "\ufffeءآأؤإئابةتثجحخدذرزسشصض\xd7طظعغـفقك"
        "àلâمنهوçèéêëىيîïًٌٍَôُِ÷ّùْûü\u200e\u200f\ufffe"
    ),
    "keybcs2": (
        "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘť"
        "áíóúňŇŮÔšřŕŔ¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐"
        "└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀"
        "αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\xa0"
    ),
    "armscii8": (
        "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f"
        "\xa0❁§։\ufffe\ufffe»«\u2014\ufffe՝\ufffe\ufffe՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէ"
        "ԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշ"
        "ՈոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփՔքՕօՖֆ\u2019\ufffe"
    ),
    "geostd8": (
        "€\ufffe\u201a\ufffe„…†‡\ufffe‰\ufffe‹\ufffe\ufffe\ufffe\ufffe\ufffe\u2018\u2019\u201c\u201d•\u2013\u2014\ufffe\ufffe\ufffe›\ufffe\ufffe\ufffe\ufffe"
        "\xa0¡¢£¤¥¦§¨©ª«¬\xad®¯°±²³\xb4µ¶·¸¹º»¼½¾¿"
        "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწ"
        "ჭხჴჯჰჵ\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe\ufffe№\ufffe\ufffe"
    ),
    "dec8": (
        "\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98\x99\x9a\x9b\x9c\x9d\x9e\x9f"
        "\xa0¡¢£\ufffe¥\ufffe§¤©ª«\ufffe\ufffe\ufffe\ufffe°±²³\ufffeµ¶·\ufffe¹º»¼½\ufffe¿"
        "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ\ufffeÑÒÓÔÕÖŒØÙÚÛÜŸ\ufffeß"
        "àáâãäåæçèéêëìíîï\ufffeñòóôõöœøùúûüÿ\ufffe\ufffe"
    ),
}


_CODE: Final = re.compile(rb"[\x00-\x7f]+|\x8e[\xa1-\xdf]|\x8f[\xa1-\xfe][\xa1-\xfe]|[\xa1-\xfe][\xa1-\xfe]")
_KANA, _THREE_BYTES, _NEC_ROW, _FIRST_PRIVATE_ROW = 0x8E, 0x8F, 0xAD, 0xF5
_NEC_DOUBLES: Final = 0xF0
"""From here on, NEC's row repeats characters of other rows."""
_UNCERTAIN_EUC: Final = frozenset("~\xa6\u2116")
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
        if found in _UNCERTAIN_EUC:
            raise UnicodeError("a character that does not lead back")
        return found
    if first >= _FIRST_PRIVATE_ROW:
        return chr(_PRIVATE + (first - _FIRST_PRIVATE_ROW) * _ROW + code[1] - 0xA1)
    if first == _NEC_ROW and code[1] >= _NEC_DOUBLES:
        raise UnicodeError("a character that does not lead back")
    return _shifted(first - 0xA0, code[1] - 0xA0).decode("cp932")


def _shifted(row: int, cell: int) -> bytes:
    """Return the code of cp932 of a position in the table of characters, which has two rows for each first byte there."""
    first = (row - 1 >> 1) + 0x81
    if row % 2 == 0:
        return bytes((first if first < 0xA0 else first + 0x40, cell + 0x9E))
    second = cell + 0x3F
    return bytes((first if first < 0xA0 else first + 0x40, second if second < 0x7F else second + 1))


TextsRead: TypeAlias = Callable[[Sequence[bytes]], Sequence[str]]

UTF8: Final = frozenset({"utf8mb4", "utf8mb3"})
_8_BITS: Final = {
    **{name: name for name in ("cp850", "cp852", "cp1250", "cp1251", "cp1257", "ascii")},
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "koi8r": "koi8_r",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
    "hp8": "hp_roman8",
}
"""Character sets that Python has as the servers have them."""
_WIDE: Final = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
_MULTIPLE: Final = {
    "big5": "big5",
    "cp932": "cp932",
    "euckr": "cp949",
    "gb18030": "gb18030",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "sjis": "shift_jis",
    "ujis": "euc_jp",
}
_UNCERTAIN: Final = {
    "big5": "\u02cd\u2574\uffe3",
    "cp932": "\x80\uf8f0-\uf8f3",
    "gb18030": "\ue7c7",
    "sjis": "\\\\\uff3c",
    "ujis": "\uff3c",
}
"""Characters that the servers read or write differently from Python."""
_NECS: Final = (0xED, 0xEE)
"""First bytes of the extensions of NEC that are IBM's too."""
_SWE7: Final = dict(zip("@[\\]^`{|}~\x7f", "ÉÄÖÅÜéäöåü\ufffe", strict=True))


@lru_cache
def texts(charset: str) -> TextsRead:
    """Return what reads text of a character set. ValueError: it is not known."""
    if charset in UTF8:
        return read_utf8
    if charset in _8_BITS or charset in UPPER_HALVES or charset in {"latin1", "swe7"}:
        return _many(_table(charset))
    if charset in _WIDE:
        return _one_by_one(_WIDE[charset], None)
    if charset == "eucjpms":
        return lambda values: list(map(_eucjpms_or_bytes, values))
    if charset in _MULTIPLE:
        return _one_by_one(_MULTIPLE[charset], _uncertain(charset))
    raise ValueError("an unknown character set")


def read_utf8(values: Sequence[bytes]) -> Sequence[str]:
    """Read UTF-8. NUL is never part of another character in it: all texts can be read at once."""
    found = b"\0".join(values).decode("utf-8", "surrogateescape").split("\0")
    return found if len(found) == len(values) else [value.decode("utf-8", "surrogateescape") for value in values]


def _as_bytes(value: bytes) -> str:
    """Return the lone surrogates that represent these bytes. ValueError: all are ASCII, so nothing tells a sink what they are."""
    if value.isascii():
        raise ValueError("its text has a character that a server changes where it comes as UTF-8, a backslash in sjis")
    return value.decode("ascii", "surrogateescape")


def _table(charset: str) -> str:
    """Return the characters of a character set of 8 bits; U+FFFE for none."""
    if charset == "swe7":
        return "".join(_SWE7.get(character, character) for character in map(chr, range(128)))
    if charset == "latin1":  # Windows' one, with a character for every byte
        return "".join(bytes((byte,)).decode("cp1252", "ignore") or chr(byte) for byte in range(256))
    if charset in UPPER_HALVES:
        return "".join(map(chr, range(128))) + UPPER_HALVES[charset]
    return "".join(bytes((byte,)).decode(_8_BITS[charset], "ignore") or "\ufffe" for byte in range(256))


def _many(table: str) -> TextsRead:
    """Read texts of 8 bits all at once, as UTF-8."""

    def read_one(value: bytes) -> str:
        try:
            return codecs.charmap_decode(value, "strict", table)[0]
        except UnicodeDecodeError:
            return _as_bytes(value)

    def read(values: Sequence[bytes]) -> Sequence[str]:
        try:
            found = codecs.charmap_decode(b"\0".join(values), "strict", table)[0].split("\0")
        except UnicodeDecodeError:
            return list(map(read_one, values))
        return found if len(found) == len(values) else list(map(read_one, values))

    return read


def _one_by_one(codec: str, uncertain: re.Pattern[str] | None) -> TextsRead:
    """``uncertain``: finds what may not lead back; None: everything does."""
    encode = _encode_cp932 if codec == "cp932" else None

    def read_one(value: bytes) -> str:
        try:
            found = value.decode(codec)
            is_same = uncertain is None or (
                uncertain.search(found) is None and (found.encode(codec) if encode is None else encode(found)) == value
            )
        except UnicodeError:
            return _as_bytes(value)
        return found if is_same else _as_bytes(value)

    return lambda values: list(map(read_one, values))


def _eucjpms_or_bytes(value: bytes) -> str:
    try:
        return decode_eucjpms(value)
    except UnicodeError:
        return _as_bytes(value)


def _uncertain(charset: str) -> re.Pattern[str]:
    return re.compile(f"[{_UNCERTAIN.get(charset, chr(0xFFFE))}]")


def _encode_cp932(text: str) -> bytes:
    """Write text as the servers do: IBM's extensions by IBM's numbers, where Python takes NEC's."""
    if not _extensions().keys() & set(text):
        return text.encode("cp932")
    return b"".join(_extensions().get(character) or character.encode("cp932") for character in text)


@lru_cache
def _extensions() -> dict[str, bytes]:
    found = {}
    for number in range(0xFA40, 0xFC4C):
        code = number.to_bytes(2)
        character = code.decode("cp932", "ignore")
        if len(character) == 1 and character.encode("cp932")[0] in _NECS:
            found[character] = code
    return found


def padded(size: int) -> Callable[[Sequence[bytes]], Sequence[bytes]]:
    """Return what gives BINARY its full length: the zeros at its end are not written."""
    return lambda values: [value.ljust(size, b"\0") for value in values]
