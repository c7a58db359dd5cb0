"""The topics of a changefeed with their numbers of partitions."""

import random
from dataclasses import dataclass, field

from applier.demo.simulator.dispatch import topic_of
from applier.demo.simulator.producer.options import ProducerOptions
from applier.model.position import Stream

_MAX_PARTITIONS = 8


@dataclass(slots=True)
class Topics:
    """A topic is active once something was sent to it."""

    options: ProducerOptions
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counts[self.options.topic] = self.options.partitions

    def of_schema(self, schema: str, *, schema_level: bool = False) -> str:
        """Return the topic of a table, or of a schema DDL (the default topic), and make it active."""
        split = self.options.topic_per_schema and not schema_level
        topic = topic_of(schema, self.options.topic, per_schema=split)
        self.counts.setdefault(topic, self.options.partitions)
        return topic

    def streams(self, topic: str | None = None) -> list[Stream]:
        """Return all streams of one topic, or of all active ones."""
        return [Stream(name, p) for name, count in self.counts.items() if topic in (None, name) for p in range(count)]

    def grow(self, rng: random.Random) -> str | None:
        """Add a partition to a topic, up to the allowed number, and return the topic; None if it has as many as are allowed."""
        topic = rng.choice(sorted(self.counts))
        if self.counts[topic] >= min(self.options.partitions + self.options.growth, _MAX_PARTITIONS):
            return None
        self.counts[topic] += 1
        return topic
