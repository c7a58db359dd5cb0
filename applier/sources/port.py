"""The port of a source: offsets and records of Kafka, or of a test's lists."""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple, Protocol

from applier.model.listing import Listing
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId


class Record(NamedTuple):
    """One record: ``key`` and ``value`` may be None (a Kafka null)."""

    offset: Offset
    key: bytes | None
    value: bytes | None


class RangeReader(Protocol):
    """Executor side. Frozen and picklable; makes its own consumer (kept per process)."""

    def read(self, range_id: RangeId) -> Iterator[list[Record]]:
        """Yield the records of the range in offset order, in batches. Offsets may have gaps (transactions, compaction).

        SourceError if the range cannot be read whole: ``facts["kind"]`` is "retention" if its beginning is gone, "unreachable" if that may
        pass, and otherwise what stands in the way.
        """
        ...


class Source(Protocol):
    """Driver side."""

    @property
    def reader(self) -> RangeReader:
        """The reading part, for executors."""
        ...

    def listing(self) -> Listing:
        """Fetch the partitions of all topics with their earliest and end offsets, now. SourceError: unknown topic, unreachable."""
        ...

    def topic_ids(self) -> Mapping[str, str]:
        """Kafka's ids of the topics, where the broker tells them (mock clusters do not)."""
        ...

    def record_time_ms(self, stream: Stream, offset: Offset) -> int | None:
        """Kafka's timestamp of the record at or after ``offset`` (ms since the epoch); None if there is none."""
        ...

    def offsets_at_time(self, streams: Collection[Stream], time_ms: int) -> Mapping[Stream, Offset]:
        """The first offset of each stream whose record time is >= ``time_ms``; its end offset if there is none."""
        ...

    def show_offsets(self, offsets: Mapping[Stream, Offset]) -> None:
        """Let lag tools see how far each stream is applied. Information only: returns at once, and a failure is logged."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...
