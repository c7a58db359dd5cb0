"""Detects a topic that was deleted and created again: it has other records at the same offsets.

Offsets alone show that only while the new topic is shorter than what was read of the old one. Kafka gives each topic an id for life.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from applier.coordinator.starting_point import FROM_DUMP_TO_REPLICA
from applier.model.errors import NeedsOperator
from applier.sources.port import Source

CHECK_INTERVAL_S: Final = 5.0
"""Between two requests. Partitions are listed in each cycle anyway, and no new topic outgrows an old one unseen in less time."""


class TopicIdentity:
    """The ids of the topics. Not thread-safe."""

    def __init__(self, source: Source, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._source, self._clock = source, clock
        self._checked_at: float | None = None
        self.ids: dict[str, str] = {}
        """Kafka's ids so far; recorded with the progress."""

    def check(self, recorded: Mapping[str, str]) -> None:
        """Compare Kafka's ids with those ``recorded`` in the sink and with earlier ones. NeedsOperator if a topic was recreated."""
        present = dict(self._source.topic_ids())
        # Only topics that Kafka gives an id: old brokers and mock clusters have none, and then nothing is compared.
        for topic, topic_id in present.items():
            for known in (recorded.get(topic, topic_id), self.ids.get(topic, topic_id)):
                if known != topic_id:
                    raise NeedsOperator(
                        "the topic was recreated; stored offsets are invalid",
                        remedy=FROM_DUMP_TO_REPLICA,
                        kind="recreated",
                        topic=topic,
                        recorded_id=known,
                        present_id=topic_id,
                    )
        # Merged, not replaced: a broker that does not answer with ids for a while must not make the run forget them.
        self.ids |= present
        self._checked_at = self._clock()

    def make_check_due(self) -> None:
        """Make the next check due at once: the topics could not be listed, and a topic is missing while it is recreated."""
        self._checked_at = None

    def check_if_due(self, recorded: Mapping[str, str]) -> None:
        """Check if ``CHECK_INTERVAL_S`` has passed. After a long wait that is so, before anything that is read then is applied."""
        if self._checked_at is None or self._clock() - self._checked_at >= CHECK_INTERVAL_S:
            self.check(recorded)
