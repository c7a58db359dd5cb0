"""Rows that cannot be written: whether they stop the applier or are set aside, and what is said of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from applier.model.errors import ApplierError, ProtocolError, RowRefused
from applier.model.events import Value
from applier.model.position import Offset, Ts
from applier.model.rejected_event import EventPlace, RejectedEvent, key_text, reason_of
from applier.planner.binding import Origin, key_names
from applier.planner.compaction import COMMIT_TS, KEY, OFFSET, Version

Decode = Callable[[bytes], Sequence[Value]]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinePolicy:
    """Which rows are set aside instead of stopping the applier: those whose image cannot be read, those that the sink refuses.

    ``careful``: statements carry their rows, so that the writer can find those that the database refuses (``StatementRows``): to set
    them aside, or to name the first.
    """

    unreadable: bool = False
    refused: bool = False
    trace_rows: bool = False

    def takes(self, error: ApplierError) -> bool:
        """Tell whether a row with this error is set aside."""
        if isinstance(error, ProtocolError):
            return self.unreadable
        return self.refused and isinstance(error, RowRefused)


STOP: Final = QuarantinePolicy()


@dataclass(slots=True)
class RejectedRows:
    """Takes what cannot be written out of the rows of one bucket. ``decode_key`` reads packed keys."""

    policy: QuarantinePolicy
    decode_key: Decode
    dropped: set[int] = field(default_factory=set)
    """``id`` of each version that was taken out; versions live as long as their bucket is planned."""
    _bad: list[RejectedEvent] = field(default_factory=list)

    def refuse(self, origin: Origin, version: Version, error: ApplierError, key: Sequence[str] | None = None) -> None:
        """Set a row aside, or raise its ``error``, which names the record. ``key``: the columns of a key that is not the handle key."""
        if not self.policy.takes(error):
            error.facts["event"] = version[3]
            raise error
        self.dropped.add(id(version))
        self._bad.append(self.described(origin, version, key, reason_of(error)))

    def described(self, origin: Origin, version: Version, key: Sequence[str] | None, error: str = "") -> RejectedEvent:
        """Say which row it is."""
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
        """Return what was set aside since the last call."""
        bad, self._bad = self._bad, []
        return bad
