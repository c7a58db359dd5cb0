"""Values of MySQL literals and of implicit defaults, as the file stores them."""

from datetime import datetime
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from applier.errors import NeedsOperator
from applier.position import Ts, moment_of
from applier.sinks.sqlite.column_type import ColumnType, Family
from applier.sinks.sqlite.conversion import conversion
from applier.sinks.sqlite.definition import ColumnDefinition, DefaultKind
from applier.sinks.sqlite.stored_value import Stored
from applier.sinks.sqlite.tokens import BY_HAND, Cursor

_TEXT = ColumnType(base="longtext")
_BYTES = ColumnType(base="longblob")
_BIGINT = ColumnType(base="bigint")
_UNSIGNED = ColumnType(base="bigint", unsigned=True)


def fill_value(column: ColumnDefinition, commit_ts: Ts, zone: str) -> Stored:
    """Return what existing rows hold in a column that was added at ``commit_ts``: its default, or MySQL's implicit one if it is NOT NULL.

    NeedsOperator if the default is an expression: its values for the existing rows are not on the wire.
    """
    if column.default is None:
        return None if column.nullable else implicit_default(column.type)
    match column.default.kind:
        case DefaultKind.LITERAL:
            return literal_default(column.type, column.default.text)
        case DefaultKind.NOW:
            return _now(column.type, commit_ts, zone)
        case DefaultKind.EXPRESSION:
            raise NeedsOperator(
                "existing rows take the value of a default expression, which only upstream knows",
                remedy=BY_HAND,
                column=column.name,
                default=column.default.text,
            )


def literal_default(column: ColumnType, text: str) -> Stored:
    """Convert a literal DEFAULT to the column's type, as MySQL stores it."""
    cursor = Cursor(text)
    word = cursor.peek()
    match word.kind:
        case "string":
            return _from_text(column, word.text)
        case "bytes":
            return _from_bytes(column, bytes.fromhex(word.text))
        case _:
            return _from_number(column, text)


def _from_text(column: ColumnType, text: str) -> Stored:
    return conversion(_TEXT, column)(text)


def _from_bytes(column: ColumnType, data: bytes) -> Stored:
    if column.family in (Family.INTEGER, Family.BIT, Family.DECIMAL, Family.YEAR):
        return conversion(_UNSIGNED, column)(_stored_integer(int.from_bytes(data)))
    return conversion(_BYTES, column)(data)


def _from_number(column: ColumnType, text: str) -> Stored:
    number = Decimal(text)
    if column.family in (Family.FLOAT, Family.DOUBLE):
        return conversion(ColumnType(base="double"), column)(float(number))
    if column.family is Family.ENUM:
        return column.labels[int(number) - 1]
    if number == number.to_integral_value():
        kind = _UNSIGNED if number > 2**63 - 1 else _BIGINT
        return conversion(kind, column)(_stored_integer(int(number)))
    return conversion(ColumnType(base="decimal", arguments=(65, 30)), column)(f"{number:f}")


def _stored_integer(number: int) -> Stored:
    return number if number <= 2**63 - 1 else str(number)


_ZEROS: Final[dict[Family, Stored]] = {
    Family.INTEGER: 0,
    Family.BIT: 0,
    Family.YEAR: 0,
    Family.FLOAT: 0.0,
    Family.DOUBLE: 0.0,
    Family.DECIMAL: "0",
    Family.DATE: "0000-00-00",
    Family.DATETIME: "0000-00-00 00:00:00",
    Family.TIMESTAMP: "0000-00-00 00:00:00",
    Family.TIME: "00:00:00",
    Family.JSON: "null",
    Family.CHARACTER: "",
    Family.SET: "",
    Family.BINARY: b"",
}
_FRACTIONAL: Final = (Family.DECIMAL, Family.DATETIME, Family.TIMESTAMP, Family.TIME)


def implicit_default(column: ColumnType) -> Stored:
    """Return what MySQL gives existing rows in a NOT NULL column without a default (manual, "Data Type Default Values")."""
    if column.family is Family.ENUM:
        return column.labels[0]
    if column.base == "binary":
        return bytes(column.max_characters or 0)
    if column.family not in _ZEROS:
        raise NeedsOperator("a VECTOR column has no implicit default", remedy=BY_HAND, type=str(column))
    zero = _ZEROS[column.family]
    return f"{zero}.{'0' * column.scale}" if isinstance(zero, str) and column.family in _FRACTIONAL and column.scale else zero


def _now(column: ColumnType, commit_ts: Ts, zone: str) -> Stored:
    """Return the physical time of the DDL in whole seconds: TiDB drops the fraction of CURRENT_TIMESTAMP for existing rows."""
    moment: datetime = moment_of(commit_ts).astimezone(ZoneInfo(zone))
    text = f"{moment:%Y-%m-%d %H:%M:%S}" + ("." + "0" * column.scale if column.scale else "")
    return text[:10] if column.family is Family.DATE else text
