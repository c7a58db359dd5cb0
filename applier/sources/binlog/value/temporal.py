"""Dates and times as text, exactly as a server writes them: zeros, hours beyond 24, and fractions with their digits.

A date or a time of day is written once and then looked up: rows repeat days and seconds, and a lookup takes a fifth of the time.
Source: MySQL's ``my_time.cc`` (the packed formats), and MariaDB's ``sql_type.cc``.
"""

from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import Final

MAX_KNOWN: Final = 65_536
"""Dates that are kept."""
_EPOCH: Final = date(1970, 1, 1)
_DAY: Final = 86_400


class _Texts(dict[int, str]):
    """The text of each number that was asked for."""

    def __init__(self, write: Callable[[int], str]) -> None:
        super().__init__()
        self._write = write

    def __missing__(self, number: int) -> str:
        if len(self) >= MAX_KNOWN:
            self.clear()
        found = self[number] = self._write(number)
        return found


def _packed_date(number: int) -> str:
    months, day = divmod(number, 32)
    year, month = divmod(months, 13)
    return _date(year, month, day)


def _date(year: int, month: int, day: int) -> str:
    if not 0 <= year <= 9999 or month > 12 or day > 31:
        raise ValueError("not a date")
    return f"{year:04d}-{month:02d}-{day:02d}"


def _packed_time(number: int) -> str:
    return _time(number >> 12, number >> 6 & 63, number & 63)


def _time(hour: int, minute: int, second: int) -> str:
    if minute > 59 or second > 59:
        raise ValueError("not a time of day")
    return f"{hour:02d}:{minute:02d}:{second:02d}"


dates: Final = _Texts(_packed_date)
times_of_day: Final = _Texts(_packed_time)
_days: Final = _Texts(lambda days: (_EPOCH + timedelta(days)).isoformat())
_seconds: Final = _Texts(lambda seconds: _time(seconds // 3600, seconds // 60 % 60, seconds % 60))


def fraction_bytes(digits: int) -> int:
    """Return how many bytes hold so many digits of a second."""
    return (digits + 1) // 2


def _fraction(number: int, digits: int) -> str:
    """Write what ``fraction_bytes`` hold: an odd number of digits has a zero after it."""
    text = f"{number:0{fraction_bytes(digits) * 2}d}"
    if len(text) > fraction_bytes(digits) * 2:
        raise ValueError("not a fraction of a second")
    return text[:digits]


def read_dates(values: Sequence[bytes]) -> Sequence[str]:
    """Read DATE: three bytes, the lowest first."""
    found = []
    for value in values:
        number = int.from_bytes(value, "little")
        # The packed form of DATETIME has 13 months a year, this one 16.
        found.append(dates[((number >> 9) * 13 + (number >> 5 & 15)) << 5 | number & 31])
    return found


def datetimes(digits: int) -> Callable[[Sequence[bytes]], Sequence[str]]:
    """Return what reads DATETIME(digits): 40 bits of date and time, then the fraction."""
    size = fraction_bytes(digits)

    def read_whole(values: Sequence[bytes]) -> Sequence[str]:
        numbers = [int.from_bytes(value) - 0x8000000000 for value in values]
        return [f"{dates[number >> 17]} {times_of_day[number & 0x1FFFF]}" for number in numbers]

    def read(values: Sequence[bytes]) -> Sequence[str]:
        found = []
        for value in values:
            number, fraction = int.from_bytes(value[:5]) - 0x8000000000, int.from_bytes(value[5:])
            found.append(f"{dates[number >> 17]} {times_of_day[number & 0x1FFFF]}.{_fraction(fraction, digits)}")
        return found

    return read if size else read_whole


def timestamps(digits: int) -> Callable[[Sequence[bytes]], Sequence[str]]:
    """Return what reads TIMESTAMP(digits), as UTC: seconds since the epoch, then the fraction. Zero is no time."""

    def read(values: Sequence[bytes]) -> Sequence[str]:
        found = []
        for value in values:
            seconds = int.from_bytes(value[:4])
            text = f"{_days[seconds // _DAY]} {_seconds[seconds % _DAY]}" if seconds else "0000-00-00 00:00:00"
            found.append(f"{text}.{_fraction(int.from_bytes(value[4:]), digits)}" if digits else text)
        return found

    return read


def read_old_timestamps(values: Sequence[int]) -> Sequence[str]:
    """Read TIMESTAMP as servers wrote it before MySQL 5.6."""
    return [f"{_days[value // _DAY]} {_seconds[value % _DAY]}" if value else "0000-00-00 00:00:00" for value in values]


def times(digits: int) -> Callable[[Sequence[bytes]], Sequence[str]]:
    """Return what reads TIME(digits): hours, minutes and seconds as an offset from the middle, then the fraction.

    Of a negative time the whole number, with its fraction, is negative.
    """
    size = fraction_bytes(digits)
    middle = 1 << 23 + 8 * size

    def read(values: Sequence[bytes]) -> Sequence[str]:
        found = []
        for value in values:
            number = int.from_bytes(value) - middle
            sign, number = ("-", -number) if number < 0 else ("", number)
            text = sign + times_of_day[number >> 8 * size & 0x3FFFFF]
            found.append(f"{text}.{_fraction(number & (1 << 8 * size) - 1, digits)}" if digits else text)
        return found

    return read


def read_old_times(values: Sequence[bytes]) -> Sequence[str]:
    """Read TIME as servers wrote it before MySQL 5.6: the decimal number HHMMSS, signed, in three bytes."""
    found = []
    for value in values:
        number = int.from_bytes(value, "little", signed=True)
        sign, number = ("-", -number) if number < 0 else ("", number)
        found.append(sign + _time(number // 10_000, number // 100 % 100, number % 100))
    return found


def read_old_datetimes(values: Sequence[int]) -> Sequence[str]:
    """Read DATETIME as servers wrote it before MySQL 5.6: the decimal number YYYYMMDDHHMMSS."""
    found = []
    for value in values:
        day, time = divmod(value, 1_000_000)
        text = _date(day // 10_000, day // 100 % 100, day % 100)
        found.append(f"{text} {_time(time // 10_000, time // 100 % 100, time % 100)}")
    return found


def read_years(values: Sequence[int]) -> Sequence[int]:
    """Read YEAR: the years since 1900, and 0 for 0000."""
    return [value and 1900 + value for value in values]
