"""The final rows of one table in one segment, as columns; and the rows that cannot be written, which stop the applier or are quarantined.

A row costs its key, its image, 29 bytes of numbers and one entry of a dictionary: no object of its own. What is superseded is dropped
while chunks are fed: one key that is updated 100,000 times takes the memory of a few thousand rows.
"""

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from operator import is_not
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from applier.model.chunk import Chunk
from applier.model.errors import ApplierError, ProtocolError, RowRefused
from applier.model.events import Value
from applier.model.position import Offset, Ts
from applier.model.rejected_event import EventPosition, RejectedEvent, error_of_event, key_text, reason_of
from applier.model.segment import supersede
from applier.planner.column_match import Origin, key_names

T = TypeVar("T")

Key: TypeAlias = bytes | tuple[Value, ...]

SUPERSEDED_ROWS: Final = 1_000
"""Superseded rows that a table may hold, or as many as it has final ones: then they are dropped."""


class RowPosition(NamedTuple):
    """One row as errors name it. ``event``: its index in the record."""

    origin: Origin
    commit_ts: int
    offset: int
    event: int
    key: Key

    @property
    def facts(self) -> dict[str, Any]:
        """Its table and position."""
        return self.origin.facts(self.commit_ts, self.offset)


class FinalRows:
    """The latest version of each key of one table. Feed parts of chunks, ``finish``, then read the columns: they run in parallel."""

    __slots__ = ("_keeps_order", "_numbers", "_repeated", "commit_ts", "image", "index", "keys", "kind", "offset", "origin")

    def __init__(self, *, keeps_order: bool = False) -> None:
        """Begin without rows. ``keeps_order``: as in ``RowDecoder``."""
        self._keeps_order = keeps_order
        self._numbers: dict[Key, int] = {}
        self._repeated: set[Key] = set()
        self.keys: list[Key] = []
        self.commit_ts: array[int] = array("Q")
        self.kind: array[int] = array("B")
        self.offset: array[int] = array("q")
        self.index: array[int] = array("q")
        self.origin: array[int] = array("i")
        self.image: list[bytes] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def feed(self, rows: Chunk, keys: Sequence[Key], origin: "array[int]") -> None:
        """Take rows of the table. ``keys`` represent ``rows.key``; ``origin``: numbers that replace ``rows.origin``."""
        numbers = list(range(len(self.image), len(self.image) + len(keys)))
        self.commit_ts.fromlist(rows.commit_ts)
        self.kind.fromlist(rows.kind)
        self.offset.fromlist(rows.offset)
        self.index.fromlist(rows.index)
        self.origin += origin
        self.image += rows.image
        # One dictionary operation per row, in C. A key that is new takes its row's number; for any other its earlier row comes back.
        found = list(map(self._numbers.setdefault, keys, numbers))
        if found == numbers:
            return
        is_repeated = list(map(is_not, found, numbers))
        self._repeated.update(compress(keys, is_repeated))
        repeated = compress(zip(keys, numbers, strict=True), is_repeated)
        supersede(self._numbers, repeated, self._versions())
        if len(self.image) - len(self._numbers) > max(SUPERSEDED_ROWS, len(self._numbers)):
            self._drop_superseded()

    def _versions(self) -> "tuple[array[int], array[int], array[int], array[int]]":
        """Return the columns that order the versions of a key, the first one first."""
        # Of an update that comes as a delete and an upsert both have one position: the delete is first in either order.
        if self._keeps_order:
            return self.commit_ts, self.offset, self.index, self.kind
        return self.commit_ts, self.kind, self.offset, self.index

    def _drop_superseded(self) -> None:
        kept = list(self._numbers.values())
        self._numbers = dict(zip(self._numbers, range(len(kept)), strict=True))
        for name in ("commit_ts", "kind", "offset", "index", "origin"):
            column = getattr(self, name)
            setattr(self, name, array(column.typecode, list(map(column.__getitem__, kept))))
        self.image = list(map(self.image.__getitem__, kept))

    def finish(self) -> None:
        """Keep the final rows alone, in the order in which their keys came first."""
        if len(self.image) > len(self._numbers):
            self._drop_superseded()
        self.keys = list(self._numbers)

    def count_only(self, rows: Sequence[int]) -> int:
        """Count the rows, once finished, that are the only version of their key."""
        if not self._repeated:
            return len(rows)
        return sum(self.keys[row] not in self._repeated for row in rows)

    def row_of(self, key: Key) -> int | None:
        """Return the row of a key, once finished."""
        return self._numbers.get(key)

    def version(self, row: int) -> tuple[int, int, int, int]:
        """Return what orders the versions of a key."""
        first, second, third, last = self._versions()
        return first[row], second[row], third[row], last[row]

    def forget(self, rows: Sequence[int]) -> None:
        """Free the images of rows that are rendered."""
        for row in rows:
            self.image[row] = b""

    def position(self, row: int, origins: Sequence[Origin]) -> RowPosition:
        """Name one row for an error."""
        return RowPosition(origins[self.origin[row]], self.commit_ts[row], self.offset[row], self.index[row], self.keys[row])

    def first(self, rows: Sequence[int]) -> int:
        """Return the earliest of some rows."""
        return min(rows, key=self.commit_ts.__getitem__)


def picked(column: Sequence[T], rows: Sequence[int]) -> Sequence[T]:
    """Return the entries of some rows."""
    # Usually all rows of a table are written alike, and a part of them is one slice.
    if isinstance(rows, range):
        return column[rows.start : rows.stop]
    return list(map(column.__getitem__, rows))


Decode = Callable[[bytes], Sequence[Value]]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinePolicy:
    """Which rows are quarantined instead of stopping the applier: rows whose image cannot be read, rows that the sink refuses.

    ``trace_rows``: statements carry their rows, so that the writer can find the rows that the database refuses (``StatementRows``): to
    quarantine them, or to name the first.
    """

    unreadable: bool = False
    refused: bool = False
    trace_rows: bool = False

    def takes(self, error: ApplierError) -> bool:
        """Return whether a row with this error is quarantined."""
        if isinstance(error, ProtocolError):
            return self.unreadable
        return self.refused and isinstance(error, RowRefused)


STOP: Final = QuarantinePolicy()


@dataclass(slots=True)
class RejectedRows:
    """Removes rows that cannot be written from one bucket. ``decode_key`` reads packed keys."""

    policy: QuarantinePolicy
    decode_key: Decode
    _rejected: list[RejectedEvent] = field(default_factory=list)

    def refuse(self, row: RowPosition, error: ApplierError, key: Sequence[str] | None = None) -> None:
        """Quarantine a row, or raise its ``error``, which names the record. ``key``: the columns of a key that is not the handle key."""
        if not self.policy.takes(error):
            error.facts["event"] = row.event
            raise error
        self._rejected.append(self.described(row, key, reason_of(error)))

    def refuse_described(self, events: Sequence[RejectedEvent], key: Sequence[str], error: ApplierError) -> None:
        """Quarantine the events of one row, or raise its ``error`` at the position of the first one."""
        if not self.policy.takes(error):
            raise error_of_event(error, events[0], key) from error
        self._rejected += [replace(event, error=reason_of(error)) for event in events]

    def described(self, row: RowPosition, key: Sequence[str] | None, error: str = "") -> RejectedEvent:
        """Describe a row by its position and key, without its values."""
        shape = row.origin.shape
        names: Iterable[str] = key_names(shape) if isinstance(row.key, bytes) else key or ()
        values = self.decode_key(row.key) if isinstance(row.key, bytes) else row.key
        return RejectedEvent(
            position=EventPosition(row.origin.stream, Offset(row.offset), row.event),
            error=error,
            schema=shape.schema,
            table=shape.table,
            key=key_text(names, values),
            commit_ts=Ts(row.commit_ts),
        )

    def drain(self) -> list[RejectedEvent]:
        """Return the rows that were quarantined since the last call."""
        rejected, self._rejected = self._rejected, []
        return rejected


@dataclass(slots=True)
class PlannedRows:
    """The final rows of one table while they are rendered. ``key``: the sink's key columns if the table was rekeyed."""

    final: FinalRows
    origins: list[Origin]
    key: tuple[str, ...] | None
    rejected: RejectedRows
    dropped: set[int] = field(default_factory=set)
    """Rows that were removed: they are not written."""

    def origin(self, row: int) -> Origin:
        """Return where a row comes from."""
        return self.origins[self.final.origin[row]]

    def of(self, final: FinalRows) -> "PlannedRows":
        """Return other rows of the same table."""
        return PlannedRows(final, self.origins, self.key, self.rejected)

    def position(self, row: int) -> RowPosition:
        """Name a row for an error."""
        return self.final.position(row, self.origins)

    def refuse(self, row: int, cause: Exception) -> None:
        """Quarantine a row that cannot be rendered, or raise the reason, with its position."""
        position = self.position(row)
        error = with_position(cause, position.facts)
        error.__cause__ = cause
        self.rejected.refuse(position, error, self.key)
        self.dropped.add(row)

    def described(self, rows: Iterable[int]) -> tuple[RejectedEvent, ...]:
        """Describe rows by position and key."""
        return tuple(self.rejected.described(self.position(row), self.key) for row in rows)


def with_position(error: Exception, facts: Mapping[str, Any]) -> ApplierError:
    """Return the error of a row with the row's position. A value that is not of its column's type is a ProtocolError."""
    if isinstance(error, ApplierError):
        return type(error)(error.message, remedy=error.remedy, **{**error.facts, **facts})
    return ProtocolError("a value does not fit its column's type", kind="value_type", **facts)
