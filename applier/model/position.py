"""Positions: timestamps of the upstream, and positions in the source.

A ``Ts`` orders what upstream has committed: an unsigned number of 64 bits, never a float.
A ``Stream`` is one (topic, partition), the unit of reading.

What a timestamp means to people (a time of the clock, and how commands spell it), only a source knows: its ``Timeline``. A TSO of TiDB
holds its time; a position in a binlog does not, so the source has to remember it.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, NewType, Protocol

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
    """An offset at which a range may end, and the bytes between the cut before it and this one.

    Without any, there is nothing before it, and a range ends there: at the beginning of the log of another server.
    """

    offset: Offset
    size: int


@dataclass(frozen=True, slots=True)
class PartitionExtent:
    """The offsets that one partition holds: ``earliest`` <= offset < ``end``.

    ``cuts``: the known positions where ranges may end, ascending; the last one may be before ``end``. Offsets between two of them
    count nothing. None: a range may end anywhere, and an offset counts a record.
    """

    earliest: Offset
    end: Offset
    cuts: tuple[Cut, ...] | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """All partitions of the topics with their extents, at one time."""

    extents: dict[Stream, PartitionExtent]


EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)

CLOCK_SKEW_MS: Final = 60_000
"""Margin between the clock of a source's record times and that of the upstream's timestamps."""
AHEAD_MS: Final = 3_600_000
"""Margin for a machine whose clock is behind upstream's."""


class Timeline(Protocol):
    """The upstream's timestamps as times of the clock. Called from any thread."""

    def time_ms(self, ts: Ts) -> int | None:
        """Return when it was, in milliseconds since the epoch; None: not known."""
        ...

    def ts_at_ms(self, time_ms: int) -> Ts | None:
        """Return the least timestamp of a millisecond since the epoch; None: timestamps do not hold their time."""
        ...

    def text(self, ts: Ts) -> str:
        """Spell the timestamp as commands take it: the digits of a TSO, ``FILE:POSITION`` of a binlog."""
        ...

    @property
    def spells_offsets(self) -> bool:
        """Whether offsets are spelled as timestamps are, and name a record alone: a position in a log. Else its stream is named too."""
        ...


def moment_of(time_ms: int) -> datetime:
    """Return a time in milliseconds as an aware datetime in UTC, exact to the millisecond (a float would not be)."""
    return EPOCH + time_ms * MILLISECOND


class _Digits:
    """Timestamps without a known meaning: only digits."""

    def time_ms(self, _ts: Ts) -> int | None:
        """Return None."""
        return None

    def ts_at_ms(self, _time_ms: int) -> None:
        """Return None."""
        return

    def text(self, ts: Ts) -> str:
        """Return the digits."""
        return str(ts)

    @property
    def spells_offsets(self) -> bool:
        """Return False."""
        return False


DIGITS: Final[Timeline] = _Digits()
"""What is known of timestamps before a source is open."""


def holds_time(timeline: Timeline) -> bool:
    """Return whether timestamps hold their time, as a TSO does."""
    return timeline.ts_at_ms(0) is not None


def moment_at(ts: Ts, timeline: Timeline) -> datetime | None:
    """Return when it was; None where there is no timestamp, or its time is not known."""
    time_ms = timeline.time_ms(ts) if ts else None
    return None if time_ms is None else moment_of(time_ms)


def is_ahead(ts: Ts, timeline: Timeline, now_ms: int) -> bool:
    """Return whether a TSO is later than the clock, beyond what clocks differ by: rows up to it would be dropped as applied.

    False for a position in a log: its time is what a session of upstream has set, and decides nothing.
    """
    time_ms = None if timeline.spells_offsets or not ts else timeline.time_ms(ts)
    return time_ms is not None and time_ms > now_ms + AHEAD_MS


def iso_at(ts: Ts, timeline: Timeline) -> str | None:
    """Return when it was as ISO 8601, for programs."""
    moment = moment_at(ts, timeline)
    return None if moment is None else moment.isoformat(timespec="milliseconds")


def holds_all_since(earliest_record_ms: int, start_ts: Ts, timeline: Timeline) -> bool:
    """Whether a stream that begins with a record of this time still holds every event after ``start_ts``."""
    return earliest_record_ms <= (timeline.time_ms(start_ts) or 0) - CLOCK_SKEW_MS
