"""FLOAT, which has 32 bits: its numbers and their shortest texts. VECTOR is a list of them. Pure."""

from collections.abc import Sequence
from struct import Struct
from typing import Final

_FLOAT: Final = Struct("<f")
_LEAST_NORMAL: Final = 2.0**-126


def single_precision(number: float) -> float:
    """Return the nearest 32-bit number. OverflowError: there is none."""
    return float(_FLOAT.unpack(_FLOAT.pack(number))[0])


def shortest(number: float) -> float:
    """Return the double of the shortest text of a 32-bit number, as TiCDC writes it: 3.14, and not 3.140000104904175."""
    # Fewer than six digits change the double only where a number has fewer bits.
    for digits in range(6 if abs(number) >= _LEAST_NORMAL else 1, 9):
        found = float(f"{number:.{digits}g}")
        try:
            if single_precision(found) == number:
                return found
        except OverflowError:  # rounded up, beyond the greatest one
            continue
    return float(f"{number:.9g}")


def read_vectors(values: Sequence[bytes]) -> Sequence[str]:
    """Read VECTOR as text: 32-bit numbers, the lowest byte first."""
    return ["[" + ",".join(repr(shortest(number)).removesuffix(".0") for (number,) in _FLOAT.iter_unpack(value)) + "]" for value in values]
