"""Reads offset ranges on an executor: one consumer for all ranges of a call, manual assignment, no group, no rebalance.

Each process keeps its consumer with its connections. Nothing stays assigned when a call ends: what a partition holds beyond the end of its
range may be asked of another process next, and a consumer at the end of its partitions would poll the brokers without need.

One call of a reader: which ranges are open, and how far each stream was read. Takes messages, gives records; does no I/O.

What the client has fetched beyond the end of a range is dropped here, and its stream is unassigned. A stream with several ranges goes
through them in the order of their offsets: where two are adjacent, it just reads on.
"""

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice
from typing import Final, TypeAlias

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from applier.model.errors import Remedy, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Listing, Offset, RecordPosition, Stream
from applier.model.range_report import RangeId
from applier.sources.kafka import error_code
from applier.sources.kafka.error_meaning import PATIENCE_S, ConnectionErrors, failed, refusals_as_config_errors
from applier.sources.kafka.extent_query import ExtentQuery
from applier.sources.kafka.settings import KafkaSettings, unreachable
from applier.sources.peek import single_record
from applier.sources.port import Record

Found: TypeAlias = tuple[RangeId, list[Record] | SourceError]

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
"""Errors after which librdkafka itself retries: a range fails only if none of its records came for unreachable_after_s."""

_as_record: Final = partial(tuple.__new__, Record)  # a third of the cost of a call of the class, once per message


@dataclass(slots=True)
class _OpenStream:
    """The ranges of a stream that are not read whole, ascending, and the offset that is read next."""

    stream: Stream
    ranges: deque[RangeId]
    position: int
    heard_s: float = 0.0
    """When its last record came, by ``Reading``'s clock."""


class Reading:
    """The ranges of one call. Its clock counts the time that was spent waiting for the brokers, and nothing else."""

    def __init__(self, settings: KafkaSettings, ranges: Sequence[RangeId]) -> None:
        self._settings = settings
        self._waiting: dict[tuple[str, int], _OpenStream] = {}
        self._open: dict[tuple[str, int], _OpenStream] = {}
        self._ended: list[TopicPartition] = []
        self._moved: set[Stream] = set()
        self._waited_s = self._heard_s = 0.0
        self._patience_s = settings.unreachable_after_s
        self._left = 0
        for range_id in sorted(ranges):
            self._add(range_id)

    def _add(self, range_id: RangeId) -> None:
        if range_id.start < range_id.end:
            stream = range_id.stream
            self._waiting.setdefault(stream, _OpenStream(stream, deque(), range_id.start)).ranges.append(range_id)

    def __bool__(self) -> bool:
        """Whether a range is left."""
        return bool(self._open or self._waiting)

    @property
    def left(self) -> int:
        """How many offsets of open streams are not read yet. Fewer messages than that may come: offsets have gaps."""
        return self._left

    @property
    def left_each(self) -> int:
        """The same on average of the open streams."""
        return self._left // max(1, len(self._open))

    def open(self, at_most: int) -> list[TopicPartition]:
        """Open streams up to ``at_most`` at once, some at a time; return them, each with its position."""
        if not self._waiting or len(self._open) > at_most // 2:
            return []
        chosen = list(islice(self._waiting.values(), at_most - len(self._open)))
        for one in chosen:
            del self._waiting[one.stream]
            self._open[one.stream] = one
            self._left += sum(range_id.end - range_id.start for range_id in one.ranges)
            one.heard_s = self._waited_s
        return [_place(one.stream, one.position) for one in chosen]

    def ended(self) -> list[TopicPartition]:
        """Return the streams that have ended since the last call, each with the end of its last range."""
        ended, self._ended = self._ended, []
        return ended

    def moved(self) -> list[TopicPartition]:
        """Return the streams whose next position has changed since the last call, each with it."""
        moved = [_place(stream, self._open[stream].position) for stream in self._moved if stream in self._open]
        self._moved.clear()
        return moved

    # --- messages --------------------------------------------------------------------------------------------------

    def take(self, messages: Sequence[Message]) -> Iterator[Found]:
        """Yield the records that belong to the ranges, and the errors of ranges that have failed."""
        if not any(map(Message.error, messages)):
            yield from self._records(messages)
            return
        for is_error, some in groupby(messages, lambda message: message.error() is not None):
            if is_error:
                for message in some:
                    yield from self._error(message)
            else:
                yield from self._records(list(some))

    def _records(self, messages: Sequence[Message]) -> Iterator[Found]:
        # The hot path: the client's methods called by map, and slices. A loop over messages costs three times as much.
        topics: list[str] = list(map(Message.topic, messages))  # type: ignore[arg-type]  # a message without an error has a topic
        if topics.count(topics[0]) < len(topics):
            for _, some in groupby(messages, Message.topic):
                yield from self._records(list(some))
            return
        at = 0
        for partition, run in groupby(map(Message.partition, messages)):
            upto = at + len(list(run))
            one = self._open.get((topics[0], partition))  # type: ignore[arg-type]
            if one is not None:
                yield from self._run(one, messages[at:upto])
            at = upto

    def _run(self, one: _OpenStream, run: Sequence[Message]) -> Iterator[Found]:
        """Divide messages of one stream among its ranges."""
        offsets: list[int] = list(map(Message.offset, run))  # type: ignore[arg-type]  # a message without an error has an offset
        last = offsets[-1]
        while one.ranges and one.position <= last:
            range_id = one.ranges[0]
            # What lies below the position was fetched before the stream was moved; what lies behind the end belongs to no one here.
            first = bisect_left(offsets, one.position)
            upto = len(run) if last < range_id.end else bisect_left(offsets, range_id.end)
            if first < upto:
                some = run[first:upto]
                columns = offsets[first:upto], map(Message.key, some), map(Message.value, some)
                yield range_id, list(map(_as_record, zip(*columns, strict=True)))
            self._advance(one, min(last + 1, range_id.end))

    def _advance(self, one: _OpenStream, position: int) -> None:
        """Everything of the present range below ``position`` was read."""
        self._left -= position - one.position
        one.position = position
        one.heard_s = self._heard_s = self._waited_s
        if position >= one.ranges[0].end:
            self._next_range(one, is_adjacent=True)

    def _next_range(self, one: _OpenStream, *, is_adjacent: bool) -> None:
        """Continue with the stream's next range; end the stream if there is none."""
        ended = one.ranges.popleft()
        if not one.ranges:
            del self._open[one.stream]
            self._ended.append(_place(one.stream, ended.end))
        elif one.ranges[0].start != one.position or not is_adjacent:
            one.position = one.ranges[0].start
            self._moved.add(one.stream)

    # --- errors ----------------------------------------------------------------------------------------------------

    def _error(self, message: Message) -> Iterator[Found]:
        error, topic, partition = message.error(), message.topic(), message.partition()
        if error is None or error.code() in TRANSIENT:
            return
        if partition is None:
            # The topic's, or without a topic the client's.
            for one in [each for each in self._open.values() if topic in {None, each.stream.topic}]:
                yield from self._fail_stream(one, partial(self._failed, error))
            return
        found = self._open.get((str(topic), partition))
        if found is None:
            return  # the stream is read, or has failed before
        if error.code() == error_code.PARTITION_END:
            self._end_of_partition(found, message.offset() or 0)
        else:
            # The next range is tried: a record that is damaged or gone here does not concern the streams there.
            yield self._fail(found, self._failed(error, found))

    def _end_of_partition(self, one: _OpenStream, end: int) -> None:
        # The only sign of a range whose last offsets hold no records (markers of transactions, compaction).
        while one.ranges and one.position < end:
            self._advance(one, min(end, one.ranges[0].end))

    def _fail(self, one: _OpenStream, error: SourceError) -> Found:
        """End the present range of a stream."""
        range_id = one.ranges[0]
        self._left -= range_id.end - one.position
        self._next_range(one, is_adjacent=False)
        return range_id, error

    def _fail_stream(self, one: _OpenStream, error_of: Callable[[_OpenStream], SourceError]) -> Iterator[Found]:
        while one.ranges:
            yield self._fail(one, error_of(one))

    def _failed(self, error: KafkaError, one: _OpenStream) -> SourceError:
        place = RecordPosition(one.stream, Offset(one.position)).facts
        if error.code() in {error_code.NO_OFFSET, KafkaError.OFFSET_OUT_OF_RANGE}:
            return SourceError(
                "Kafka deleted records before the applier read them",
                remedy=Remedy(
                    "kafka.lengthen-retention",
                    "Give the topic a longer retention, and create the replica again from a dump (`applier docs start_over`)",
                ),
                kind=FailureKind.RETENTION,
                **place,
            )
        return failed(self._settings, _what(one), error, **place)

    # --- silence ---------------------------------------------------------------------------------------------------

    def wait(self, waited_s: float) -> None:
        """Let the clock run."""
        self._waited_s += waited_s

    @property
    def silent_s(self) -> float:
        """For how long nothing has come of any range."""
        return self._waited_s - self._heard_s

    def fail_silent(self, cause: str) -> Iterator[Found]:
        """Fail the streams without a record for ``unreachable_after_s``, with all of their ranges: they have one leader."""
        silent = [one for one in self._open.values() if self._waited_s - one.heard_s >= self._patience_s]
        if silent and self.silent_s >= self._settings.unreachable_after_s:
            silent = self._all()  # no broker answers
        for one in silent:
            # Thousands of streams may wait for the same dead broker: streams that are opened later need not wait as long.
            self._patience_s = min(self._patience_s, PATIENCE_S)
            yield from self._fail_stream(one, lambda one: unreachable(self._settings, _what(one), cause or "time-out"))

    def fail_all(self, error: SourceError) -> Iterator[Found]:
        """Fail every range that is left."""
        for one in self._all():
            yield from self._fail_stream(one, lambda _: error)

    def _all(self) -> list[_OpenStream]:
        self.open(len(self._open) * 2 + len(self._waiting))
        return list(self._open.values())


def _what(one: _OpenStream) -> str:
    return f"range {one.stream}@{one.position}..{one.ranges[0].end}"


def _place(stream: Stream, offset: int) -> TopicPartition:
    return TopicPartition(stream.topic, stream.partition, offset)


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
        """Unassign everything, also if the caller stops early: no call continues what another one has begun."""
        self.consumer.unassign()
        self._ended.clear()
        if self._paused:
            self.consumer.resume(self._paused)  # a pause would outlive the assignment
            self._paused.clear()

    def _holds_more(self, place: TopicPartition) -> bool:
        """Whether there was something after ``place`` when the client fetched last. Most streams of a live feed are at their end."""
        _, end = self.consumer.get_watermark_offsets(place, cached=True)
        return bool(end > place.offset)


def _connected(settings: KafkaSettings) -> _Link:
    errors = ConnectionErrors(settings)
    with refusals_as_config_errors(settings):
        return _Link(Consumer(settings.consumer() | {"error_cb": errors.add}), errors)


_idle: Final[dict[KafkaSettings, _Link]] = {}
"""The idle consumers of this process."""


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

    @property
    def log_name(self) -> str:
        """The brokers and the topics."""
        return f"{self.settings.bootstrap_servers} {' '.join(self.settings.topics)}"

    def listing(self) -> Listing:
        """Ask for partitions and extents, as the driver does for each cycle; rarely, and for formats that look for other records."""
        link = _idle.pop(self.settings, None) or _connected(self.settings)
        try:
            return ExtentQuery(self.settings, link.consumer, link.errors).listing()
        finally:
            _idle[self.settings] = link

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
