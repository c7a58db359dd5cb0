"""The readers of a DataFrame and of a streaming query: which ranges there are (on the driver), and their rows (on executors)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from applier.dataframe.changelog import ChangelogRows, Row
from applier.dataframe.extent import (
    begin_offsets,
    check_topics,
    chosen_extents,
    divided,
    limited,
    new_streams,
    offsets_in,
    position_document,
    range_of,
    ranges_between,
)
from applier.dataframe.options import LATEST, ChangelogOptions
from applier.model.errors import ConfigError, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Offset, RecordPosition, Stream
from applier.model.range_report import RangeId
from applier.model.remedy import Remedy
from applier.sources.factory import open_source
from applier.sources.peek import read_whole
from applier.sources.port import RangeReader, Record, Source

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
        """Return the position where the next batch ends. SourceError if a topic is not the same any more."""
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
