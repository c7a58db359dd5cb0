"""Reads the type of a column, with its attributes and its character set."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from applier.ddl.column_type import UTF8_CHARSETS, ColumnType, TypeFamily, is_known_base
from applier.ddl.cursor import Cursor

_ALIASES: Final = {
    "integer": "int", "int1": "tinyint", "int2": "smallint", "int3": "mediumint", "middleint": "mediumint", "int4": "int", "int8": "bigint",
    # REAL is DOUBLE unless sql_mode holds REAL_AS_FLOAT, which no event shows.
    "numeric": "decimal", "dec": "decimal", "fixed": "decimal", "real": "double", "float8": "double", "float4": "float",
    "character": "char", "nchar": "char", "varcharacter": "varchar", "nvarchar": "varchar", "bool": "tinyint", "boolean": "tinyint",
}  # fmt: skip
_SPATIAL: Final = dict.fromkeys(
    ["geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection"],
    "longblob",
)
"""A binlog has their values as the bytes that the server stores."""
_BYTES: Final = {"uuid": 16, "inet6": 16, "inet4": 4}
"""MariaDB's types of fixed bytes, which a binlog has as such."""
_LARGER_TEXT: Final = {"tinytext": "text", "text": "mediumtext", "mediumtext": "longtext"}
_CHARSET_WORDS: Final = frozenset({"CHARACTER", "CHARSET", "COLLATE", "BYTE"})


def parse_type(cursor: Cursor) -> ColumnType:
    """Read a type with its attributes."""
    base = _base(cursor)
    if base in ("enum", "set"):
        labels = tuple(_labels(cursor.parenthesis()))
        if not labels:
            raise cursor.unexpected("labels")
        return _attributes(cursor, ColumnType(base=base, labels=labels))
    arguments = tuple(_integers(cursor.parenthesis())) if cursor.sees("(") else ()
    return _attributes(cursor, _normal(base, arguments))


def _base(cursor: Cursor) -> str:
    cursor.accept("NATIONAL")
    if cursor.is_done:
        raise cursor.unexpected("a type")
    word = cursor.next().text
    base = word.lower()
    if base == "long":
        base = "mediumblob" if cursor.accept("VARBINARY") else "mediumtext"
        cursor.accept_any("VARCHAR", "CHAR")
    # DOUBLE PRECISION.
    if base == "double":
        cursor.accept("PRECISION")
    if base in ("char", "character", "nchar") and cursor.accept("VARYING"):
        base = "varchar"
    if base in ("bool", "boolean"):
        return "bool"
    base = _SPATIAL.get(base, _ALIASES.get(base, base))
    if base in _BYTES:
        words = [token.keyword for token in cursor.rest]
        # A literal is a text there, and the column holds bytes.
        if "DEFAULT" in words and "NULL" not in words[words.index("DEFAULT") :][1:2]:
            raise cursor.unexpected(f"a default of {word} that can be translated")
        return base
    if not is_known_base(base):
        raise cursor.unexpected(f"a type that can be translated, not {word},")
    return base


def _normal(base: str, arguments: tuple[int, ...]) -> ColumnType:
    if base in _BYTES:
        return ColumnType(base="binary", arguments=(_BYTES[base],))
    if base == "bool":
        return ColumnType(base="tinyint", arguments=(1,))
    # FLOAT(p): single precision up to 24 bits, double from 25 on, and the number itself is not kept (manual, "Floating-Point Types").
    if base == "float" and len(arguments) == 1:
        return ColumnType(base="double" if arguments[0] > 24 else "float")
    # DECIMAL is DECIMAL(10,0), and DECIMAL(5) is DECIMAL(5,0) (manual, "Fixed-Point Types").
    if base == "decimal" and not arguments:
        arguments = (10, 0)
    if base == "decimal" and len(arguments) == 1:
        arguments = (arguments[0], 0)
    return ColumnType(base=base, arguments=arguments)


def _labels(inside: Cursor) -> Iterator[str]:
    while not inside.is_done:
        # TiDB and MySQL strip trailing spaces of labels.
        yield inside.string().rstrip(" ")
        inside.accept(",")


def _integers(inside: Cursor) -> Iterator[int]:
    while not inside.is_done:
        yield inside.integer()
        inside.accept(",")


def _attributes(cursor: Cursor, column: ColumnType) -> ColumnType:
    while True:
        if cursor.accept("UNSIGNED"):
            column = replace(column, unsigned=True)
        elif cursor.accept("ZEROFILL"):
            # MySQL adds UNSIGNED (manual, "Numeric Type Attributes").
            column = replace(column, unsigned=True, zerofill=True)
        elif cursor.accept("BYTE"):
            column = column.as_binary()
        elif charset := parse_charset(cursor):
            column = with_charset(column, charset)
        elif cursor.accept("COMPRESSED"):
            # MariaDB's: it says how values are stored.
            if cursor.accept("="):
                cursor.next()
        # BINARY chooses a collation here, ASCII and UNICODE a character set that is a part of UTF-8's.
        elif not cursor.accept_any("SIGNED", "BINARY", "ASCII", "UNICODE"):
            return column


def parse_charset(cursor: Cursor) -> str:
    """Take ``CHARACTER SET x`` or ``CHARSET x`` (with or without ``=``) and return x in lower case; '' if it does not follow."""
    if not (cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET") or cursor.accept("CHAR", "SET")):
        return ""
    cursor.accept("=")
    literal = cursor.literal_ahead()
    return cursor.string().lower() if literal and literal.kind == "string" else cursor.next().text.lower()


def charset_within(cursor: Cursor) -> str:
    """Return the character set that is named somewhere in what is left, in lower case; '' if none is."""
    while not cursor.is_done:
        if found := parse_charset(cursor):
            return found
        cursor.next()
    return ""


def names_charset(cursor: Cursor) -> bool:
    """Return whether what is left names a character set or collation."""
    return any(token.keyword in _CHARSET_WORDS for token in cursor.rest)


def with_charset(column: ColumnType, charset: str) -> ColumnType:
    """Return the type under another character set: ``binary`` makes it a binary type, kinds of UTF-8 need no mention."""
    if column.family is not TypeFamily.CHARACTER:
        return column
    if charset == "binary":
        return column.as_binary()
    # TiCDC sends all text as UTF-8. Only a charset that cannot hold all of it says something about the values.
    return replace(column, charset="" if charset in UTF8_CHARSETS else charset)


def converted_text(column: ColumnType, charset: str) -> ColumnType:
    """Return what CONVERT TO CHARACTER SET makes of a text type: a TEXT of another character set grows, so that each value still fits."""
    new = with_charset(column, charset)
    grows = column.charset != "" and new.family is TypeFamily.CHARACTER and new.charset == ""
    return replace(new, base=_LARGER_TEXT.get(new.base, new.base)) if grows else new
