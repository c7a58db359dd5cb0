"""Spellings of a literal DEFAULT that MySQL takes for a number, a year, a time or a date, brought to the plain form of the type.

Only what MariaDB 10.11 and MySQL 9.7 read alike and without a warning is taken; ``Inexact`` says that it is something else.
"""

import re
from decimal import Decimal, InvalidOperation
from typing import Final

from applier.sinks.sqlite.stored_value import Inexact

_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
_CLOCK: Final = re.compile(r"(-?)(?:(\d{1,2}) )?(\d{1,3}):(\d{1,2})(?::(\d{1,2}))?(\.\d{1,6})?")
_DIGITS: Final = re.compile(r"(-?)(\d{1,7})(\.\d{1,6})?")
_MAX_HOURS: Final = 838
_NEXT_CENTURY: Final = 70
"""Years of two digits from here on are those of 1970 to 1999."""


def parse_number(text: str) -> Decimal:
    """Read a number, perhaps with an exponent."""
    if _NUMBER.fullmatch(text) is None:
        raise Inexact("not a plain number")
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise Inexact("not a plain number") from error


def whole(number: Decimal) -> int:
    """Return a number without a fraction."""
    if number != number.to_integral_value():
        raise Inexact("a number with a fraction is not a date")
    return int(number)


def default_year(text: str) -> int:
    """Read a YEAR of one, two or four digits. The number 0 is the year 0, the text '0' is 2000."""
    if not (text.isdecimal() and text.isascii() and len(text) in (1, 2, 4)):
        raise Inexact("not a plain year")
    year = int(text)
    if len(text) < len("2000"):
        return year + (1900 if year >= _NEXT_CENTURY else 2000)
    if year and not 1901 <= year <= 2155:
        raise Inexact("out of range for year")
    return year


def plain_time(text: str) -> str:
    """Read ``10:00``, ``1:2:3.5``, ``1 10:00`` or digits such as ``101010`` as hours, minutes and seconds."""
    if found := _CLOCK.fullmatch(text):
        sign, days, hours, minutes, seconds, fraction = found.groups(default="")
        parts = (int(days or 0) * 24 + int(hours), int(minutes), int(seconds or 0))
        if fraction and not seconds:
            raise Inexact("not a plain time")
    elif found := _DIGITS.fullmatch(text):
        sign, digits, fraction = found.groups(default="")
        number = int(digits)
        parts = (number // 10000, number // 100 % 100, number % 100)
    else:
        raise Inexact("not a plain time")
    hours_of_all, minute, second = parts
    if hours_of_all > _MAX_HOURS or minute > 59 or second > 59:
        raise Inexact("out of range for time")
    # MySQL has no -00:00:00.
    sign = sign if any(parts) or fraction.strip(".0") else ""
    return f"{sign}{hours_of_all:02}:{minute:02}:{second:02}{fraction}"


def plain_datetime(number: int) -> str:
    """Read 0, ``20240102`` or ``20240102030405`` as a date and time."""
    if number == 0:
        return "0000-00-00 00:00:00"
    digits = str(number)
    if len(digits) not in (8, 14):
        raise Inexact("not a plain date")
    digits = digits.ljust(14, "0")
    month, day, hour, minute, second = (int(digits[at : at + 2]) for at in range(4, 14, 2))
    if month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59:
        raise Inexact("not a plain date")
    return f"{digits[:4]}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}"
