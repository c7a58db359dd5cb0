"""Asks which partitions there are, and which offsets they hold: one request to one broker, and one to each leader for the ends.

By the consumer and not by an admin client, which makes a future for each partition (measured: five times the CPU) and keeps the leaders
that it knew: the consumer's are as new as the partitions of the same listing.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from applier.model.errors import Remedy, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Listing, Offset, PartitionExtent, Stream
from applier.model.topic_name import is_named, is_pattern
from applier.sources.kafka.error_meaning import PATIENCE_S, ConnectionErrors, failed
from applier.sources.kafka.settings import KafkaSettings, unreachable

BEGINNINGS_S: Final = 5.0
"""For how long a beginning is taken as known. Only retention moves it, and a range whose beginning is gone fails when it is read."""

ASKED_AT_ONCE: Final = 250
"""Partitions in one question. librdkafka searches its list for each answer: measured for 2,000 in one question, 21 ms, in eight, 9 ms."""

ONE_BY_ONE: Final = 8
"""Topics that are asked for in a request each. More of them are picked from all topics of the cluster, in one request."""

FIRST_ANSWER_S: Final = 6.0
"""Brokers that have never answered are most likely others than the operator means: that is said sooner than a restart of a broker takes."""

ERROR_POLL_S: Final = 0.2
"""How long errors are polled for after a failed request; also the pause before the next one, since a request may fail at once."""

STALE: Final = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
    }
)
"""Errors of a question to a broker that does not lead the partition any more."""

_ERROR: Final = attrgetter("error")
_OFFSET: Final = attrgetter("offset")


class ExtentQuery:
    """Asks by the consumer of one source."""

    def __init__(self, settings: KafkaSettings, consumer: Consumer, errors: ConnectionErrors) -> None:
        self._settings, self._consumer, self._errors = settings, consumer, errors
        self._has_listed = False
        self.has_answered = False
        """Whether the brokers have ever answered."""
        self.topics = tuple(text for text in settings.topics if not is_pattern(text))
        """The topics that the latest listing has shown."""
        self._beginnings: dict[Stream, Offset] = {}
        self._began_s = 0.0

    def listing(self) -> Listing:
        """Ask for partitions, beginnings and ends, in this order."""
        # Partitions and ends each time, the ends last: DESIGN.md 3 closes a window only with a listing that is newer than the resolved
        # events which gave W. A partition that it does not have, or whose first record it does not have, may hold rows below W.
        # The known beginnings are taken out meanwhile: after a listing that fails, everything is asked for again.
        known, self._beginnings = self._beginnings, {}
        streams = self._streams()
        beginnings = self._begin(streams, known)
        ends = self.ends(streams)
        # A partition that has never held a record has no beginning yet. One that ends before it was created again.
        self._beginnings = {stream: begin for stream, begin in beginnings.items() if 0 < ends[stream] >= begin}
        return Listing({stream: PartitionExtent(beginnings[stream], end) for stream, end in ends.items()})

    def ends(self, streams: Collection[Stream]) -> dict[Stream, Offset]:
        """Ask for the ends of what a consumer is given: after them are at most records of open transactions."""
        return self._offsets(streams, OFFSET_END)

    def at_time(self, streams: Collection[Stream], time_ms: int) -> dict[Stream, Offset]:
        """Ask for the first offsets whose record time is at or after ``time_ms``."""
        found = self._offsets(streams, time_ms)
        ends = self.ends([stream for stream, offset in found.items() if offset < 0])
        return found | ends

    def metadata(self, topic: str | None = None, client: AdminClient | None = None) -> Any:
        """Ask for the metadata of one topic, or of all that the user may see."""
        asked = client or self._consumer
        patience_s = self._settings.unreachable_after_s
        give_up = time.monotonic() + (patience_s if self.has_answered else min(FIRST_ANSWER_S, patience_s))
        while True:
            timeout_s = min(PATIENCE_S, max(give_up - time.monotonic(), ERROR_POLL_S))
            try:
                metadata = asked.list_topics(topic, timeout=timeout_s) if topic else asked.list_topics(timeout=timeout_s)
            except KafkaException as error:
                asked.poll(ERROR_POLL_S)  # nothing is assigned: only connection errors can come
                self._errors.check()
                if time.monotonic() >= give_up:
                    raise unreachable(self._settings, f"metadata of {topic or 'the topics'}", self._errors.latest or error) from error
            else:
                self._errors.clear()
                self.has_answered = True
                return metadata

    # --- partitions ------------------------------------------------------------------------------------------------

    def _streams(self) -> list[Stream]:
        wanted = self._settings.topics
        names = [text for text in wanted if not is_pattern(text)]
        patterns = [text for text in wanted if is_pattern(text)]
        # However many topics a pattern names, and whether it names any: one request for all of them.
        described = dict(self.metadata().topics) if patterns or len(names) > ONE_BY_ONE else {}
        topics = [*names, *sorted(topic for topic in described if topic not in names and is_named(topic, patterns))]
        streams = []
        for topic in topics:
            # One that is missing among all is asked for by its name: the answer says why.
            found = described.get(topic) or self.metadata(topic).topics[topic]
            if found.error is not None:
                raise self.refused(topic, found.error)
            streams += [Stream(topic, partition) for partition in sorted(found.partitions)]
        if not topics and not self._has_listed:
            remedy = Remedy("kafka.check-topics-and-describe", "Check source.topics, and that the user may describe the topics")
            raise SourceError("no topic matches source.topics", remedy=remedy, kind=FailureKind.UNKNOWN_TOPIC, topics=", ".join(patterns))
        self.topics = tuple(topics)
        self._has_listed = True
        return streams

    def refused(self, topic: str, error: KafkaError) -> SourceError:
        """Return the error for a topic that the brokers do not describe."""
        # A broker that has just started may not know yet of topics that were there before.
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART and not self._has_listed:
            remedy = Remedy("kafka.check-topic-name", "Check source.topics; the changefeed's sink URI names the topic")
            return SourceError("the topic does not exist", remedy=remedy, kind=FailureKind.UNKNOWN_TOPIC, topic=topic)
        return failed(self._settings, f"metadata of {topic}", error, topic=topic)

    # --- offsets ---------------------------------------------------------------------------------------------------

    def _begin(self, streams: Sequence[Stream], known: Mapping[Stream, Offset]) -> dict[Stream, Offset]:
        if not known or time.monotonic() - self._began_s >= BEGINNINGS_S:
            known, self._began_s = {}, time.monotonic()
        asked = self._offsets([stream for stream in streams if stream not in known], OFFSET_BEGINNING)
        return {stream: known[stream] if stream in known else asked[stream] for stream in streams}

    def _offsets(self, streams: Collection[Stream], time_ms: int) -> dict[Stream, Offset]:
        """Ask for offsets by time, until the leaders are known. In Kafka's protocol -2 is the time of the beginning, -1 that of the end."""
        give_up = time.monotonic() + self._settings.unreachable_after_s
        while True:
            try:
                return self._asked(list(streams), time_ms)
            except SourceError as error:
                cause = error.__cause__
                if not isinstance(cause, KafkaException) or cause.args[0].code() not in STALE or time.monotonic() >= give_up:
                    raise
            # A broker was restarted, or a leader is being elected.
            time.sleep(ERROR_POLL_S)
            for topic in sorted({stream.topic for stream in streams}):
                self.metadata(topic)

    def _asked(self, streams: Sequence[Stream], time_ms: int) -> dict[Stream, Offset]:
        found: dict[Stream, Offset] = {}
        for at in range(0, len(streams), ASKED_AT_ONCE):
            some = streams[at : at + ASKED_AT_ONCE]
            asked = [TopicPartition(topic, partition, time_ms) for topic, partition in some]
            try:
                answers = self._consumer.offsets_for_times(asked, timeout=self._settings.unreachable_after_s)
            except KafkaException as error:
                raise failed(self._settings, "offsets", error) from error
            for stream, refused in zip(some, map(_ERROR, answers), strict=True):
                if refused is not None:
                    place = {"topic": stream.topic, "partition": stream.partition}
                    raise failed(self._settings, f"offsets of {stream}", refused, **place) from KafkaException(refused)
            found.update(zip(some, map(_OFFSET, answers), strict=True))
        return found
