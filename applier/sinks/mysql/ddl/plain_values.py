"""Conditions of SQL for values of which each server makes the same when their column's type changes (``PlainValues``)."""

from collections.abc import Callable, Mapping
from typing import Final

from applier.ddl.column_type import ColumnType, TypeFamily
from applier.ddl.conversion_rule import PlainValues

COLUMN: Final = "{column}"
"""Stands for the column's quoted name."""
_MOST_DIGITS: Final = 30
"""A DECIMAL(65,30), in which texts are compared, has 35 digits before its point."""
_LARGEST_FLOAT: Final = "3.4028234663852886e38"
_CLOCK: Final = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_TIME: Final = "^-?(0?[0-9]{2}|[1-7][0-9]{2}|8[0-2][0-9]|83[0-8]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,6})?$"

_Condition = Callable[[str, ColumnType, ColumnType], str]


def plain_condition(values: PlainValues, old: ColumnType, new: ColumnType, zone: str) -> str | None:
    """Return the condition for a plain value of ``{column}``; None: no value is known to be plain on a server.

    ``zone``: that of upstream's session, in which a TIMESTAMP is looked at; '': that of this session.
    """
    condition = _CONDITIONS.get(values)
    if condition is None:
        return None
    is_seen = old.family is TypeFamily.TIMESTAMP and new.family is not TypeFamily.TIMESTAMP and zone
    name = f"CONVERT_TZ({COLUMN},@@SESSION.time_zone,'{zone}')" if is_seen else COLUMN
    return condition(name, old, new)


def once_in_zone(zone: str) -> str:
    """Return the condition for a date and time that is one TIMESTAMP in a zone: its hour is not repeated, nor left out."""
    name = f"CAST({COLUMN} AS DATETIME(6))"
    moment = f"CONVERT_TZ({name},'{zone}','+00:00')"
    # Clocks are moved by one hour; by half an hour (Lord Howe) or two in few places.
    others = " AND ".join(
        f"CONVERT_TZ({moment} + INTERVAL {minutes} MINUTE,'+00:00','{zone}') <> {name}" for minutes in (-120, -60, -30, 30, 60, 120)
    )
    return f"({name} BETWEEN '1970-01-03' AND '2038-01-17' AND CONVERT_TZ({moment},'+00:00','{zone}') = {name} AND {others})"


def _text(name: str) -> str:
    return f"CONVERT({name} USING utf8mb4)"


def _matches(name: str, pattern: str) -> str:
    # $ also stands before a line feed at the end.
    return f"({_text(name)} REGEXP '{pattern}' AND INSTR({_text(name)}, CHAR(10)) = 0)"


def _in_range(name: str, old: ColumnType, new: ColumnType) -> str:
    number = f"{name}+0"
    match new.family:
        case TypeFamily.FLOAT:
            return _unless_unsigned(number, new, f"ABS({number}) <= {_LARGEST_FLOAT}")
        case TypeFamily.DOUBLE:
            return _unless_unsigned(number, new, "TRUE")
        case TypeFamily.DECIMAL:
            return _decimal_range(number, new)
        case _:
            whole = f"ROUND({number})" if old.family is TypeFamily.DECIMAL else number
            return f"{whole} BETWEEN {new.lowest} AND {new.highest}"


def _decimal_range(number: str, new: ColumnType) -> str:
    return _unless_unsigned(number, new, f"ABS(ROUND({number},{new.scale})) < 1{'0' * (new.precision - new.scale)}")


def _unless_unsigned(number: str, new: ColumnType, condition: str) -> str:
    return f"{condition} AND {number} >= 0" if new.unsigned else condition


def _short(name: str, old: ColumnType, new: ColumnType) -> str:
    is_bytes = new.family is TypeFamily.BINARY
    value = name if is_bytes and old.family is TypeFamily.BINARY else _text(name)
    # CHAR has no trailing spaces: they are cut off everywhere.
    value = f"TRIM(TRAILING ' ' FROM {value})" if new.base == "char" else value
    if new.max_characters is not None:
        return f"{'LENGTH' if is_bytes else 'CHAR_LENGTH'}({value}) <= {new.max_characters}"
    return f"LENGTH({value}) <= {new.max_bytes}"


def _whole(name: str, _old: ColumnType, new: ColumnType) -> str:
    return f"MICROSECOND({name}) % {10 ** (6 - new.scale)} = 0"


def _midnight(name: str, _old: ColumnType, _new: ColumnType) -> str:
    return f"TIME_TO_SEC({name}) = 0 AND MICROSECOND({name}) = 0"


def _integer_text(name: str, _old: ColumnType, new: ColumnType) -> str:
    number = f"CAST({_text(name)} AS DECIMAL(65,0))"
    is_plain = _matches(name, "^ *[+-]?[0-9]+ *$")
    return f"({is_plain} AND CHAR_LENGTH({name}) <= {_MOST_DIGITS} AND {number} BETWEEN {new.lowest} AND {new.highest})"


def _decimal_text(name: str, _old: ColumnType, new: ColumnType) -> str:
    number = f"CAST({_text(name)} AS DECIMAL(65,30))"
    is_plain = f"{_matches(name, '^ *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+) *$')} AND CHAR_LENGTH({name}) <= {_MOST_DIGITS}"
    fits = _decimal_range(number, new) if new.family is TypeFamily.DECIMAL else _unless_unsigned(number, new, "TRUE")
    return f"({is_plain} AND {fits})"


def _year_text(name: str, _old: ColumnType, _new: ColumnType) -> str:
    return f"({_matches(name, '^[0-9]{4}$')} AND ({name} = '0000' OR {name} BETWEEN '1901' AND '2155'))"


def _of_calendar(name: str) -> str:
    """Compare a date with the one that its month and its day give: there is no 31 February."""
    text = _text(name)
    counted = f"CAST(CONCAT(LEFT({text},8),'01') AS DATE) + INTERVAL (SUBSTRING({text},9,2)+0)-1 DAY"
    return f"CAST({counted} AS CHAR) = LEFT({text},10) AND SUBSTRING({text},6,2) BETWEEN '01' AND '12'"


def _date_text(name: str, _old: ColumnType, _new: ColumnType) -> str:
    return f"({_matches(name, '^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T]00:00:00([.]0+)?)?$')} AND {_of_calendar(name)})"


def _datetime_text(name: str, _old: ColumnType, new: ColumnType) -> str:
    is_plain = _matches(name, f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([ T]{_CLOCK}([.][0-9]{{1,6}})?)?$")
    return f"({is_plain} AND {_has_digits(name, new)} AND {_of_calendar(name)})"


def _time_text(name: str, _old: ColumnType, new: ColumnType) -> str:
    return f"({_matches(name, _TIME)} AND {_has_digits(name, new)})"


def _has_digits(name: str, new: ColumnType) -> str:
    return f"{_text(name)} NOT REGEXP '[.][0-9]{{{new.scale}}}[0-9]*[1-9]'"


def _labels(name: str, old: ColumnType, new: ColumnType) -> str:
    if old.family is TypeFamily.SET:
        gone = [label for label in old.labels if label not in new.labels]
        return " AND ".join(f"FIND_IN_SET({_quoted(label)}, {_text(name)}) = 0" for label in gone)
    # As bytes: a collation may take other texts for the label.
    return f"CAST({_text(name)} AS BINARY) IN ({','.join(f'CAST({_quoted(label)} AS BINARY)' for label in new.labels)})"


def _quoted(label: str) -> str:
    return f"CONVERT(X'{label.encode().hex()}' USING utf8mb4)"


def _utf8(name: str, old: ColumnType, new: ColumnType) -> str:
    # As bytes again: what is no UTF-8 becomes NULL, or question marks.
    return f"(CAST({_text(name)} AS BINARY) = CAST({name} AS BINARY) AND {_short(name, old, new)})"


def _in_charset(name: str, old: ColumnType, new: ColumnType) -> str:
    if not new.charset.isidentifier():
        return "FALSE"
    # There and back again: what the character set lacks becomes a question mark.
    back = f"CONVERT(CONVERT({name} USING {new.charset}) USING utf8mb4)"
    return f"(CAST({back} AS BINARY) = CAST({_text(name)} AS BINARY) AND {_short(name, old, new)})"


_CONDITIONS: Final[Mapping[PlainValues, _Condition]] = {
    PlainValues.IN_RANGE: _in_range,
    PlainValues.SHORT: _short,
    PlainValues.WHOLE: _whole,
    PlainValues.MIDNIGHT: _midnight,
    PlainValues.INTEGER_TEXT: _integer_text,
    PlainValues.DECIMAL_TEXT: _decimal_text,
    PlainValues.YEAR_TEXT: _year_text,
    PlainValues.DATE_TEXT: _date_text,
    PlainValues.DATETIME_TEXT: _datetime_text,
    PlainValues.TIME_TEXT: _time_text,
    PlainValues.LABELS: _labels,
    PlainValues.UTF8: _utf8,
    PlainValues.IN_CHARSET: _in_charset,
}
"""Not AS_SENT: a server prints what it has stored."""
