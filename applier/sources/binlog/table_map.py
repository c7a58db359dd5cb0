"""TABLE_MAP events: the table that rows events belong to, with its columns, as ``binlog_row_metadata = FULL`` describes them.

Source: MySQL's ``rows_event.h`` (Table_map_event, optional metadata) and ``field.cc`` (pack). MariaDB writes the same, and own types.
``ColumnCode`` is what ``Shape.encoding`` keeps of a column: its type, metadata, sign and character set.

Events name a collation by its number only. Numbers: ``information_schema.COLLATIONS`` of MySQL 9.7 and
``COLLATION_CHARACTER_SET_APPLICABILITY`` of MariaDB 10.11. If both servers have a number, the name is MySQL's; MariaDB takes MySQL's too.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from applier.model.errors import NeedsOperator, ProtocolError, Remedy
from applier.model.events import TableName
from applier.sources.column_flags import Flag


class TypeCode(IntEnum):
    """Types that are more than a number of bytes."""

    YEAR = 13
    VARCHAR = 15
    BIT = 16
    TIMESTAMP2 = 17
    DATETIME2 = 18
    TIME2 = 19
    BLOB_COMPRESSED = 140
    VARCHAR_COMPRESSED = 141
    VECTOR = 242
    JSON = 245
    DECIMAL = 246
    ENUM = 247
    SET = 248
    VAR_STRING = 253
    STRING = 254
    GEOMETRY = 255


BLOBS: Final = frozenset({249, 250, 251, 252})
_BLOB_BY_PREFIX: Final = {1: 249, 2: 252, 3: 250, 4: 251}
_AS_IN_EVENTS: Final[dict[int, int]] = {
    TypeCode.TIMESTAMP2: 7,
    TypeCode.DATETIME2: 12,
    TypeCode.TIME2: 11,
    TypeCode.VARCHAR_COMPRESSED: 15,
    TypeCode.VECTOR: 225,
}
_STRING_LENGTH: Final = 0x30


class ColumnCode(NamedTuple):
    """How values are written. ``meta``: the type's metadata as one number, the first byte lowest. ``charset``: "" where there is none."""

    type: int
    meta: int
    is_unsigned: bool
    charset: str

    @property
    def mysql_type(self) -> int:
        """The type as ``ColumnShape`` has it."""
        if self.type in BLOBS or self.type == TypeCode.BLOB_COMPRESSED:
            return _BLOB_BY_PREFIX.get(self.meta, 252)
        return _AS_IN_EVENTS.get(self.type, self.type)

    @property
    def flags(self) -> int:
        """The flags that the type itself gives a column."""
        is_bytes = self.charset == "binary" or self.type == TypeCode.GEOMETRY
        return (Flag.BINARY if is_bytes else 0) | (Flag.UNSIGNED if self.is_unsigned else 0)

    @property
    def string_bytes(self) -> int:
        """The length of a CHAR or BINARY in bytes; two bits of it are in the byte of the type."""
        return (self.meta & _STRING_LENGTH ^ _STRING_LENGTH) << 4 | self.meta >> 8


def real_type(kind: int, meta: int) -> int:
    """Return the type of a column: ENUM and SET are written as STRING, with their own type in the metadata."""
    return meta & 0xFF if kind == TypeCode.STRING and meta & 0xFF in {TypeCode.ENUM, TypeCode.SET} else kind


BINARY: Final = "binary"

_LETTERS: Final = {
    "big5": "1 84 1025 1108",
    "latin2": "2 9 21 27 77 1033 1101",
    "dec8": "3 69 1027 1093",
    "cp850": "4 80 1028 1104",
    "latin1": "5 8 15 31 47-49 94 1032 1071",
    "hp8": "6 72 1030 1096",
    "koi8r": "7 74 1031 1098",
    "swe7": "10 82 1034 1106",
    "ascii": "11 65 1035 1089",
    "ujis": "12 91 1036 1115",
    "sjis": "13 88 1037 1112",
    "cp1251": "14 23 50-52 1074-1075",
    "hebrew": "16 71 1040 1095",
    "tis620": "18 89 1042 1113",
    "euckr": "19 85 1043 1109",
    "latin7": "20 41-42 79 1065 1103",
    "koi8u": "22 75 1046 1099",
    "gb2312": "24 86 1048 1110",
    "greek": "25 70 1049 1094",
    "cp1250": "26 34 44 66 99 1050 1090",
    "gbk": "28 87 1052 1111",
    "cp1257": "29 58-59 1082-1083",
    "latin5": "30 78 1054 1102",
    "armscii8": "32 64 1056 1088",
    "utf8mb3": "33 76 83 192-223 576-607 1057 1107 1216-1247 2048-2303",
    "ucs2": "35 90 128-159 640-671 1059 1114 1152-1183 2560-2815",
    "cp866": "36 68 1060 1092",
    "keybcs2": "37 73 1061 1097",
    "macce": "38 43 1062 1067",
    "macroman": "39 53 1063 1077",
    "cp852": "40 81 1064 1105",
    "utf8mb4": "45-46 224-247 255-323 608-639 1069-1070 1248-1279 2304-2559",
    "utf16": "54-55 101-124 672-703 1078-1079 1125-1151 2816-3071",
    "utf16le": "56 62 1080 1086",
    "cp1256": "57 67 1081 1091",
    "utf32": "60-61 160-191 736-767 1084-1085 1184-1215 3072-3327",
    BINARY: "63",
    "geostd8": "92-93 1116-1117",
    "cp932": "95-96 1119-1120",
    "eucjpms": "97-98 1121-1122",
    "gb18030": "248-250",
}
"""Ranges go up to the next number that another character set has: new collations of a server's next version come into them."""


def _ranges() -> list[tuple[int, int, str]]:
    found = []
    for name, text in _LETTERS.items():
        for part in text.split():
            first, _, last = part.partition("-")
            found.append((int(first), int(last or first), name))
    return sorted(found)


_RANGES: Final = _ranges()
_FIRSTS: Final = [first for first, _, _ in _RANGES]


def charset_of(collation: int) -> str | None:
    """Return the name of the character set of a collation; None if no server that we know has the number."""
    place = bisect_right(_FIRSTS, collation) - 1
    if place < 0:
        return None
    _, last, name = _RANGES[place]
    return name if collation <= last else None


_NAMES: Final = """
    1 big5_chinese_ci latin2_czech_cs dec8_swedish_ci cp850_general_ci latin1_german1_ci hp8_english_ci koi8r_general_ci
    latin1_swedish_ci latin2_general_ci swe7_swedish_ci ascii_general_ci ujis_japanese_ci sjis_japanese_ci cp1251_bulgarian_ci
    latin1_danish_ci hebrew_general_ci 18 tis620_thai_ci euckr_korean_ci latin7_estonian_cs latin2_hungarian_ci koi8u_general_ci
    cp1251_ukrainian_ci gb2312_chinese_ci greek_general_ci cp1250_general_ci latin2_croatian_ci gbk_chinese_ci cp1257_lithuanian_ci
    latin5_turkish_ci latin1_german2_ci armscii8_general_ci utf8mb3_general_ci cp1250_czech_cs ucs2_general_ci cp866_general_ci
    keybcs2_general_ci macce_general_ci macroman_general_ci cp852_general_ci latin7_general_ci latin7_general_cs macce_bin
    cp1250_croatian_ci utf8mb4_general_ci utf8mb4_bin latin1_bin latin1_general_ci latin1_general_cs cp1251_bin cp1251_general_ci
    cp1251_general_cs macroman_bin utf16_general_ci utf16_bin utf16le_general_ci cp1256_general_ci cp1257_bin cp1257_general_ci
    utf32_general_ci utf32_bin utf16le_bin binary armscii8_bin ascii_bin cp1250_bin cp1256_bin cp866_bin dec8_bin greek_bin hebrew_bin
    hp8_bin keybcs2_bin koi8r_bin koi8u_bin utf8mb3_tolower_ci latin2_bin latin5_bin latin7_bin cp850_bin cp852_bin swe7_bin
    utf8mb3_bin big5_bin euckr_bin gb2312_bin gbk_bin sjis_bin tis620_bin ucs2_bin ujis_bin geostd8_general_ci geostd8_bin
    latin1_spanish_ci cp932_japanese_ci cp932_bin eucjpms_japanese_ci eucjpms_bin cp1250_polish_ci 101 utf16_unicode_ci
    utf16_icelandic_ci utf16_latvian_ci utf16_romanian_ci utf16_slovenian_ci utf16_polish_ci utf16_estonian_ci utf16_spanish_ci
    utf16_swedish_ci utf16_turkish_ci utf16_czech_ci utf16_danish_ci utf16_lithuanian_ci utf16_slovak_ci utf16_spanish2_ci
    utf16_roman_ci utf16_persian_ci utf16_esperanto_ci utf16_hungarian_ci utf16_sinhala_ci utf16_german2_ci utf16_croatian_ci
    utf16_unicode_520_ci utf16_vietnamese_ci 128 ucs2_unicode_ci ucs2_icelandic_ci ucs2_latvian_ci ucs2_romanian_ci ucs2_slovenian_ci
    ucs2_polish_ci ucs2_estonian_ci ucs2_spanish_ci ucs2_swedish_ci ucs2_turkish_ci ucs2_czech_ci ucs2_danish_ci ucs2_lithuanian_ci
    ucs2_slovak_ci ucs2_spanish2_ci ucs2_roman_ci ucs2_persian_ci ucs2_esperanto_ci ucs2_hungarian_ci ucs2_sinhala_ci ucs2_german2_ci
    ucs2_croatian_ci ucs2_unicode_520_ci ucs2_vietnamese_ci 159 ucs2_general_mysql500_ci utf32_unicode_ci utf32_icelandic_ci
    utf32_latvian_ci utf32_romanian_ci utf32_slovenian_ci utf32_polish_ci utf32_estonian_ci utf32_spanish_ci utf32_swedish_ci
    utf32_turkish_ci utf32_czech_ci utf32_danish_ci utf32_lithuanian_ci utf32_slovak_ci utf32_spanish2_ci utf32_roman_ci
    utf32_persian_ci utf32_esperanto_ci utf32_hungarian_ci utf32_sinhala_ci utf32_german2_ci utf32_croatian_ci utf32_unicode_520_ci
    utf32_vietnamese_ci 192 utf8mb3_unicode_ci utf8mb3_icelandic_ci utf8mb3_latvian_ci utf8mb3_romanian_ci utf8mb3_slovenian_ci
    utf8mb3_polish_ci utf8mb3_estonian_ci utf8mb3_spanish_ci utf8mb3_swedish_ci utf8mb3_turkish_ci utf8mb3_czech_ci utf8mb3_danish_ci
    utf8mb3_lithuanian_ci utf8mb3_slovak_ci utf8mb3_spanish2_ci utf8mb3_roman_ci utf8mb3_persian_ci utf8mb3_esperanto_ci
    utf8mb3_hungarian_ci utf8mb3_sinhala_ci utf8mb3_german2_ci utf8mb3_croatian_ci utf8mb3_unicode_520_ci utf8mb3_vietnamese_ci 223
    utf8mb3_general_mysql500_ci utf8mb4_unicode_ci utf8mb4_icelandic_ci utf8mb4_latvian_ci utf8mb4_romanian_ci utf8mb4_slovenian_ci
    utf8mb4_polish_ci utf8mb4_estonian_ci utf8mb4_spanish_ci utf8mb4_swedish_ci utf8mb4_turkish_ci utf8mb4_czech_ci utf8mb4_danish_ci
    utf8mb4_lithuanian_ci utf8mb4_slovak_ci utf8mb4_spanish2_ci utf8mb4_roman_ci utf8mb4_persian_ci utf8mb4_esperanto_ci
    utf8mb4_hungarian_ci utf8mb4_sinhala_ci utf8mb4_german2_ci utf8mb4_croatian_ci utf8mb4_unicode_520_ci utf8mb4_vietnamese_ci
    gb18030_chinese_ci gb18030_bin gb18030_unicode_520_ci 255 utf8mb4_0900_ai_ci utf8mb4_de_pb_0900_ai_ci utf8mb4_is_0900_ai_ci
    utf8mb4_lv_0900_ai_ci utf8mb4_ro_0900_ai_ci utf8mb4_sl_0900_ai_ci utf8mb4_pl_0900_ai_ci utf8mb4_et_0900_ai_ci
    utf8mb4_es_0900_ai_ci utf8mb4_sv_0900_ai_ci utf8mb4_tr_0900_ai_ci utf8mb4_cs_0900_ai_ci utf8mb4_da_0900_ai_ci
    utf8mb4_lt_0900_ai_ci utf8mb4_sk_0900_ai_ci utf8mb4_es_trad_0900_ai_ci utf8mb4_la_0900_ai_ci 273 utf8mb4_eo_0900_ai_ci
    utf8mb4_hu_0900_ai_ci utf8mb4_hr_0900_ai_ci 277 utf8mb4_vi_0900_ai_ci utf8mb4_0900_as_cs utf8mb4_de_pb_0900_as_cs
    utf8mb4_is_0900_as_cs utf8mb4_lv_0900_as_cs utf8mb4_ro_0900_as_cs utf8mb4_sl_0900_as_cs utf8mb4_pl_0900_as_cs
    utf8mb4_et_0900_as_cs utf8mb4_es_0900_as_cs utf8mb4_sv_0900_as_cs utf8mb4_tr_0900_as_cs utf8mb4_cs_0900_as_cs
    utf8mb4_da_0900_as_cs utf8mb4_lt_0900_as_cs utf8mb4_sk_0900_as_cs utf8mb4_es_trad_0900_as_cs utf8mb4_la_0900_as_cs 296
    utf8mb4_eo_0900_as_cs utf8mb4_hu_0900_as_cs utf8mb4_hr_0900_as_cs 300 utf8mb4_vi_0900_as_cs 303 utf8mb4_ja_0900_as_cs
    utf8mb4_ja_0900_as_cs_ks utf8mb4_0900_as_ci utf8mb4_ru_0900_ai_ci utf8mb4_ru_0900_as_cs utf8mb4_zh_0900_as_cs utf8mb4_0900_bin
    utf8mb4_nb_0900_ai_ci utf8mb4_nb_0900_as_cs utf8mb4_nn_0900_ai_ci utf8mb4_nn_0900_as_cs utf8mb4_sr_latn_0900_ai_ci
    utf8mb4_sr_latn_0900_as_cs utf8mb4_bs_0900_ai_ci utf8mb4_bs_0900_as_cs utf8mb4_bg_0900_ai_ci utf8mb4_bg_0900_as_cs
    utf8mb4_gl_0900_ai_ci utf8mb4_gl_0900_as_cs utf8mb4_mn_cyrl_0900_ai_ci utf8mb4_mn_cyrl_0900_as_cs 576 utf8mb3_croatian_ci
    utf8mb3_myanmar_ci utf8mb3_thai_520_w2 608 utf8mb4_croatian_ci utf8mb4_myanmar_ci utf8mb4_thai_520_w2 640 ucs2_croatian_ci
    ucs2_myanmar_ci ucs2_thai_520_w2 672 utf16_croatian_ci utf16_myanmar_ci utf16_thai_520_w2 736 utf32_croatian_ci utf32_myanmar_ci
    utf32_thai_520_w2 1025 big5_chinese_nopad_ci 1027 dec8_swedish_nopad_ci cp850_general_nopad_ci 1030 hp8_english_nopad_ci
    koi8r_general_nopad_ci latin1_swedish_nopad_ci latin2_general_nopad_ci swe7_swedish_nopad_ci ascii_general_nopad_ci
    ujis_japanese_nopad_ci sjis_japanese_nopad_ci 1040 hebrew_general_nopad_ci 1042 tis620_thai_nopad_ci euckr_korean_nopad_ci 1046
    koi8u_general_nopad_ci 1048 gb2312_chinese_nopad_ci greek_general_nopad_ci cp1250_general_nopad_ci 1052 gbk_chinese_nopad_ci 1054
    latin5_turkish_nopad_ci 1056 armscii8_general_nopad_ci utf8mb3_general_nopad_ci 1059 ucs2_general_nopad_ci cp866_general_nopad_ci
    keybcs2_general_nopad_ci macce_general_nopad_ci macroman_general_nopad_ci cp852_general_nopad_ci latin7_general_nopad_ci 1067
    macce_nopad_bin 1069 utf8mb4_general_nopad_ci utf8mb4_nopad_bin latin1_nopad_bin 1074 cp1251_nopad_bin cp1251_general_nopad_ci
    1077 macroman_nopad_bin utf16_general_nopad_ci utf16_nopad_bin utf16le_general_nopad_ci cp1256_general_nopad_ci cp1257_nopad_bin
    cp1257_general_nopad_ci utf32_general_nopad_ci utf32_nopad_bin utf16le_nopad_bin 1088 armscii8_nopad_bin ascii_nopad_bin
    cp1250_nopad_bin cp1256_nopad_bin cp866_nopad_bin dec8_nopad_bin greek_nopad_bin hebrew_nopad_bin hp8_nopad_bin keybcs2_nopad_bin
    koi8r_nopad_bin koi8u_nopad_bin 1101 latin2_nopad_bin latin5_nopad_bin latin7_nopad_bin cp850_nopad_bin cp852_nopad_bin
    swe7_nopad_bin utf8mb3_nopad_bin big5_nopad_bin euckr_nopad_bin gb2312_nopad_bin gbk_nopad_bin sjis_nopad_bin tis620_nopad_bin
    ucs2_nopad_bin ujis_nopad_bin geostd8_general_nopad_ci geostd8_nopad_bin 1119 cp932_japanese_nopad_ci cp932_nopad_bin
    eucjpms_japanese_nopad_ci eucjpms_nopad_bin 1125 utf16_unicode_nopad_ci 1147 utf16_unicode_520_nopad_ci 1152 ucs2_unicode_nopad_ci
    1174 ucs2_unicode_520_nopad_ci 1184 utf32_unicode_nopad_ci 1206 utf32_unicode_520_nopad_ci 1216 utf8mb3_unicode_nopad_ci 1238
    utf8mb3_unicode_520_nopad_ci 1248 utf8mb4_unicode_nopad_ci 1270 utf8mb4_unicode_520_nopad_ci
"""
"""A number, and the names from it on."""

_UCA_CHARSETS: Final = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
_UCA_VARIANTS: Final = ("ai_ci", "ai_cs", "as_ci", "as_cs", "nopad_ai_ci", "nopad_ai_cs", "nopad_as_ci", "nopad_as_cs")
_UCA_LANGUAGES: Final = (
    "", "icelandic", "latvian", "romanian", "slovenian", "polish", "estonian", "spanish", "swedish", "turkish", "czech", "danish",
    "lithuanian", "slovak", "spanish2", "roman", "persian", "esperanto", "hungarian", "sinhala", "german2", "", "", "vietnamese",
    "croatian",
)  # fmt: skip
_UCA_FIRST: Final = 2048
_UCA_PER_CHARSET: Final = 256


def _collation_names() -> dict[int, str]:
    found, number = dict[int, str](), 0
    for word in _NAMES.split():
        if word.isdecimal():
            number = int(word)
        else:
            found[number] = word
            number += 1
    return found


_BY_NUMBER: Final = _collation_names()


def collation_name(number: int) -> str:
    """Return the name of a collation; '' if no server that we know has the number."""
    return _BY_NUMBER.get(number, "") if number < _UCA_FIRST else _uca_name(number - _UCA_FIRST)


def _uca_name(number: int) -> str:
    """Return a name of MariaDB's uca1400 collations, whose numbers follow a rule: character set, language, variant."""
    charset, rest = divmod(number, _UCA_PER_CHARSET)
    language, variant = divmod(rest, len(_UCA_VARIANTS))
    is_known = charset < len(_UCA_CHARSETS) and language < len(_UCA_LANGUAGES) and (language == 0 or _UCA_LANGUAGES[language])
    words = (_UCA_CHARSETS[charset], "uca1400", _UCA_LANGUAGES[language], _UCA_VARIANTS[variant]) if is_known else ()
    return "_".join(filter(None, words))


TABLE_ID_BYTES: Final = 6
_FLAG_BYTES: Final = 2

METADATA_REMEDY: Final = Remedy(
    "binlog.set-row-metadata",
    "Run on the primary: SET GLOBAL binlog_row_metadata = FULL. Rows written before cannot be read: create the replica from a dump",
)


class _Field(IntEnum):
    """Kinds of optional metadata."""

    SIGNEDNESS = 1
    DEFAULT_CHARSET = 2
    COLUMN_CHARSET = 3
    COLUMN_NAME = 4
    SIMPLE_PRIMARY_KEY = 8
    PRIMARY_KEY_WITH_PREFIX = 9


_NUMERIC: Final = frozenset({0, 1, 2, 3, 4, 5, 8, 9, 13, 246})
"""DECIMAL, TINYINT, SMALLINT, INT, FLOAT, DOUBLE, BIGINT, MEDIUMINT, YEAR, NEWDECIMAL: the types that have a sign, for both servers."""
_CHARACTER: Final = frozenset({15, 253, 254, TypeCode.BLOB_COMPRESSED, TypeCode.VARCHAR_COMPRESSED} | BLOBS)
_CHARACTER_OF_MARIADB: Final = _CHARACTER | {TypeCode.GEOMETRY}
"""Types that the character sets are listed of."""
_TWO_BYTES: Final = frozenset({15, TypeCode.VARCHAR_COMPRESSED, TypeCode.BIT, 246, 247, 248, 253, 254})
_ONE_BYTE: Final = frozenset({4, 5, 17, 18, 19, 242, 245, 255, TypeCode.BLOB_COMPRESSED} | BLOBS)
"""Types with metadata of so many bytes."""


class MapColumn(NamedTuple):
    """A column of a table map."""

    name: str
    code: ColumnCode
    is_nullable: bool
    is_primary: bool


class TableMap(NamedTuple):
    """What a TABLE_MAP event says. ``columns`` in the order of the table."""

    name: TableName
    columns: tuple[MapColumn, ...]


def read_table_map(body: bytes, *, is_mariadb: bool) -> TableMap:
    """Read the body of a TABLE_MAP event, without the table's number. NeedsOperator: its metadata is not FULL. ProtocolError."""
    try:
        return _read(body, _CHARACTER_OF_MARIADB if is_mariadb else _CHARACTER)
    except (IndexError, ValueError) as cause:
        raise ProtocolError.at(None, "table_map", "a table map cannot be read") from cause


def read_map_name(body: bytes) -> TableName:
    """Read the name alone, which is there whatever the metadata are. ProtocolError: the body is cut."""
    try:
        return _name(_Bytes(body, _FLAG_BYTES))
    except IndexError as cause:
        raise ProtocolError.at(None, "table_map", "a table map cannot be read") from cause


class _Bytes:
    """Reads on. IndexError where too few bytes are left."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data, self._at = data, at

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) != count:
            raise IndexError
        self._at += count
        return found

    def number(self, size: int = 1) -> int:
        return int.from_bytes(self.take(size), "little")

    def packed(self) -> int:
        """Read a number of 1, 3, 4 or 9 bytes."""
        first = self.number()
        if first < 251:
            return first
        return self.number({252: 2, 253: 3, 254: 8}[first] if first in {252, 253, 254} else 0)

    def text(self) -> str:
        return self.take(self.packed()).decode("utf-8", "surrogateescape")

    def packed_numbers(self) -> Iterator[int]:
        while self:
            yield self.packed()


def _read(body: bytes, character: frozenset[int]) -> TableMap:
    data = _Bytes(body, _FLAG_BYTES)
    name = _name(data)
    types = data.take(data.packed())
    meta_data = _Bytes(data.take(data.packed()))
    metas = [_meta(kind, meta_data) for kind in types]
    nullable = _bits_from_low(data.take((len(types) + 7) // 8))
    fields: dict[int, bytes] = {}
    while data:
        kind = data.number()
        fields[kind] = data.take(data.packed())
    if _Field.COLUMN_NAME not in fields and types:
        raise NeedsOperator(
            "the binlog does not have the names of a table's columns: binlog_row_metadata is not FULL",
            remedy=METADATA_REMEDY,
            schema=name.schema,
            table=name.table,
        )
    real = [real_type(kind, meta) for kind, meta in zip(types, metas, strict=True)]
    names = _names(fields.get(_Field.COLUMN_NAME, b""), len(types))
    primary = _primary(fields)
    unsigned, charsets = _unsigned(real, fields), _charsets(name, [kind in character for kind in real], fields)
    codes = [ColumnCode(kind, meta, unsigned[at], charsets[at]) for at, (kind, meta) in enumerate(zip(real, metas, strict=True))]
    return TableMap(name, tuple(MapColumn(names[at], code, nullable[at], at in primary) for at, code in enumerate(codes)))


def _name(data: _Bytes) -> TableName:
    schema = data.take(data.number()).decode("utf-8", "surrogateescape")
    data.take(1)
    table = data.take(data.number()).decode("utf-8", "surrogateescape")
    data.take(1)
    return TableName(schema, table)


def _meta(kind: int, data: _Bytes) -> int:
    """Read a type's metadata as one number, the first byte lowest."""
    if kind in _TWO_BYTES:
        return data.number(2)
    return data.number() if kind in _ONE_BYTE else 0


def _bits_from_low(data: bytes) -> list[bool]:
    return [bool(byte >> bit & 1) for byte in data for bit in range(8)]


def _names(field: bytes, count: int) -> list[str]:
    data = _Bytes(field)
    return [data.text() for _ in range(count)]


def _primary(fields: dict[int, bytes]) -> frozenset[int]:
    if (simple := fields.get(_Field.SIMPLE_PRIMARY_KEY)) is not None:
        return frozenset(_Bytes(simple).packed_numbers())
    # Pairs of a column and the length of its prefix.
    return frozenset(list(_Bytes(fields.get(_Field.PRIMARY_KEY_WITH_PREFIX, b"")).packed_numbers())[::2])


def _unsigned(types: Sequence[int], fields: dict[int, bytes]) -> list[bool]:
    """Return which columns are unsigned: a bit for each numeric one, the highest bit of a byte first."""
    bits = iter([bool(byte >> bit & 1) for byte in fields.get(_Field.SIGNEDNESS, b"") for bit in range(7, -1, -1)])
    return [next(bits, False) if kind in _NUMERIC else False for kind in types]


def _charsets(name: TableName, are_characters: Sequence[bool], fields: dict[int, bytes]) -> list[str]:
    places = [at for at, has_charset in enumerate(are_characters) if has_charset]
    collations = dict(enumerate(_Bytes(fields[_Field.COLUMN_CHARSET]).packed_numbers())) if _Field.COLUMN_CHARSET in fields else {}
    if _Field.DEFAULT_CHARSET in fields:
        default, *rest = _Bytes(fields[_Field.DEFAULT_CHARSET]).packed_numbers()
        collations = dict.fromkeys(range(len(places)), default) | dict(zip(rest[::2], rest[1::2], strict=True))
    found = [""] * len(are_characters)
    for number, place in enumerate(places):
        collation = collations.get(number)
        charset = None if collation is None else charset_of(collation)
        if charset is None:
            message = "the character set of a column is not known"
            raise ProtocolError.at(None, "charset", message, schema=name.schema, table=name.table, collation=collation)
        found[place] = charset
    return found
