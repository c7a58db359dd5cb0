"""Rows that cannot be written: whether they stop the applier or are quarantined, and how they are described."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from applier.model.errors import ApplierError, ProtocolError, RowRefused
from applier.model.events import Value
from applier.model.position import Offset, Ts
from applier.model.rejected_event import EventPlace, RejectedEvent, key_text, reason_of
from applier.planner.column_match import Origin, key_names
from applier.planner.compaction import COMMIT_TS, KEY, OFFSET, Version

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
    dropped: set[int] = field(default_factory=set)
    """``id`` of each version that was taken out; versions live as long as their bucket is planned."""
    _rejected: list[RejectedEvent] = field(default_factory=list)

    def refuse(self, origin: Origin, version: Version, error: ApplierError, key: Sequence[str] | None = None) -> None:
        """Quarantine a row, or raise its ``error``, which names the record. ``key``: the columns of a key that is not the handle key."""
        if not self.policy.takes(error):
            error.facts["event"] = version[3]
            raise error
        # By identity: to hash a version is to hash its image.
        self.dropped.add(id(version))
        self._rejected.append(self.described(origin, version, key, reason_of(error)))

    def described(self, origin: Origin, version: Version, key: Sequence[str] | None, error: str = "") -> RejectedEvent:
        """Describe a row by its place and key, without its values."""
        value = KEY(version)
        names: Iterable[str] = key_names(origin.shape) if isinstance(value, bytes) else key or ()
        values = self.decode_key(value) if isinstance(value, bytes) else value
        return RejectedEvent(
            place=EventPlace(origin.stream, Offset(OFFSET(version)), version[3]),
            error=error,
            schema=origin.shape.schema,
            table=origin.shape.table,
            key=key_text(names, values),
            commit_ts=Ts(COMMIT_TS(version)),
        )

    def drain(self) -> list[RejectedEvent]:
        """Return the rows that were quarantined since the last call."""
        rejected, self._rejected = self._rejected, []
        return rejected
