"""Reads one offset range on an executor: its own consumer, manual assignment, no group, no rebalance.

Each worker process keeps one consumer. A range that begins where the last one ended continues with what is already fetched.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from applier.model.errors import SourceError
from applier.model.position import Offset, Place, Stream
from applier.model.range_report import RangeId
from applier.sources.kafka import error_code
from applier.sources.kafka.connection_error import PATIENCE_S, ConnectionErrors
from applier.sources.kafka.error_meaning import failed
from applier.sources.kafka.refused_property import refusals_as_config_errors
from applier.sources.kafka.settings import KafkaSettings, unreachable
from applier.sources.port import Record

BATCH = 1000
POLL_S = 1.0

TRANSIENT: Final = frozenset(
    {
        error_code.ALL_BROKERS_DOWN,
        error_code.TRANSPORT,
        error_code.TIMED_OUT,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
    }
)
"""Errors after which librdkafka itself retries: reading fails only when nothing has come for unreachable_after_s."""


@dataclass(slots=True)
class _Assigned:
    """The consumer of this process and its position (``stream`` is None where the position is not known)."""

    consumer: Consumer
    errors: ConnectionErrors
    stream: Stream | None = None
    position: int = 0

    def seek(self, range_id: RangeId) -> None:
        if (self.stream, self.position) != (range_id.stream, range_id.start):
            self.consumer.assign([_place(range_id.stream, range_id.start)])
            self.position = range_id.start
        self.stream = None

    def stay(self, range_id: RangeId) -> None:
        """Keep fetching after a range that was read whole. Not at the end of the stream: it would poll the broker for nothing."""
        _, end = self.consumer.get_watermark_offsets(_place(range_id.stream, range_id.end), cached=True)
        if end > range_id.end:
            self.stream = range_id.stream
        else:
            self.consumer.unassign()


def _place(stream: Stream, offset: int) -> TopicPartition:
    return TopicPartition(stream.topic, stream.partition, offset)


def _connected(settings: KafkaSettings) -> _Assigned:
    errors = ConnectionErrors(settings)
    return _Assigned(Consumer(settings.consumer() | {"error_cb": errors.add}), errors)


_consumers: Final[dict[KafkaSettings, _Assigned]] = {}


@dataclass(frozen=True, slots=True)
class KafkaRangeReader:
    """Implements ``RangeReader``."""

    settings: KafkaSettings = field(repr=False)

    def read(self, ranges: Sequence[RangeId]) -> Iterator[tuple[RangeId, list[Record] | SourceError]]:
        """Yield the ranges' records, each range's in offset order. ConfigError if a property is refused."""
        assigned = _consumers.get(self.settings)
        if assigned is None:
            with refusals_as_config_errors(self.settings):
                assigned = _consumers[self.settings] = _connected(self.settings)
        for range_id in ranges:
            # seek() forgets the position, stay() sets it: a range that is abandoned in between is not continued by the next one.
            assigned.seek(range_id)
            try:
                for records in self._batches(assigned, range_id):
                    yield range_id, records
            except SourceError as error:
                yield range_id, error
            else:
                assigned.stay(range_id)

    def _batches(self, assigned: _Assigned, range_id: RangeId) -> Iterator[list[Record]]:
        last_progress = time.monotonic()
        while (position := assigned.position) < range_id.end:
            records = self._take(assigned, assigned.consumer.consume(min(BATCH, range_id.end - position), POLL_S), range_id)
            if records:
                yield records
            if assigned.position > position:
                last_progress = time.monotonic()
                assigned.errors.clear()
            else:
                self._judge_silence(assigned, range_id, time.monotonic() - last_progress)

    def _judge_silence(self, assigned: _Assigned, range_id: RangeId, silent_s: float) -> None:
        if silent_s >= PATIENCE_S:
            assigned.errors.check()
        if silent_s >= self.settings.unreachable_after_s:
            what = f"range {range_id.stream}@{assigned.position}..{range_id.end}"
            raise unreachable(self.settings, what, assigned.errors.latest or "time-out")

    def _take(self, assigned: _Assigned, messages: list[Message], range_id: RangeId) -> list[Record]:
        records = []
        for message in messages:
            error = message.error()
            if error is not None:
                if error.code() == error_code.PARTITION_END:
                    # The only sign of a range whose last offsets hold no records (markers of transactions, compaction).
                    assigned.position = max(assigned.position, message.offset() or 0)
                    continue
                if error.code() in TRANSIENT:
                    continue
                raise self._failed(error, range_id, assigned.position)
            offset: int = message.offset()  # type: ignore[assignment]  # a message without an error has one
            assigned.position = offset + 1
            # The consumer fetches ahead: what lies after the end belongs to another range.
            if offset < range_id.end:
                records.append(Record(Offset(offset), message.key(), message.value()))
        return records

    def _failed(self, error: KafkaError, range_id: RangeId, position: int) -> SourceError:
        place = Place(range_id.stream, Offset(position)).facts
        if error.code() in {error_code.NO_OFFSET, KafkaError.OFFSET_OUT_OF_RANGE}:
            return SourceError(
                "Kafka deleted records before the applier read them",
                remedy="Give the topic a longer retention, and create the replica again from a dump (README)",
                kind="retention",
                **place,
            )
        return failed(self.settings, f"range {range_id.stream}@{position}..{range_id.end}", error, **place)
