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


def _with_fraction(digits: int) -> tuple[int, int, str, int | None]:
    """Return the bits of a fraction, what it is less than, how it is written after a text, and where that ends.

    An odd number of digits has a zero after it.
    """
    size = fraction_bytes(digits)
    return 8 * size, 10 ** (2 * size), f"%s %s.%0{2 * size}d", -1 if digits % 2 else None


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
    bits, limit, form, end = _with_fraction(digits)
    middle = 1 << 39 + bits

    def read_whole(values: Sequence[bytes]) -> Sequence[str]:
        numbers = [int.from_bytes(value) - middle for value in values]
        return [f"{dates[number >> 17]} {times_of_day[number & 0x1FFFF]}" for number in numbers]

    def read(values: Sequence[bytes]) -> Sequence[str]:
        found = []
        for value in values:
            number = int.from_bytes(value) - middle
            fraction, number = number & (1 << bits) - 1, number >> bits
            if fraction >= limit:
                raise ValueError("not a fraction of a second")
            found.append((form % (dates[number >> 17], times_of_day[number & 0x1FFFF], fraction))[:end])
        return found

    return read if digits else read_whole


def timestamps(digits: int) -> Callable[[Sequence[bytes]], Sequence[str]]:
    """Return what reads TIMESTAMP(digits), as UTC: seconds since the epoch, then the fraction. Zero is not a time."""
    bits, limit, form, end = _with_fraction(digits)

    def read(values: Sequence[bytes]) -> Sequence[str]:
        found = []
        for value in values:
            number = int.from_bytes(value)
            fraction, seconds = number & (1 << bits) - 1, number >> bits
            if fraction >= limit:
                raise ValueError("not a fraction of a second")
            day = _days[seconds // _DAY] if number else "0000-00-00"
            found.append((form % (day, _seconds[seconds % _DAY], fraction))[:end])
        return found

    return read if digits else _read_seconds


def _read_seconds(values: Sequence[bytes]) -> Sequence[str]:
    return read_old_timestamps(list(map(int.from_bytes, values)))


def read_old_timestamps(values: Sequence[int]) -> Sequence[str]:
    """Read TIMESTAMP as servers wrote it before MySQL 5.6."""
    return [f"{_days[value // _DAY]} {_seconds[value % _DAY]}" if value else "0000-00-00 00:00:00" for value in values]


def times(digits: int) -> Callable[[Sequence[bytes]], Sequence[str]]:
    """Return what reads TIME(digits): hours, minutes and seconds as an offset from the middle, then the fraction.

    Of a negative time the whole number, with its fraction, is negative.
    """
    bits, limit, _, end = _with_fraction(digits)
    middle = 1 << 23 + bits

    def read(values: Sequence[bytes]) -> Sequence[str]:
        found = []
        for value in values:
            number = int.from_bytes(value) - middle
            sign, number = ("-", -number) if number < 0 else ("", number)
            text = sign + times_of_day[number >> bits & 0x3FFFFF]
            fraction = number & (1 << bits) - 1
            if fraction >= limit:
                raise ValueError("not a fraction of a second")
            found.append(f"{text}.{fraction:0{bits // 4}d}"[:end] if digits else text)
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
