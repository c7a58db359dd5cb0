"""Rows that cannot be written: whether they stop the applier or are set aside, and what is said of them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from applier.bad_event import BadEvent, EventPlace, key_text, reason_of
from applier.errors import ApplierError, ProtocolError, RowRefused
from applier.events import Value
from applier.planner.binding import Origin, key_names
from applier.planner.compaction import COMMIT_TS, KEY, OFFSET, Version
from applier.position import Offset, Ts

Decode = Callable[[bytes], Sequence[Value]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AsidePolicy:
    """Which rows are set aside instead of stopping the applier: those whose image cannot be read, those that the sink refuses.

    ``careful``: statements carry their rows, so that the writer can find those that the database refuses (``StatementParts``): to set
    them aside, or to name the first.
    """

    unreadable: bool = False
    refused: bool = False
    careful: bool = False

    def takes(self, error: ApplierError) -> bool:
        """Tell whether a row with this error is set aside."""
        if isinstance(error, ProtocolError):
            return self.unreadable
        return self.refused and isinstance(error, RowRefused)


STOP: Final = AsidePolicy()


@dataclass(slots=True)
class Sieve:
    """Takes what cannot be written out of the rows of one bucket. ``decode_key`` reads packed keys."""

    policy: AsidePolicy
    decode_key: Decode
    dropped: set[int] = field(default_factory=set)
    """``id`` of each version that was taken out; versions live as long as their bucket is planned."""
    _bad: list[BadEvent] = field(default_factory=list)

    def refuse(self, origin: Origin, version: Version, error: ApplierError, key: Sequence[str] | None = None) -> None:
        """Set a row aside, or raise its ``error``, which names the record. ``key``: the columns of a key that is not the handle key."""
        if not self.policy.takes(error):
            error.facts["event"] = version[3]
            raise error
        self.dropped.add(id(version))
        self._bad.append(self.described(origin, version, key, reason_of(error)))

    def described(self, origin: Origin, version: Version, key: Sequence[str] | None, error: str = "") -> BadEvent:
        """Say which row it is."""
        value = KEY(version)
        names: Iterable[str] = key_names(origin.shape) if isinstance(value, bytes) else key or ()
        values = self.decode_key(value) if isinstance(value, bytes) else value
        return BadEvent(
            place=EventPlace(origin.stream, Offset(OFFSET(version)), version[3]),
            error=error,
            schema=origin.shape.schema,
            table=origin.shape.table,
            key=key_text(names, values),
            commit_ts=Ts(COMMIT_TS(version)),
        )

    def drain(self) -> list[BadEvent]:
        """Return what was set aside since the last call."""
        bad, self._bad = self._bad, []
        return bad
