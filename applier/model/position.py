"""Positions: timestamps of the upstream, and positions in the source.

A ``Ts`` orders what upstream has committed: an unsigned number of 64 bits, never a float. What it means to people, the source says
(``timeline``).
A ``Stream`` is one (topic, partition), the unit of reading.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, NewType

Ts = NewType("Ts", int)
Offset = NewType("Offset", int)

NO_TS = Ts(0)
MAX_TS = Ts(2**64 - 1)


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


class RecordPosition(NamedTuple):
    """The position of one record."""

    stream: Stream
    offset: Offset

    def __str__(self) -> str:
        """Spell the position as ``topic/partition@offset``."""
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


# --- listing ---------------------------------------------------------------------------------------------------------


class Cut(NamedTuple):
    """An offset at which a range may end, and how many bytes lie between the cut before it and this one.

    Without any, nothing lies before it, and a range ends there: at the beginning of the log of another server.
    """

    offset: Offset
    size: int


@dataclass(frozen=True, slots=True)
class PartitionExtent:
    """The offsets that one partition holds: ``earliest`` <= offset < ``end``.

    ``cuts``: where ranges may end, ascending, as far as that is known; the last one may lie before ``end``. Offsets between two of them
    count nothing. None: a range may end anywhere, and an offset counts a record.
    """

    earliest: Offset
    end: Offset
    cuts: tuple[Cut, ...] | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """All partitions of the topics with their extents, at one time."""

    extents: dict[Stream, PartitionExtent]
