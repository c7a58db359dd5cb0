"""Values as readers return them (bytes; None for NULL), and what they stand for."""

from decimal import Decimal
from typing import Final

from applier.ddl.column_type import TypeFamily
from applier.model.events import Flag
from applier.model.events import Value as WireValue
from applier.sinks.sqlite.stored_value import floating
from applier.verify.column_pair import ColumnPair, Form

WIDE_MARK: Final = "x"
"""Between the digits of a number and the place of its point. Not e: servers print that."""
_INTEGER_CODES: Final = {"tinyint": 1, "smallint": 2, "mediumint": 9, "int": 3, "bigint": 8}
_CODES: Final = {
    TypeFamily.BIT: 16,
    TypeFamily.YEAR: 13,
    TypeFamily.DECIMAL: 246,
    TypeFamily.FLOAT: 4,
    TypeFamily.DOUBLE: 5,
    TypeFamily.CHARACTER: 15,
    TypeFamily.BINARY: 15,
    TypeFamily.DATE: 10,
    TypeFamily.DATETIME: 12,
    TypeFamily.TIMESTAMP: 7,
    TypeFamily.TIME: 11,
    TypeFamily.ENUM: 247,
    TypeFamily.SET: 248,
    TypeFamily.JSON: 245,
    TypeFamily.VECTOR: 225,
}
_OF_FORM: Final = {Form.JSON: 245, Form.VECTOR: 225}


def read_text(value: bytes) -> str:
    """Return the text; bytes that are not UTF-8 become lone surrogates."""
    return value.decode("utf-8", "surrogateescape")


def read_float(value: bytes) -> float:
    """Return the number that a text of the form DOUBLE stands for: as a server prints it, or digits and the place of the point."""
    digits, mark, point = read_text(value).partition(WIDE_MARK)
    if not mark:
        return float(value)
    sign = "-" if digits.startswith("-") else ""
    return float(f"{sign}0.{digits.removeprefix('-')}e{point}")


def write_float(number: float) -> bytes:
    """Return the wide form of a number, such that 12.5 is "125x2"; a zero has no sign."""
    if not number:
        return b"0"
    _, digits, exponent = Decimal(repr(number)).as_tuple()
    text = "".join(map(str, digits))
    shown = text.lstrip("0")
    point = len(shown) + int(exponent)
    return f"{'-' if number < 0 else ''}{shown.rstrip('0')}{WIDE_MARK}{point}".encode()


def wire_type(column: ColumnPair) -> tuple[int, int]:
    """Return type and flags with which the protocol would announce upstream's column."""
    if column.form in _OF_FORM:  # MariaDB's JSON is a LONGTEXT
        return _OF_FORM[column.form], 0
    kind = column.upstream.type
    if kind is None:
        return 15, 0
    flags = Flag.BINARY if kind.family is TypeFamily.BINARY else 0
    return _INTEGER_CODES.get(kind.base) or _CODES[kind.family], int(flags)


def wire_value(column: ColumnPair, value: bytes | None) -> WireValue:  # noqa: PLR0911 - one per form
    """Return the value as the protocol would bring it. ValueError: a label that the sink's column lacks."""
    if value is None:
        return None
    match column.form:
        case Form.BYTES:
            return value
        case Form.INTEGER:
            return int(value)
        case Form.ORDINAL:
            return int(value, 16)
        case Form.DOUBLE:
            return _number(column, value)
        case Form.LABEL:
            return _ordinal(column, read_text(value))
        case Form.TEXT | Form.DECIMAL | Form.MOMENT | Form.JSON | Form.VECTOR:
            return read_text(value)


def _number(column: ColumnPair, value: bytes) -> WireValue:
    kind = column.upstream.type
    number = read_float(value)
    if kind is not None and kind.family is TypeFamily.FLOAT:
        # The wire carries the shortest text of 32 bits, and the file keeps it: a key must be that number.
        return floating(number, kind)
    if kind is None or kind.family is TypeFamily.DOUBLE:
        return number
    return read_text(value) if kind.family is TypeFamily.DECIMAL else int(number)


def _ordinal(column: ColumnPair, label: str) -> int:
    labels = column.sink.description.labels
    if not column.sink.description.is_set:
        return 0 if label == "" and label not in labels else labels.index(label) + 1
    return sum(1 << labels.index(each) for each in label.split(",")) if label else 0
