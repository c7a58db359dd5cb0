"""The readers of a DataFrame and of a streaming query: which ranges there are (on the driver), and their rows (on executors).

Ranges come from ``start`` and ``end`` (earliest, latest, a time, offsets as JSON), or from the position of a streaming query.
Spark keeps that position in the query's checkpoint: ``{"topics": {TOPIC: {"id": …, "next": {"0": 12}}}}``. ``id`` is that of the topic:
one that was deleted and created again is noticed. ``first`` holds the first offsets of partitions that are new in a batch, so that a
batch that is repeated after a crash has the same rows.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from applier.dataframe.changelog import ChangelogRows, Row
from applier.dataframe.options import EARLIEST, LATEST, ChangelogOptions
from applier.model.errors import ConfigError, Remedy, SourceError
from applier.model.failure import FailureKind
from applier.model.position import EPOCH, MILLISECOND, Listing, Offset, PartitionExtent, RecordPosition, Stream
from applier.model.range_report import RangeId
from applier.sources.factory import open_source
from applier.sources.peek import read_whole
from applier.sources.port import RangeReader, Record, Source

RESTART = Remedy(
    "dataframe.start-new-spark-checkpoint", "Start the query with a new checkpoint directory; what it has written stays as it is"
)


def position_document(
    offsets: Mapping[Stream, Offset], ids: Mapping[str, str], first: Mapping[Stream, Offset] | None = None
) -> dict[str, Any]:
    """Return a position as a JSON document."""
    topics: dict[str, Any] = {}
    for name, values in (("next", offsets), ("first", first or {})):
        for stream, offset in sorted(values.items()):
            topic = topics.setdefault(stream.topic, {"id": ids[stream.topic]} if stream.topic in ids else {})
            topic.setdefault(name, {})[str(stream.partition)] = int(offset)
    return {"topics": topics}


def offsets_in(document: Mapping[str, Any], name: str = "next") -> dict[Stream, Offset]:
    """Return the offsets of a position."""
    topics = document.get("topics", {})
    return {Stream(topic, int(number)): Offset(at) for topic, held in topics.items() for number, at in held.get(name, {}).items()}


def check_topics(document: Mapping[str, Any], ids: Mapping[str, str], extents: Mapping[Stream, PartitionExtent]) -> None:
    """SourceError if a topic was deleted and created again since, or a partition ends before the stored offset."""
    for topic, held in document.get("topics", {}).items():
        known, now = held.get("id"), ids.get(topic)
        if known is not None and now is not None and known != now:
            raise SourceError("the topic was deleted and created again", remedy=RESTART, kind=FailureKind.RECREATED, topic=topic)
    for stream, offset in offsets_in(document).items():
        extent = extents.get(stream)
        if extent is None:
            raise SourceError(
                "a partition that was read does not exist any more", remedy=RESTART, kind=FailureKind.RECREATED, **stream._asdict()
            )
        if extent.end < offset:
            remedy = Remedy("dataframe.start-after-recreated-topic", f"The topic was created again, or its records were deleted. {RESTART}")
            raise SourceError(
                "the partition ends before what was read of it", remedy=remedy, kind=FailureKind.RECREATED, **stream._asdict()
            )


def ranges_between(start: Mapping[str, Any], end: Mapping[str, Any]) -> list[RangeId]:
    """Return the events between two positions: always the same, whenever it is asked."""
    begun = offsets_in(end, "first") | offsets_in(start)
    return [RangeId(stream, begun[stream], offset) for stream, offset in offsets_in(end).items() if begun[stream] < offset]


def limited(begun: Mapping[Stream, Offset], ends: Mapping[Stream, Offset], at_most: int | None) -> dict[Stream, Offset]:
    """Return ends that are together about ``at_most`` offsets away: each stream gets its share of what waits, and one at least."""
    waiting = {stream: max(0, end - begun[stream]) for stream, end in ends.items()}
    total = sum(waiting.values())
    if at_most is None or total <= at_most:
        return {stream: Offset(begun[stream] + left) for stream, left in waiting.items()}
    return {stream: Offset(begun[stream] + min(left, max(1, left * at_most // total))) for stream, left in waiting.items()}


def new_streams(start: Mapping[str, Any], streams: Collection[Stream]) -> set[Stream]:
    """Return the streams that a position does not have."""
    return set(streams) - offsets_in(start).keys()


FORMS: Final = Remedy(
    "dataframe.write-position-in-topic",
    'Write earliest, latest, a time such as 2025-06-01T12:00:00Z, or offsets such as {"changefeed": {"0": 1200, "1": 87}}',
)


def chosen_extents(options: ChangelogOptions, listing: Listing) -> dict[Stream, PartitionExtent]:
    """Return the partitions that the options choose. SourceError: one of them is in no topic."""
    chosen = {s: e for s, e in sorted(listing.extents.items()) if options.partitions is None or s.partition in options.partitions}
    # A partition that was skipped in silence would be rows that no one misses.
    unknown = (options.partitions or frozenset()) - {stream.partition for stream in chosen}
    if unknown or not chosen:
        names, wanted = ", ".join(map(str, sorted(listing.extents))), ", ".join(map(str, sorted(unknown)))
        message = f"the option partition names what no topic has: {wanted}" if unknown else "there is no partition to read"
        raise SourceError(
            message, remedy=Remedy("dataframe.show-partitions", f"The partitions are: {names}"), kind=FailureKind.UNKNOWN_PARTITION
        )
    return chosen


def range_of(options: ChangelogOptions, source: Source) -> list[RangeId]:
    """Return the range of each chosen stream from ``start`` to ``end``. ConfigError, SourceError (retention)."""
    extents = chosen_extents(options, source.listing())
    starts = begin_offsets(options, source, extents)
    ends = _offsets("end", options.end, source, extents)
    return [RangeId(stream, start, max(start, ends.get(stream, extents[stream].end))) for stream, start in starts.items()]


def begin_offsets(options: ChangelogOptions, source: Source, extents: Mapping[Stream, PartitionExtent]) -> dict[Stream, Offset]:
    """Return where each stream begins."""
    given = _offsets("start", options.start, source, extents)
    return {stream: given.get(stream, extent.earliest) for stream, extent in extents.items()}


def divided(ranges: Collection[RangeId], at_most: int) -> Iterator[RangeId]:
    """Yield the ranges in pieces of ``at_most`` offsets; nothing for an empty one."""
    for stream, start, end in ranges:
        for at in range(start, end, at_most):
            yield RangeId(stream, Offset(at), Offset(min(at + at_most, end)))


def _offsets(name: str, text: str, source: Source, extents: Mapping[Stream, PartitionExtent]) -> dict[Stream, Offset]:
    """Return the offsets that an option names; a stream that is not named has its default."""
    if text.lower() == EARLIEST:
        return {stream: extent.earliest for stream, extent in extents.items()}
    if text.lower() == LATEST:
        return {stream: extent.end for stream, extent in extents.items()}
    if text.lstrip().startswith("{"):
        return _given_offsets(name, text, extents)
    return dict(source.times.offsets_at(list(extents), _time_ms(name, text)))


def _time_ms(name: str, text: str) -> int:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"the option {name} cannot be read: {text!r}", remedy=FORMS) from None
    if when.tzinfo is None:
        raise ConfigError(f"the option {name} has no offset from UTC: {text!r}", remedy=FORMS)
    return (when - EPOCH) // MILLISECOND


def _given_offsets(name: str, text: str, extents: Mapping[Stream, PartitionExtent]) -> dict[Stream, Offset]:
    try:
        document = json.loads(text)
        found = {Stream(topic, int(number)): Offset(int(at)) for topic, offsets in document.items() for number, at in offsets.items()}
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(f"the option {name} cannot be read: {text!r}", remedy=FORMS) from None
    for stream, offset in found.items():
        extent = extents.get(stream)
        if extent is None:
            remedy = Remedy("dataframe.show-unknown-partitions", f"The partitions are: {', '.join(map(str, extents))}")
            raise SourceError(
                f"the option {name} names a partition that is not read",
                remedy=remedy,
                kind=FailureKind.UNKNOWN_PARTITION,
                **stream._asdict(),
            )
        if not extent.earliest <= offset <= extent.end:
            raise SourceError(
                f"the option {name} names an offset that the partition does not hold",
                remedy=Remedy("dataframe.show-offset-extent", f"It holds the offsets from {extent.earliest} to {extent.end}"),
                kind=FailureKind.RETENTION,
                **stream._asdict(),
                offset=offset,
            )
    return found


BATCH_ROWS: Final = 5_000
BATCH_BYTES: Final = 8 << 20
"""One Arrow batch is at most so many rows, or about so many bytes of records: a row may have megabytes."""


RETENTION_REMEDY: Final = Remedy(
    "dataframe.make-dataframe-again",
    "Make the DataFrame again: it begins with what is there now. "
    "A streaming query needs a new checkpoint directory, and misses what was deleted",
)

RECREATED_REMEDY: Final = Remedy("dataframe.make-dataframe-of-new-topic", "Make the DataFrame again: it has the records of the new topic")


class RangePartition(InputPartition):
    """One task's range. ``value`` is the ``RangeId``."""

    value: RangeId


@dataclass(frozen=True, slots=True)
class RangeRows:
    """Reads the rows of a range as Arrow batches. Frozen and picklable: it crosses to executors."""

    reader: RangeReader
    rows: ChangelogRows
    schema: StructType

    def of(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the batches of one range; none without a range, as Spark asks where there is nothing to read."""
        if partition.value is None:
            return
        batch: list[Row] = []
        size = 0
        for range_id, records in self._records(partition.value):
            for record in records:
                batch.extend(self.rows.of(record, RecordPosition(range_id.stream, record.offset)))
                size += len(record.value or b"")
                if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
                    yield self._arrow(batch)
                    batch, size = [], 0
        if batch:
            yield self._arrow(batch)

    def _records(self, range_id: RangeId) -> Iterator[tuple[RangeId, list[Record]]]:
        try:
            yield from read_whole(self.reader, [range_id])
        except SourceError as error:
            if error.kind is not FailureKind.RETENTION:
                raise
            message = f"what was there was deleted before it was read: {error.message}"
            raise SourceError(message, remedy=RETENTION_REMEDY, **error.facts) from error

    def _arrow(self, batch: Sequence[Row]) -> Any:
        import pyarrow as pa  # noqa: PLC0415 - an extra: the other commands do without

        schema = to_arrow_schema(self.schema, timezone="UTC")
        columns = [pa.array(values, kind) for values, kind in zip(zip(*batch, strict=True), schema.types, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def topic_ids(source: Source) -> Mapping[str, str]:
    """Return the ids of the topics, where the source has topics."""
    return {} if source.topics is None else source.topics.ids()


@dataclass(frozen=True)
class FixedRange:
    """The records of a DataFrame, by their offsets and the ids of their topics."""

    ranges: tuple[RangeId, ...]
    topic_ids: Mapping[str, str]

    @classmethod
    def of_present(cls, options: ChangelogOptions) -> "FixedRange":
        """Choose from what is there now. SourceError: Kafka does not answer, or an offset is gone."""
        with open_source(options.kafka) as source:
            ranges = tuple(range_of(options, source))
            return cls(ranges, topic_ids(source))

    def check(self, options: ChangelogOptions) -> None:
        """SourceError if a topic was created again since: it has other records at these offsets."""
        with open_source(options.kafka) as source:
            extents = source.listing().extents
            ends = position_document({one.stream: one.end for one in self.ranges}, self.topic_ids)
            try:
                check_topics(ends, topic_ids(source), extents)
            except SourceError as error:
                raise SourceError(error.message, remedy=RECREATED_REMEDY, **error.facts) from error


@dataclass
class BatchReader(DataSourceReader):
    """Reads the records of a DataFrame: each action reads the same ones. ``fixed`` None: the present ones."""

    rows: RangeRows
    options: ChangelogOptions
    fixed: FixedRange | None

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks. SourceError if they would read other records."""
        if self.fixed is not None:
            self.fixed.check(self.options)
        fixed = self.fixed or FixedRange.of_present(self.options)
        return [RangePartition(one) for one in divided(fixed.ranges, self.options.records_per_task)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task."""
        return self.rows.of(partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what has come since the last batch. On the driver it keeps one connection to Kafka; executors get ``rows`` alone."""

    def __init__(self, rows: RangeRows, options: ChangelogOptions) -> None:
        if options.end != LATEST:
            raise ConfigError(
                "a streaming query has no end",
                remedy=Remedy("dataframe.remove-end-of-topic-stream", "Remove the option end, or use spark.read"),
            )
        self._rows, self._options = rows, options
        self._source: Source | None = None
        self._target: Mapping[Stream, Offset] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave the connection on the driver."""
        return self.__dict__ | {"_source": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        """Return the position where a new query begins."""
        source = self._opened()
        extents = chosen_extents(self._options, source.listing())
        return position_document(begin_offsets(self._options, source, extents), topic_ids(source))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - PySpark's name
        """Return how much a batch reads at most."""
        at_most = self._options.records_per_batch
        return ReadAllAvailable() if at_most is None else ReadMaxRows(at_most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - PySpark's name
        """Return the position where the next batch ends. SourceError if a topic is no longer the same."""
        source = self._opened()
        extents = chosen_extents(self._options, source.listing())
        ids = topic_ids(source)
        check_topics(start, ids, extents)
        first = {stream: extents[stream].earliest for stream in new_streams(start, extents)}
        begun = offsets_in(start) | first
        ends = {stream: extent.end for stream, extent in extents.items()}
        if self._target is not None:
            # What is new since the target was taken is the next query's.
            ends = {stream: min(end, max(begun[stream], self._target.get(stream, begun[stream]))) for stream, end in ends.items()}
        wanted = limited(begun, ends, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        if wanted == offsets_in(start):
            return start
        return position_document(wanted, ids, first)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - PySpark's name
        """Note where the query ends: at what is there now."""
        extents = chosen_extents(self._options, self._opened().listing())
        self._target = {stream: extent.end for stream, extent in extents.items()}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a batch. SourceError as ``latestOffset``."""
        # A batch that is repeated after a crash comes here first: its offsets belong to a topic that may be gone.
        source = self._opened()
        extents = chosen_extents(self._options, source.listing())
        check_topics(end, topic_ids(source), extents)
        return [RangePartition(one) for one in divided(ranges_between(start, end), self._options.records_per_task)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task."""
        return self._rows.of(partition)

    def stop(self) -> None:
        """Close the connection."""
        if self._source is not None:
            self._source.close()

    def _opened(self) -> Source:
        if self._source is None:
            self._source = open_source(self._options.kafka)
        return self._source
