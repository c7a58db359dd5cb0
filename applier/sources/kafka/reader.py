"""Reads offset ranges on an executor: one consumer for all ranges of a call, manual assignment, no group, no rebalance.

Each process keeps its consumer with its connections. Nothing stays assigned when a call ends: what a partition holds beyond the end of its
range may be asked of another process next, and a consumer at the end of its partitions polls the brokers for nothing.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import Consumer, TopicPartition

from applier.model.errors import SourceError
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.sources.kafka.connection_error import PATIENCE_S, ConnectionErrors
from applier.sources.kafka.reading import Found, Reading
from applier.sources.kafka.refused_property import refusals_as_config_errors
from applier.sources.kafka.settings import KafkaSettings
from applier.sources.peek import single_record
from applier.sources.port import Record

LEAST_MESSAGES: Final = 100
MOST_MESSAGES: Final = 5_000
MOST_BYTES: Final = 1 << 20
"""What is taken from the client at once, at most: enough that the cost per call vanishes."""

FILL_S: Final = 0.005
"""How long the client may take to gather as many messages as are wanted. More than one call for a few messages each costs more."""

POLL_S: Final = 1.0

STREAMS_AT_ONCE: Final = 64
"""librdkafka looks at all of its partitions whenever one of them begins or ends: the cost of many grows with the square of their number."""


@dataclass(frozen=True, slots=True)
class _Link:
    """A consumer and the errors that its connections report."""

    consumer: Consumer
    errors: ConnectionErrors
    _ended: list[TopicPartition] = field(default_factory=list)
    _paused: list[TopicPartition] = field(default_factory=list)

    def begin(self, reading: Reading) -> None:
        """Begin to fetch. The client drops what it has fetched for earlier assignments."""
        self.consumer.assign(reading.open(STREAMS_AT_ONCE))

    def follow(self, reading: Reading) -> None:
        """Let the client fetch what is open and nothing else."""
        ended = reading.ended()
        # Paused before it is taken off: what was fetched beyond the end would stay in memory (measured: 150 MB after 200 partitions).
        if paused := [place for place in ended if self._holds_more(place)]:
            self.consumer.pause(paused)
        self._paused.extend(paused)
        self._ended.extend(ended)
        if moved := reading.moved():
            self.consumer.incremental_unassign(moved)
            self.consumer.incremental_assign(moved)
        if opened := reading.open(STREAMS_AT_ONCE):
            self.consumer.incremental_unassign(self._ended)
            self._ended.clear()
            self.consumer.incremental_assign(opened)

    def end(self) -> None:
        """Take everything off, also where the caller stops in the middle: no call continues what another one has begun."""
        self.consumer.unassign()
        self._ended.clear()
        if self._paused:
            self.consumer.resume(self._paused)  # a pause would outlive the assignment
            self._paused.clear()

    def _holds_more(self, place: TopicPartition) -> bool:
        """Whether there was something beyond ``place`` when the client fetched last. Most streams of a live feed are at their end."""
        _, end = self.consumer.get_watermark_offsets(place, cached=True)
        return bool(end > place.offset)


def _connected(settings: KafkaSettings) -> _Link:
    errors = ConnectionErrors(settings)
    with refusals_as_config_errors(settings):
        return _Link(Consumer(settings.consumer() | {"error_cb": errors.add}), errors)


_idle: Final[dict[KafkaSettings, _Link]] = {}
"""The consumers of this process that nobody reads with."""


@dataclass(frozen=True, slots=True)
class KafkaRangeReader:
    """Implements ``RangeReader``."""

    settings: KafkaSettings = field(repr=False)

    def read(self, ranges: Sequence[RangeId]) -> Iterator[Found]:
        """Yield the ranges' records, each range's in offset order. ConfigError if a property is refused."""
        reading = Reading(self.settings, ranges)
        if not reading:
            return
        # Taken out while it is used: a caller that has not finished an earlier call gets another one.
        link = _idle.pop(self.settings, None) or _connected(self.settings)
        try:
            link.begin(reading)
            yield from self._read(link, reading)
        finally:
            link.end()
            _idle[self.settings] = link

    def records_at(self, stream: Stream, offset: Offset) -> Iterator[tuple[int, Record]]:
        """Yield the record, if there is one."""
        return single_record(self, stream, offset)

    def _read(self, link: _Link, reading: Reading) -> Iterator[Found]:
        consumer, bytes_each = link.consumer, 1
        while reading:
            # No more than a stream still needs: what was fetched beyond its end is dropped unseen once it is paused.
            wanted = min(MOST_MESSAGES, MOST_BYTES // bytes_each, reading.left, max(LEAST_MESSAGES, reading.left_each))
            began = time.monotonic()
            messages = consumer.consume(max(1, wanted), FILL_S) or consumer.consume(1, POLL_S)
            # What the caller does between two batches is no silence of the brokers.
            reading.wait(time.monotonic() - began)
            if messages:
                bytes_each = 1 + sum(map(len, messages)) // len(messages)
                yield from reading.take(messages)
            yield from _judge_silence(reading, link.errors)
            if reading:
                link.follow(reading)


def _judge_silence(reading: Reading, errors: ConnectionErrors) -> Iterator[Found]:
    yield from reading.fail_silent(errors.latest)
    if not reading.silent_s:
        errors.clear()
    elif reading.silent_s >= PATIENCE_S:
        try:
            errors.check()
        except SourceError as error:
            yield from reading.fail_all(error)
