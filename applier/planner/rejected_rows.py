"""Rows that cannot be written: whether they stop the applier or are quarantined, and how they are described."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from applier.model.errors import ApplierError, ProtocolError, RowRefused
from applier.model.events import Value
from applier.model.position import Offset, Ts
from applier.model.rejected_event import EventPlace, RejectedEvent, error_of_event, key_text, reason_of
from applier.planner.column_match import Origin, key_names
from applier.planner.final_rows import FinalRows, RowPlace

Decode = Callable[[bytes], Sequence[Value]]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinePolicy:
    """Which rows are quarantined instead of stopping the applier: those whose image cannot be read, those that the sink refuses.

    ``trace_rows``: statements carry their rows, so that the writer can find those that the database refuses (``StatementRows``): to
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
    """Takes rows that cannot be written out of one bucket. ``decode_key`` reads packed keys."""

    policy: QuarantinePolicy
    decode_key: Decode
    _rejected: list[RejectedEvent] = field(default_factory=list)

    def refuse(self, row: RowPlace, error: ApplierError, key: Sequence[str] | None = None) -> None:
        """Quarantine a row, or raise its ``error``, which names the record. ``key``: the columns of a key that is not the handle key."""
        if not self.policy.takes(error):
            error.facts["event"] = row.event
            raise error
        self._rejected.append(self.described(row, key, reason_of(error)))

    def refuse_described(self, events: Sequence[RejectedEvent], key: Sequence[str], error: ApplierError) -> None:
        """Quarantine the events of one row, or raise its ``error`` at the place of the first one."""
        if not self.policy.takes(error):
            raise error_of_event(error, events[0], key) from error
        self._rejected += [replace(event, error=reason_of(error)) for event in events]

    def described(self, row: RowPlace, key: Sequence[str] | None, error: str = "") -> RejectedEvent:
        """Describe a row by its place and key, without its values."""
        shape = row.origin.shape
        names: Iterable[str] = key_names(shape) if isinstance(row.key, bytes) else key or ()
        values = self.decode_key(row.key) if isinstance(row.key, bytes) else row.key
        return RejectedEvent(
            place=EventPlace(row.origin.stream, Offset(row.offset), row.event),
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
    """Rows that were taken out: they are not written."""

    def origin(self, row: int) -> Origin:
        """Return where a row comes from."""
        return self.origins[self.final.origin[row]]

    def of(self, final: FinalRows) -> "PlannedRows":
        """Return other rows of the same table."""
        return PlannedRows(final, self.origins, self.key, self.rejected)

    def place(self, row: int) -> RowPlace:
        """Name a row for an error."""
        return self.final.place(row, self.origins)

    def refuse(self, row: int, cause: Exception) -> None:
        """Quarantine a row that cannot be rendered, or raise why, with its place."""
        place = self.place(row)
        error = with_place(cause, place.facts)
        error.__cause__ = cause
        self.rejected.refuse(place, error, self.key)
        self.dropped.add(row)

    def described(self, rows: Iterable[int]) -> tuple[RejectedEvent, ...]:
        """Describe rows by place and key."""
        return tuple(self.rejected.described(self.place(row), self.key) for row in rows)


def with_place(error: Exception, facts: Mapping[str, Any]) -> ApplierError:
    """Return the error of a row with the row's place. A value that is not of its column's type is a ProtocolError."""
    if isinstance(error, ApplierError):
        return type(error)(error.message, remedy=error.remedy, **{**error.facts, **facts})
    return ProtocolError("a value does not fit its column's type", kind="value_type", **facts)
