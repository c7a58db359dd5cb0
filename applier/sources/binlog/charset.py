"""Character sets and collations of both servers by their numbers, and how bytes of a character set are read.

Events name a collation by its number only. Numbers: ``information_schema.COLLATIONS`` of MySQL 9.7 and
``COLLATION_CHARACTER_SET_APPLICABILITY`` of MariaDB 10.11. Where both servers have a number, the name is MySQL's; MariaDB takes those too.
"""

from bisect import bisect_right
from typing import Final

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


def _names() -> dict[int, str]:
    found, number = dict[int, str](), 0
    for word in _NAMES.split():
        if word.isdecimal():
            number = int(word)
        else:
            found[number] = word
            number += 1
    return found


_BY_NUMBER: Final = _names()


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
