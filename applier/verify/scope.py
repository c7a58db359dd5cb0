"""Which rows of a table are meant: a range of keys, and within it those whose digest of the key has certain bits.

Ranges follow the order of an index, so they cost what their rows cost. The digest divides any rows in the same way on both sides,
whatever their collations.
"""

from dataclasses import dataclass, replace
from typing import Final

Value = bytes | None
Key = tuple[bytes, ...]

DIGEST_BITS: Final = 32
STEP_BITS: Final = 8
"""Rows are divided into 256 parts at once."""


@dataclass(frozen=True, slots=True)
class Checksum:
    """Number of rows, and the sum of their digests: equal for equal rows in any order."""

    rows: int
    total: int

    def __add__(self, other: "Checksum") -> "Checksum":
        return Checksum(self.rows + other.rows, self.total + other.total)


NOTHING: Final = Checksum(0, 0)


@dataclass(frozen=True, slots=True)
class Scope:
    """Rows with ``low`` < key <= ``high`` (None: no limit), and with one of ``parts`` as the first ``bits`` of their key's digest."""

    low: Key | None = None
    high: Key | None = None
    bits: int = 0
    parts: tuple[int, ...] = ()

    def part(self, bits: int, *parts: int) -> "Scope":
        """Return the rows of some parts."""
        return replace(self, bits=bits, parts=parts)
