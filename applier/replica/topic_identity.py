"""Whether the topics are still those that the replica reads: one that is deleted and made anew has other records at the same offsets.

Offsets alone tell only while the new topic is shorter than what was read of the old one. Kafka gives each topic an id for life.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from applier.coordinator.starting_point import FROM_DUMP_TO_REPLICA
from applier.model.errors import NeedsOperator
from applier.sources.port import Source

CHECK_INTERVAL_S: Final = 5.0
"""One request to Kafka so often costs nothing, and a topic does not outgrow an old one unseen in less: partitions are listed each cycle."""


class TopicIdentity:
    """Knows the ids of the topics. Not thread-safe."""

    def __init__(self, source: Source, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._source, self._clock = source, clock
        self._checked_at: float | None = None
        self.ids: dict[str, str] = {}
        """Those that Kafka has told; to be recorded with the progress."""

    def check(self, recorded: Mapping[str, str]) -> None:
        """Ask Kafka, and compare with the ids that are ``recorded`` in the sink and those that it told before. NeedsOperator: made anew."""
        present = dict(self._source.topic_ids())
        for topic, topic_id in present.items():
            for known in (recorded.get(topic, topic_id), self.ids.get(topic, topic_id)):
                if known != topic_id:
                    raise NeedsOperator(
                        "the topic was made anew since the replica has read it: its offsets mean something else now",
                        remedy=FROM_DUMP_TO_REPLICA,
                        kind="recreated",
                        topic=topic,
                        recorded_id=known,
                        present_id=topic_id,
                    )
        self.ids |= present
        self._checked_at = self._clock()

    def doubt(self) -> None:
        """Make the next check due at once: the topics could not be listed, and a topic that is made anew is missing in between."""
        self._checked_at = None

    def check_if_due(self, recorded: Mapping[str, str]) -> None:
        """Check, unless that was done a moment ago. Nothing that is read after a long pause is applied without it."""
        if self._checked_at is None or self._clock() - self._checked_at >= CHECK_INTERVAL_S:
            self.check(recorded)
