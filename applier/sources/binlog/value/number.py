"""DECIMAL, FLOAT, MEDIUMINT and BIT. Source: MySQL's ``decimal.cc`` (decimal2bin)."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from applier.mysql.float32 import shortest

_GROUP_DIGITS: Final = 9
_GROUP_BYTES: Final = 4
_BYTES_OF_DIGITS: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
MAX_KNOWN: Final = 4096
_Group: TypeAlias = tuple[int, int, int]
"""Where a group of digits begins, its bits, and what it is less than."""


def decimal_bytes(precision: int, scale: int) -> int:
    """Return how many bytes a DECIMAL(precision, scale) takes. ValueError: the type does not exist."""
    if not (0 <= scale <= precision <= 65 and scale <= 38):
        raise ValueError("not a DECIMAL")
    return _bytes(precision - scale) + _bytes(scale)


def _bytes(digits: int) -> int:
    return digits // _GROUP_DIGITS * _GROUP_BYTES + _BYTES_OF_DIGITS[digits % _GROUP_DIGITS]


def _groups(precision: int, scale: int) -> list[int]:
    """Return the digits of each group: the leading and the last one may be shorter than nine."""
    whole = precision - scale
    return [
        *([whole % _GROUP_DIGITS] if whole % _GROUP_DIGITS else []),
        *[_GROUP_DIGITS] * (whole // _GROUP_DIGITS + scale // _GROUP_DIGITS),
        *([scale % _GROUP_DIGITS] if scale % _GROUP_DIGITS else []),
    ]


def decimals(precision: int, scale: int) -> Callable[[Sequence[bytes]], Sequence[str]]:
    """Return what reads DECIMAL as text, with all the digits of its scale.

    The number is groups of digits, each a binary number. The highest bit is set for what is not negative; of what is, all bits are turned.
    """
    size = decimal_bytes(precision, scale)
    top, ones = 1 << 8 * size - 1, (1 << 8 * size) - 1
    places, shift = [], 8 * size
    for digits in _groups(precision, scale):
        shift -= 8 * _bytes(digits)
        places.append((shift, (1 << 8 * _bytes(digits)) - 1, 10**digits))

    if 0 < scale <= _GROUP_DIGITS and 2 <= len(places) <= 3:
        return _of_two_groups(size, places, scale) if len(places) == 2 else _of_three_groups(size, places, scale)

    def write(value: bytes) -> str:
        number = int.from_bytes(value) ^ top
        sign = ""
        if number & top:
            number, sign = number ^ ones, "-"
        found = 0
        for shift, mask, limit in places:
            group = number >> shift & mask
            if group >= limit:
                raise ValueError("not a DECIMAL")
            found = found * limit + group
        if not scale:
            return f"{sign}{found}"
        text = f"{found:0{scale + 1}d}"
        return f"{sign}{text[:-scale]}.{text[-scale:]}"

    return lambda values: list(map(write, values))


def _of_two_groups(size: int, places: Sequence[_Group], scale: int) -> Callable[[Sequence[bytes]], Sequence[str]]:
    """Read a DECIMAL of up to nine digits before the point and after it: in half the time."""
    top, ones = 1 << 8 * size - 1, (1 << 8 * size) - 1
    (shift, _, limit), (_, mask, small) = places
    form = f"%s%d.%0{scale}d"

    def write(value: bytes) -> str:
        number = int.from_bytes(value) ^ top
        sign = ""
        if number & top:
            number, sign = number ^ ones, "-"
        whole, fraction = number >> shift, number & mask
        if whole >= limit or fraction >= small:
            raise ValueError("not a DECIMAL")
        return form % (sign, whole, fraction)

    return lambda values: list(map(write, values))


def _of_three_groups(size: int, places: Sequence[_Group], scale: int) -> Callable[[Sequence[bytes]], Sequence[str]]:
    """Read a DECIMAL of 10 to 18 digits before the point, as above."""
    top, ones = 1 << 8 * size - 1, (1 << 8 * size) - 1
    (shift, _, limit), (middle, full, great), (_, mask, small) = places
    form = f"%s%d.%0{scale}d"

    def write(value: bytes) -> str:
        number = int.from_bytes(value) ^ top
        sign = ""
        if number & top:
            number, sign = number ^ ones, "-"
        first, second, fraction = number >> shift, number >> middle & full, number & mask
        if first >= limit or second >= great or fraction >= small:
            raise ValueError("not a DECIMAL")
        return form % (sign, first * great + second, fraction)

    return lambda values: list(map(write, values))


def read_floats(values: Sequence[float]) -> Sequence[float]:
    """Return for each 32-bit number the double of its shortest text, as TiCDC writes it: 3.14, and not 3.140000104904175."""
    return [_known[value] for value in values]


class _Shortest(dict[float, float]):
    def __missing__(self, value: float) -> float:
        if len(self) >= MAX_KNOWN:
            self.clear()
        found = shortest(value)
        # 0.0 and -0.0 are the same key of a dict.
        if value:
            self[value] = found
        return found


_known: Final = _Shortest()


def integers(*, is_signed: bool) -> Callable[[Sequence[bytes]], Sequence[int]]:
    """Return what reads integers of a size that a struct does not know, the lowest byte first."""
    return lambda values: [int.from_bytes(value, "little", signed=is_signed) for value in values]


def read_bits(values: Sequence[bytes]) -> Sequence[int]:
    """Read BIT: the highest byte first."""
    return list(map(int.from_bytes, values))
