"""The driver's view of Kafka: partitions, extents, topic ids, record times."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from threading import Thread
from typing import Protocol, Self

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from applier.ddl.zone_use import TIME_ZONE, zone_uses
from applier.model.errors import SourceError
from applier.model.events import DdlEvent
from applier.model.position import Listing, Offset, RecordPosition, Stream, Timeline, Ts, holds_all_since
from applier.planner.table_check import UpstreamTables
from applier.sources.kafka import error_code
from applier.sources.kafka.error_meaning import ConnectionErrors, failed, refusals_as_config_errors
from applier.sources.kafka.extent_query import ExtentQuery
from applier.sources.kafka.reader import KafkaRangeReader
from applier.sources.kafka.settings import LOGGER, KafkaSettings, unreachable
from applier.sources.kafka.topic_settings import TopicSettings, is_mock, topic_policies
from applier.sources.port import Decoder, RangeReader

CLOSE_TIMEOUT_S = 10.0
"""How long the consumer may take to close: a broker may take that long to confirm the last shown offsets."""

TOPIC_ID_TIMEOUT_S = 5.0
"""Topic ids show that a topic was recreated. A broker that does not answer in this time does not have one."""


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


class DatedTimeline(Timeline, Protocol):
    """A timeline whose timestamps hold their time, so that each millisecond has a first one."""

    def ts_at_ms(self, time_ms: int) -> Ts:
        """Return the least timestamp of a millisecond since the epoch."""
        ...


class KafkaSource:
    """Implements ``Source`` on a real cluster or on librdkafka's mock cluster."""

    def __init__(
        self,
        settings: KafkaSettings,
        decoder: Decoder,
        timeline: DatedTimeline,
        zone_of_sessions: Callable[[], str],
        upstream_tables: UpstreamTables | None = None,
    ) -> None:
        self._settings, self._decoder, self._timeline, self._zone_of_sessions = settings, decoder, timeline, zone_of_sessions
        self._upstream_tables = upstream_tables
        self._errors = ConnectionErrors(settings)
        with refusals_as_config_errors(settings):
            callbacks = {"error_cb": self._errors.add, "on_commit": _CommitResults(settings).add}
            self._consumer = Consumer(settings.consumer() | callbacks)
            self._admin = AdminClient(settings.client())
        self._extents = ExtentQuery(settings, self._consumer, self._errors)
        self._topics = KafkaTopics(settings, self._consumer, self._admin, self._extents)

    @property
    def reader(self) -> RangeReader:
        """The reading part, for executors."""
        return KafkaRangeReader(self._settings)

    @property
    def decoder(self) -> Decoder:
        """The decoding part."""
        return self._decoder

    @property
    def timeline(self) -> Timeline:
        """What timestamps of the format mean."""
        return self._timeline

    @property
    def position(self) -> None:
        """None: the stored offsets are enough, and a new replica begins at ``source.start_ts`` or at the dump that was loaded."""
        return

    @property
    def topics(self) -> "KafkaTopics":
        """What the brokers know of the topics."""
        return self._topics

    @property
    def times(self) -> "KafkaTimes":
        """When Kafka took the records."""
        return KafkaTimes(self._settings, self._consumer, self._extents, self._timeline)

    def listing(self) -> Listing:
        """Fetch partitions and extents; see ``ExtentQuery``."""
        return self._extents.listing()

    @property
    def upstream_tables(self) -> UpstreamTables | None:
        """What answers for upstream, where ``source.upstream`` names it: not all formats show the unique indexes of a table."""
        return self._upstream_tables

    def resolved(self, ddl: DdlEvent) -> DdlEvent:
        """Return a DDL that may depend on the zone of its session with that zone, if it is known."""
        zone = self._zone_of_sessions() if zone_uses(ddl.query) else ""
        return replace(ddl, session=(*ddl.session, (TIME_ZONE, zone))) if zone else ddl

    def close(self) -> None:
        """Close the consumer, once the last offsets are shown; the admin client ends with its last reference."""
        # In a thread, and with a limit: librdkafka waits without a time-out for a broker that has died meanwhile.
        closing = Thread(target=self._consumer.close, name="applier-kafka-close", daemon=True)
        closing.start()
        closing.join(CLOSE_TIMEOUT_S)

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()


class KafkaTopics:
    """Implements ``TopicFacts``."""

    def __init__(self, settings: KafkaSettings, consumer: Consumer, admin: AdminClient, extents: ExtentQuery) -> None:
        self._settings, self._consumer, self._admin, self._extents = settings, consumer, admin, extents
        self._topic_settings = TopicSettings(partial(topic_policies, settings, admin))

    def ids(self) -> Mapping[str, str]:
        """Ask for the topics' ids; empty where the brokers have none (old ones, and mock clusters)."""
        if not self._names:
            return {}
        if is_mock(self._extents.metadata(self._names[0])):
            return {}
        try:
            return self._described_ids()
        except SourceError:
            # The broker that was asked may be gone: an admin client does not look for another one.
            self._extents.metadata(self._names[0], self._admin)
        return self._described_ids()

    def check(self) -> None:
        """Ask for the settings of topics that were not asked for, or not lately. NeedsOperator: one is compacted."""
        if not self._extents.has_answered:
            # Brokers that do not answer tell nothing of their topics, which is no error there.
            self._extents.metadata(next(iter(self._names), None))
        self._topic_settings.check(self._names)

    @property
    def _names(self) -> list[str]:
        """The topics that the latest listing has shown, and topics that the settings name."""
        return list(self._extents.topics)

    def _described_ids(self) -> Mapping[str, str]:
        futures = self._admin.describe_topics(TopicCollection(self._names), request_timeout=TOPIC_ID_TIMEOUT_S)
        ids = {}
        for topic, future in futures.items():
            try:
                ids[topic] = str(future.result().topic_id)
            except KafkaException as error:
                if error.args[0].code() in {KafkaError.UNSUPPORTED_VERSION, error_code.UNSUPPORTED_FEATURE}:
                    return {}
                raise failed(self._settings, f"topic id of {topic}", error, topic=topic) from error
        return ids

    def show_offsets(self, offsets: Mapping[Stream, Offset]) -> None:
        """Commit them for the consumer group, in the background."""
        # By the consumer: an admin client whose request to a group's coordinator times out as the broker dies aborts the whole process
        # (librdkafka issue 4605, an assertion in rd_kafka_enq_once_del_source_return).
        self._consumer.poll(0)  # nothing is assigned: only results of earlier commits can come
        if partitions := [TopicPartition(stream.topic, stream.partition, offset) for stream, offset in offsets.items()]:
            self._consumer.commit(offsets=partitions, asynchronous=True)


class KafkaTimes:
    """Implements ``RecordTimes``."""

    def __init__(self, settings: KafkaSettings, consumer: Consumer, extents: ExtentQuery, timeline: DatedTimeline) -> None:
        self._settings, self._consumer, self._extents, self._timeline = settings, consumer, extents, timeline

    def holds_all_since(self, stream: Stream, earliest: Offset, start_ts: Ts) -> bool:
        """Compare the time at which Kafka took the earliest record: events' own timestamps prove nothing (DESIGN.md 3)."""
        time_ms = self.time_ms(stream, earliest)
        return time_ms is not None and holds_all_since(time_ms, start_ts, self._timeline)

    def time_ms(self, stream: Stream, offset: Offset) -> int | None:
        """Read the record at or after ``offset`` and return its Kafka timestamp."""
        self._consumer.assign([TopicPartition(stream.topic, stream.partition, offset)])
        try:
            message = self._consumer.poll(self._settings.unreachable_after_s)
            if message is None:
                raise unreachable(self._settings, f"record {stream}@{offset}", "time-out")
            if (error := message.error()) is not None:
                if error.code() == error_code.PARTITION_END:
                    return None
                position = RecordPosition(stream, offset)
                raise failed(self._settings, f"record {position}", error, **position.facts)
            return int(message.timestamp()[1])
        finally:
            self._consumer.unassign()

    def offsets_at(self, streams: Collection[Stream], time_ms: int) -> Mapping[Stream, Offset]:
        """Ask for the first offsets whose record time is at or after ``time_ms``."""
        return self._extents.at_time(streams, time_ms)

    def ts_at(self, time_ms: int) -> Ts:
        """Return the least timestamp of the millisecond."""
        return self._timeline.ts_at_ms(time_ms)
