"""The port of one side: a session that reads and changes nothing. One thread uses it at a time; it connects when it is first used."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, Protocol

from applier.model.errors import FatalSinkError
from applier.model.events import TableName
from applier.model.position import Ts
from applier.sinks.table_pair import Names, ServerKind, SideTable, TablePair

# --- scope -----------------------------------------------------------------------------------------------------------
# Which rows of a table are meant: a range of keys, and within it those whose digest of the key has certain bits.
#
# Ranges follow the order of an index, so they cost what their rows cost. The digest divides any rows in the same way on both sides,
# whatever their collations.

Value = bytes | None
Key = tuple[bytes, ...]

DIGEST_BITS: Final = 32


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


# --- values ----------------------------------------------------------------------------------------------------------
# Values are bytes, in the forms of ``table_pair``; None is NULL.

WIDE_MARK: Final = "x"
"""Between the digits of a number and the position of its point. Not e: servers print that."""
SUMMED_DIGITS: Final = 15
"""Hexadecimal digits of a row's digest that are summed, 60 bits: with 64, TiDB and MySQL would have to agree about signs."""


def read_text(value: bytes) -> str:
    """Return the text; bytes that are not UTF-8 become lone surrogates."""
    return value.decode("utf-8", "surrogateescape")


def read_float(value: bytes) -> float:
    """Return the number that a text of the form DOUBLE represents: as a server prints it, or digits and the position of the point."""
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


# --- reader ----------------------------------------------------------------------------------------------------------


class TableChanged(FatalSinkError):
    """A DDL has changed or removed the table since the catalogue was read."""


class Reader(Protocol):
    """Reads one side. Between ``begin`` and ``end`` it sees one state of the database. Errors of the database come out as ours."""

    @property
    def kind(self) -> ServerKind:
        """Which database it is."""
        ...

    def names(self, *, without: Collection[str]) -> Names:
        """Return the names of all tables and views, except those in the schemas ``without`` (casefolded) and in system schemas."""
        ...

    def describe(self, tables: Collection[TableName]) -> Sequence[SideTable]:
        """Describe tables that exist."""
        ...

    def begin(self, snapshot_ts: Ts | None = None) -> None:
        """Begin to see one state: upstream's TiDB as it was at ``snapshot_ts``, every other database as it is now."""
        ...

    def end(self) -> None:
        """Release the snapshot, and the locks on the definitions of tables."""
        ...

    def checkpoint_ts(self) -> Ts | None:
        """Return the checkpoint of the replica in the state that is seen; None if this side has no bookkeeping, or no replica."""
        ...

    def checksum(self, pair: TablePair, scope: Scope) -> Checksum:
        """Return the checksum of some rows."""
        ...

    def checksums(self, pair: TablePair, scope: Scope, bits: int) -> Mapping[int, Checksum]:
        """Return the checksum of each part that has rows, divided by the first ``bits`` of the digest of the key."""
        ...

    def digests(self, pair: TablePair, scope: Scope) -> Sequence[tuple[Key, str]]:
        """Return key and digest of each row."""
        ...

    def rows(self, pair: TablePair, keys: Sequence[Key]) -> Sequence[tuple[Value, ...]]:
        """Return the values of all columns of the rows with these keys; more rows may come, where the collation treats keys as equal."""
        ...

    def bound(self, pair: TablePair, low: Key | None, rows: int) -> Key | None:
        """Return the greatest of the next so many keys after ``low``; None if fewer are left."""
        ...

    def is_above(self, pair: TablePair, key: Key, low: Key) -> bool:
        """Return whether this side orders ``key`` after ``low``."""
        ...

    def clock_ms(self) -> int:
        """Return this side's clock: milliseconds since 1970."""
        ...

    def close(self) -> None:
        """Close the session."""
        ...
