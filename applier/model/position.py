"""Positions: timestamps of the upstream, and places in the source.

A ``Ts`` is a TSO of TiDB: physical milliseconds << 18 | logical counter, unsigned 64 bit, never a float.
A ``Stream`` is one (topic, partition), the unit of reading.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, NewType

Ts = NewType("Ts", int)
Offset = NewType("Offset", int)

NO_TS = Ts(0)
MAX_TS = Ts(2**64 - 1)
LOGICAL_BITS = 18

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Stream(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Spell the stream as ``topic/partition``."""
        return f"{self.topic}/{self.partition}"

    @classmethod
    def parse(cls, text: str) -> "Stream":
        """Read ``topic/partition``; ValueError if it is not of that form."""
        topic, slash, partition = text.rpartition("/")
        if not slash or not topic or not partition.isdecimal():
            message = f"a stream is written TOPIC/PARTITION, not {text!r}"
            raise ValueError(message)
        return cls(topic, int(partition))


class Place(NamedTuple):
    """The place of one record."""

    stream: Stream
    offset: Offset

    def __str__(self) -> str:
        """Spell the place as ``topic/partition@offset``."""
        return f"{self.stream}@{self.offset}"

    @property
    def facts(self) -> dict[str, Any]:
        """What names the record in an error, a log line or a JSON object."""
        return {"topic": self.stream.topic, "partition": self.stream.partition, "offset": self.offset}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPosition:
    """The durable position of one stream. ``applied_ts``: up to where its rows are written ahead of W; 0: nothing may be (row mode)."""

    next_offset: Offset
    resolved_ts: Ts
    applied_ts: Ts = NO_TS


def physical_ms(ts: Ts) -> int:
    """Return the wall-clock part of a TSO in milliseconds since the Unix epoch."""
    return ts >> LOGICAL_BITS


def later_by(ts: Ts, milliseconds: int) -> Ts:
    """Return the TSO that is so much later."""
    return Ts(ts + (milliseconds << LOGICAL_BITS))


def ts_at(moment: datetime) -> Ts:
    """Return the smallest TSO in the millisecond of ``moment`` (an aware datetime, not before 1970)."""
    return Ts((moment - _EPOCH) // _MILLISECOND << LOGICAL_BITS)


def datetime_of(ts: Ts) -> datetime:
    """Return the wall-clock part of a TSO as an aware datetime in UTC, exact to the millisecond (a float would not be)."""
    return _EPOCH + physical_ms(ts) * _MILLISECOND
