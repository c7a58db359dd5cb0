"""Values as literals of MySQL, MariaDB and TiDB. One function per column, chosen once; never a value that the type does not guarantee.

A literal is used in REPLACE lists and in comparisons with key columns, and must be exact in both:

* DECIMAL is written bare: compared with a *string*, a DECIMAL column is converted to floating point (MySQL manual, 14.3).
* FLOAT is written as the double that equals the stored 32-bit number: ``f IN (3.14)`` never finds a FLOAT 3.14.
* DOUBLE carries an exponent, without which a literal is a DECIMAL; a negative zero keeps its sign only as a string.
* Text is a character string without ``_binary`` (open_protocol.md 2.6); bytes, and text that is not UTF-8, are hexadecimal.
* ENUM and SET are written as ordinals and bit masks; as strings they would be matched against the labels first. In comparisons they are
  labels, where those are unambiguous.

The session must not have NO_BACKSLASH_ESCAPES, and its character set is utf8mb4. The functions raise TypeError, ValueError or
AttributeError where a value is not of the type that was asked for.
"""

import re
from base64 import b64encode
from collections.abc import Callable
from functools import lru_cache
from struct import Struct, pack
from struct import error as StructError  # noqa: N812 - a class
from typing import Any, Final

from applier.model.errors import Remedy, RowRefused
from applier.model.events import STRING_TYPES
from applier.planner.port import ColumnDescription, Literal

INTEGERS = frozenset({1, 2, 3, 8, 9, 13, 16})
"""TINYINT, SMALLINT, INT, BIGINT, MEDIUMINT, YEAR, BIT."""
FLOATS = frozenset({4, 5})
DECIMAL, ENUM, SET, NULL_TYPE, GEOMETRY = 246, 247, 248, 6, 255
TEXTS = frozenset({7, 10, 11, 12, 14, 225, 245})
"""TIMESTAMP, DATE, TIME, DATETIME, NEWDATE, VECTOR, JSON: always text."""

GREATEST_FLOAT: Final = 3.4028234663852886e38
"""The greatest FLOAT. Its shortest text, as it comes on the wire (3.4028235e+38), is a greater number, and out of range."""

LARGE_BYTES: Final = 1 << 20
"""Values of at least so many bytes are written as base64, which servers take longer to read."""
SIGN_BIT: Final = 63
MASK_BITS: Final = 64

_DECIMAL_TEXT: Final = re.compile(r"-?[0-9]{1,65}(?:\.[0-9]{1,30})?")
_ESCAPES: Final = str.maketrans({"\0": "\\0", "'": "\\'", "\\": "\\\\"})
_FLOAT32: Final = Struct("<f")


def literal_of(column: ColumnDescription, mysql_type: int, *, is_bytes: bool = False) -> Literal:
    """Return the function that renders values of wire type ``mysql_type`` for ``column``. ValueError: not a type of the protocol."""
    if mysql_type in INTEGERS:
        # No Python function around it: 60 ns less per value.
        return integer if column.nullable else int.__repr__
    if mysql_type in STRING_TYPES:
        return hexadecimal if is_bytes else text
    if mysql_type == GEOMETRY:
        return hexadecimal
    if mysql_type in TEXTS:
        return text
    if mysql_type in FLOATS:
        return float32 if is_float32(column) else float64
    return _rare(column, mysql_type)


def is_float32(column: ColumnDescription) -> bool:
    """Return whether the sink keeps 32-bit numbers in the column."""
    return column.sql_type.casefold().startswith("float")


def _rare(column: ColumnDescription, mysql_type: int) -> Literal:
    if mysql_type == DECIMAL:
        return decimal
    if mysql_type in {ENUM, SET}:
        # Not strict, a server writes '' for an ordinal beyond the elements, with the warning that ordinal 0 raises too (1265).
        most = greatest_ordinal(column, mysql_type)
        return integer if most is None else _bounded(most, column)
    if mysql_type == NULL_TYPE:
        return null
    raise ValueError(f"no literal for type {mysql_type}")


def greatest_ordinal(column: ColumnDescription, mysql_type: int) -> int | None:
    """Return the greatest number that represents elements of the sink's ENUM or SET; None if these are not known."""
    if not column.labels:
        return None
    return len(column.labels) if mysql_type == ENUM else 2 ** len(column.labels) - 1


def null(value: Any) -> str:
    """Render a value of type NULL."""
    if value is not None:
        raise TypeError("a column of type NULL has a value")
    return "NULL"


def integer(value: Any) -> str:
    """Render an integer of any size, BIT and YEAR included."""
    return "NULL" if value is None else int.__repr__(value)


def _bounded(most: int, column: ColumnDescription) -> Literal:
    def ordinal(value: Any) -> str:
        if value is None:
            return "NULL"
        if not 0 <= value <= most:
            raise RowRefused(
                "the sink's column lacks elements of upstream's ENUM or SET",
                remedy=Remedy("mysql.add-column-elements", "Give the sink's column the elements that it has upstream"),
                column=column.name,
                elements=len(column.labels),
            )
        return int.__repr__(value)

    return ordinal


def comparable_of(column: ColumnDescription) -> Callable[[str], str]:
    """Return the function from a literal of an ENUM or SET ``column`` to the one that it is compared with.

    A label; the number where a label is empty, which several numbers may be; as a signed one, as servers read it from a SET.
    """
    if not column.is_set:
        ordinals = {str(ordinal): text(label) for ordinal, label in enumerate(column.labels, 1) if label}
        return lambda literal: ordinals.get(literal, literal)

    has_empty = "" in column.labels

    @lru_cache(maxsize=4096)
    def of_mask(literal: str) -> str:
        if literal == "NULL":
            return literal
        mask = int(literal)
        # Servers read a SET's number as a signed one.
        if has_empty:
            return str(mask - (mask >> SIGN_BIT << MASK_BITS))
        return text(",".join(label for bit, label in enumerate(column.labels) if mask >> bit & 1))

    return of_mask


def float64(value: Any) -> str:
    """Render a DOUBLE so that it is read back as the same 64 bits."""
    if value is None:
        return "NULL"
    digits = float.__repr__(value)
    if "e" in digits:
        return digits
    # As a number -0 loses its sign in the parser.
    if digits == "-0.0":
        return "'-0'"
    if digits[-1] in "fn":  # inf and nan
        raise ValueError("not a finite number")
    return f"{digits}e0"


def float32(value: Any) -> str:
    """Render a FLOAT: the double that equals the 32-bit number next to ``value``. Out of range: as it is, for the database to refuse."""
    if value is None:
        return "NULL"
    if not isinstance(value, float):
        raise TypeError("not a float")
    try:
        return float64(_FLOAT32.unpack(_FLOAT32.pack(value))[0])
    except OverflowError:
        return float64(value)


def decimal(value: Any) -> str:
    """Render a DECIMAL exactly; what does not look like one is passed as a string, for the database to judge."""
    if value is not None and _DECIMAL_TEXT.fullmatch(value):
        return str(value)
    return text(value)


def text(value: Any) -> str:
    """Render a character string; bytes that are not UTF-8 (lone surrogates) make the whole string hexadecimal."""
    if value is None:
        return "NULL"
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return hexadecimal(value.encode("utf-8", "surrogateescape"))
    if "'" in value or "\\" in value or "\0" in value:
        value = value.translate(_ESCAPES)
    return f"'{value}'"


def vector(value: Any) -> str:
    """Render a VECTOR by its bytes, which are its 32-bit numbers: MySQL takes no text for it (6136)."""
    if value is None:
        return "NULL"
    if value[:1] != "[" or value[-1:] != "]":
        raise ValueError("not a vector")
    numbers = [float(number) for number in value[1:-1].split(",") if number]
    try:
        return hexadecimal(pack(f"<{len(numbers)}f", *numbers))
    except (OverflowError, StructError) as cause:
        raise ValueError("not a vector of 32-bit numbers") from cause


def hexadecimal(value: Any) -> str:
    """Render bytes. Many as base64: a statement of ``max_allowed_packet`` then holds three quarters of that, and not a half."""
    if value is None:
        return "NULL"
    return f"x'{bytes.hex(value)}'" if len(value) < LARGE_BYTES else f"FROM_BASE64('{b64encode(value).decode()}')"
