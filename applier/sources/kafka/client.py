"""The driver's view of Kafka: partitions, extents, topic ids, record times."""

import time
from collections.abc import Collection, Mapping
from threading import Thread
from typing import Any, Final, Self

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # public, but not in its stub's __all__

from applier.model.errors import SourceError
from applier.model.listing import Listing, PartitionExtent
from applier.model.position import Offset, Place, Stream
from applier.sources.kafka import error_code
from applier.sources.kafka.connection_error import PATIENCE_S, ConnectionErrors
from applier.sources.kafka.error_meaning import failed
from applier.sources.kafka.reader import KafkaRangeReader
from applier.sources.kafka.refused_property import refusals_as_config_errors
from applier.sources.kafka.settings import LOGGER, KafkaSettings, unreachable
from applier.sources.open_protocol.decoder import OPEN_PROTOCOL
from applier.sources.port import Decoder, RangeReader

CLOSE_TIMEOUT_S = 10.0
"""How long the consumer may take to close: a broker may take that long to confirm the last shown offsets."""

ERROR_POLL_S = 0.2
"""How long errors are polled for after a failed request; also the pause before the next one, since a request may fail at once."""

TOPIC_ID_TIMEOUT_S = 5.0
"""Topic ids show that a topic was recreated. A broker that does not answer in this time has none."""


MOCK_CLUSTER = "mockCluster"
"""The cluster id of librdkafka's mock cluster begins so. It has no controller to ask for topic ids."""


STALE: Final = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        error_code.NO_ENTRY,
    }
)
"""Errors of an admin client with stale metadata. Unlike a consumer it does not refresh them; they expire only after minutes."""

_EARLIEST, _LATEST = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]


class _CommitResults:
    """Logs each new reason why offsets could not be shown to lag tools."""

    # It has no reference to the source: a cycle through librdkafka's callback would keep a source alive that is not used any more.

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._reason: str | None = None

    def add(self, error: KafkaError | None, partitions: Collection[TopicPartition]) -> None:
        refused = next((f"{p.topic}/{p.partition}: {p.error}" for p in partitions if p.error is not None), None)
        reason = None if error is None and refused is None else str(error or refused)
        if reason not in {None, self._reason}:
            LOGGER.warning("offsets_not_shown", extra={"reason": self._settings.masked(str(reason))})
        self._reason = reason


class KafkaSource:
    """Implements ``Source`` on a real cluster or on librdkafka's mock cluster."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._errors = ConnectionErrors(settings)
        with refusals_as_config_errors(settings):
            callbacks = {"error_cb": self._errors.add, "on_commit": _CommitResults(settings).add}
            self._consumer = Consumer(settings.consumer() | callbacks)
            self._admin = AdminClient(settings.client())
        self._has_listed = False

    @property
    def reader(self) -> RangeReader:
        """The reading part, for executors."""
        return KafkaRangeReader(self._settings)

    @property
    def decoder(self) -> Decoder:
        """The decoding part: TiCDC's topics hold the Open Protocol."""
        return OPEN_PROTOCOL

    def listing(self) -> Listing:
        """Fetch partitions and extents: first the partitions, then their offsets, so that the ends are the newest."""
        # The ends last: DESIGN.md 3 closes a window only with a listing that is newer than the resolved events which gave W.
        streams = self._streams()
        earliest = self._offsets(streams, _EARLIEST)
        latest = self._offsets(streams, _LATEST)
        return Listing({s: PartitionExtent(earliest[s], latest[s]) for s in streams})

    def topic_ids(self) -> Mapping[str, str]:
        """Ask for the topics' ids; empty where the brokers have none (old ones, and mock clusters)."""
        if str(self._metadata(self._settings.topics[0]).cluster_id).startswith(MOCK_CLUSTER):
            return {}
        try:
            return self._described_ids()
        except SourceError:
            # The broker that was asked may be gone: an admin client does not look for another one.
            self._metadata(self._settings.topics[0], self._admin)
        return self._described_ids()

    def _described_ids(self) -> Mapping[str, str]:
        futures = self._admin.describe_topics(TopicCollection(list(self._settings.topics)), request_timeout=TOPIC_ID_TIMEOUT_S)
        ids = {}
        for topic, future in futures.items():
            try:
                ids[topic] = str(future.result().topic_id)
            except KafkaException as error:
                if error.args[0].code() in {KafkaError.UNSUPPORTED_VERSION, error_code.UNSUPPORTED_FEATURE}:
                    return {}
                raise failed(self._settings, f"topic id of {topic}", error, topic=topic) from error
        return ids

    def record_time_ms(self, stream: Stream, offset: Offset) -> int | None:
        """Read the record at or after ``offset`` and return its Kafka timestamp."""
        self._consumer.assign([TopicPartition(stream.topic, stream.partition, offset)])
        try:
            message = self._consumer.poll(self._settings.unreachable_after_s)
            if message is None:
                raise unreachable(self._settings, f"record {stream}@{offset}", "time-out")
            if (error := message.error()) is not None:
                if error.code() == error_code.PARTITION_END:
                    return None
                place = Place(stream, offset)
                raise failed(self._settings, f"record {place}", error, **place.facts)
            return int(message.timestamp()[1])
        finally:
            self._consumer.unassign()

    def offsets_at_time(self, streams: Collection[Stream], time_ms: int) -> Mapping[Stream, Offset]:
        """Ask for the first offsets whose record time is at or after ``time_ms``."""
        if not streams:
            return {}  # librdkafka calls an empty question an invalid argument
        asked = [TopicPartition(s.topic, s.partition, time_ms) for s in streams]
        try:
            found = self._consumer.offsets_for_times(asked, timeout=self._settings.unreachable_after_s)
        except KafkaException as error:
            raise failed(self._settings, "offsets for times", error) from error
        ends = self._offsets(streams, _LATEST)
        return {s: Offset(p.offset) if p.offset >= 0 else ends[s] for s, p in ((Stream(p.topic, p.partition), p) for p in found)}

    def show_offsets(self, offsets: Mapping[Stream, Offset]) -> None:
        """Commit them as those of the consumer group, in the background."""
        # By the consumer: an admin client whose request to a group's coordinator times out as the broker dies aborts the whole process
        # (librdkafka issue 4605, an assertion in rd_kafka_enq_once_del_source_return).
        self._consumer.poll(0)  # nothing is assigned: only results of earlier commits can come
        if partitions := [TopicPartition(stream.topic, stream.partition, offset) for stream, offset in offsets.items()]:
            self._consumer.commit(offsets=partitions, asynchronous=True)

    def close(self) -> None:
        """Close the consumer, once the last offsets are shown; the admin client ends with its last reference."""
        # In a thread, and not for ever: librdkafka waits without a time-out for a broker that has died meanwhile.
        closing = Thread(target=self._consumer.close, name="applier-kafka-close", daemon=True)
        closing.start()
        closing.join(CLOSE_TIMEOUT_S)

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def _metadata(self, topic: str, client: Consumer | AdminClient | None = None) -> Any:
        asked = client or self._consumer
        give_up = time.monotonic() + self._settings.unreachable_after_s
        while True:
            try:
                metadata = asked.list_topics(topic, timeout=min(PATIENCE_S, max(give_up - time.monotonic(), ERROR_POLL_S)))
            except KafkaException as error:
                asked.poll(ERROR_POLL_S)  # nothing is assigned: only connection errors can come
                self._errors.check()
                if time.monotonic() >= give_up:
                    raise unreachable(self._settings, f"metadata of {topic}", self._errors.latest or error) from error
            else:
                self._errors.clear()
                return metadata

    def _streams(self) -> list[Stream]:
        streams = []
        for topic in self._settings.topics:
            described = self._metadata(topic).topics[topic]
            if described.error is not None:
                raise self._refused(topic, described.error)
            streams += [Stream(topic, partition) for partition in sorted(described.partitions)]
        self._has_listed = True
        return streams

    def _refused(self, topic: str, error: KafkaError) -> SourceError:
        # A broker that has just started may not know yet of topics that were there before.
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART and not self._has_listed:
            remedy = "Check source.topics; the changefeed's sink URI names the topic"
            return SourceError("the topic does not exist", remedy=remedy, kind="unknown_topic", topic=topic)
        return failed(self._settings, f"metadata of {topic}", error, topic=topic)

    def _offsets(self, streams: Collection[Stream], spec: OffsetSpec) -> dict[Stream, Offset]:
        if not streams:
            return {}
        give_up = time.monotonic() + self._settings.unreachable_after_s
        while True:
            try:
                return self._asked(streams, spec)
            except SourceError as error:
                cause = error.__cause__
                if not isinstance(cause, KafkaException) or cause.args[0].code() not in STALE or time.monotonic() >= give_up:
                    raise
            # A broker was restarted, or a leader is being elected.
            time.sleep(ERROR_POLL_S)
            for topic in sorted({stream.topic for stream in streams}):
                self._metadata(topic, self._admin)

    def _asked(self, streams: Collection[Stream], spec: OffsetSpec) -> dict[Stream, Offset]:
        asked = {TopicPartition(s.topic, s.partition): spec for s in streams}
        # The end of what a consumer is given: after it, the consumer would wait for records of an open transaction.
        committed = IsolationLevel.READ_COMMITTED
        answers = self._admin.list_offsets(asked, isolation_level=committed, request_timeout=self._settings.unreachable_after_s)
        offsets = {}
        for partition, future in answers.items():
            try:
                offsets[Stream(partition.topic, partition.partition)] = Offset(future.result().offset)
            except KafkaException as error:
                place = {"topic": partition.topic, "partition": partition.partition}
                raise failed(self._settings, f"offsets of {partition.topic}/{partition.partition}", error, **place) from error
        return offsets
