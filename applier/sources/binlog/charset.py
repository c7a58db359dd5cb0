"""Character sets of both servers: which one a collation's number belongs to, and how bytes of it are read.

Numbers: ``information_schema.COLLATIONS`` of MySQL 9.7 and ``COLLATION_CHARACTER_SET_APPLICABILITY`` of MariaDB 10.11. They do not
contradict each other.
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
