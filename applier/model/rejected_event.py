"""Rejected events: events that cannot be read or written, and events that the operator skips. Small enough to travel in a report.

The record itself stays in Kafka until the transaction that stores it in the quarantine reads it once more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NamedTuple

import msgspec

from applier.model.errors import ApplierError
from applier.model.events import Value
from applier.model.position import NO_TS, Offset, RecordPosition, Stream, Ts

WHOLE_RECORD: Final = -1
"""Represents the event's index where a record cannot be divided into events."""

MAX_QUARANTINED: Final = 100
"""The most per range and per transaction, in addition to the stored ones. More have a systematic cause."""

STORED_AT_ONCE: Final = 1_000
"""How many a transaction without rows stores: an operator may skip an upstream transaction of any size."""

# The facts that name a position: an entry of the quarantine has columns for them, so its error does not repeat them.
_OF_THE_POSITION: Final = frozenset({"topic", "partition", "offset", "event", "schema", "table", "commit_ts", "min_ts", "max_ts"})


class KeptRecord(msgspec.Struct, array_like=True, frozen=True):
    """A record as it came from Kafka."""

    key: bytes | None
    value: bytes | None


class QuarantineState(StrEnum):
    """What became of a rejected event."""

    HELD = "held"
    """It waits for the operator's decision."""
    SKIPPED = "skipped"
    """It was skipped by a skip rule of the operator."""
    RETRIED = "retried"
    DROPPED = "dropped"


class EventPosition(NamedTuple):
    """One event of one record; ``event`` counts from 0, ``WHOLE_RECORD`` represents all of it."""

    stream: Stream
    offset: Offset
    event: int

    def __str__(self) -> str:
        """Spell the position as ``topic/partition@offset`` or ``topic/partition@offset#event``."""
        whole = f"{self.stream}@{self.offset}"
        return whole if self.event == WHOLE_RECORD else f"{whole}#{self.event}"

    @property
    def options(self) -> str:
        """The options of a command that name the position."""
        whole = f"--stream {self.stream} --offset {self.offset}"
        return whole if self.event == WHOLE_RECORD else f"{whole} --event {self.event}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedEvent:
    """An event that is quarantined and not applied. ``commit_ts``, table and ``key`` are empty where they cannot be read."""

    position: EventPosition
    error: str
    state: QuarantineState = QuarantineState.HELD
    schema: str = ""
    table: str = ""
    key: str = ""
    commit_ts: Ts = NO_TS

    @property
    def facts(self) -> dict[str, Any]:
        """Its state and position, for a log line."""
        return {"state": self.state.value} | self.where

    @property
    def where(self) -> dict[str, Any]:
        """Its position, for an error: never values of the row."""
        stream, offset, event = self.position
        facts = RecordPosition(stream, offset).facts
        facts |= {} if event == WHOLE_RECORD else {"event": event}
        facts |= {"table": f"{self.schema}.{self.table}"} if self.schema else {}
        return facts | ({"commit_ts": self.commit_ts} if self.commit_ts else {})


def reason_of(error: ApplierError) -> str:
    """Return why an event was rejected, in one line: the message, and the facts other than its position."""
    facts = ", ".join(f"{name}={value}" for name, value in _facts_without_position(error).items())
    return error.message + (f" [{facts}]" if facts else "")


def error_of_event(error: ApplierError, event: RejectedEvent, key_columns: Iterable[str]) -> ApplierError:
    """Return the error of a statement as the error of one event in it."""
    facts = event.where | {"key_columns": ", ".join(key_columns)} | _facts_without_position(error)
    return type(error)(error.message, remedy=error.remedy, **facts)


def _facts_without_position(error: ApplierError) -> dict[str, Any]:
    return {name: value for name, value in error.facts.items() if name not in _OF_THE_POSITION}


def key_text(names: Iterable[str], values: Iterable[Value]) -> str:
    """Write a handle key for people: ``id=7, code='x'``."""
    return ", ".join(
        f"{name}={f'0x{value.hex()}' if isinstance(value, bytes) else repr(value)}" for name, value in zip(names, values, strict=True)
    )
