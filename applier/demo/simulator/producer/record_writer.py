"""Batches of events become records: per topic and stream, in the order of real time."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from applier.demo.simulator.dispatch import topic_of
from applier.demo.simulator.encoder import frame, record_length
from applier.demo.simulator.producer.options import LogRecord, ProducerOptions
from applier.demo.simulator.wire_format import RecordBytes, WireEvent, only_event
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


class RecordWriter:
    """Collects row events per stream and writes records. ``counts``: how often what happened; ``now_ms``: the producer's clock."""

    def __init__(self, options: ProducerOptions, rng: random.Random, now_ms: int) -> None:
        self._options = options
        self._rng = rng
        self._batches: dict[Stream, list[WireEvent]] = {}
        self._written: list[LogRecord] = []
        self.now_ms = now_ms
        self.counts: dict[str, int] = {}

    def count(self, what: str) -> None:
        """Note that something happened."""
        self.counts[what] = self.counts.get(what, 0) + 1

    def take(self) -> list[LogRecord]:
        """Return the records written since the last call."""
        written, self._written = self._written, []
        return written

    def add_row(self, stream: Stream, event: WireEvent) -> None:
        """Put a row event into its stream's batch; a full batch is written."""
        batch = self._batches.setdefault(stream, [])
        if batch and record_length([*batch, event]) > self._options.max_message_bytes:
            self.flush(stream)
            batch = self._batches.setdefault(stream, [])
        batch.append(event)
        self.count("row")
        if len(batch) >= self._options.batch_size or not self._options.form.batches:
            self.flush(stream)

    def flush(self, stream: Stream) -> None:
        """Write the batch of one stream."""
        batch = self._batches.pop(stream, None)
        if batch:
            self.write_events(stream, batch)
            if len(batch) > 1:
                self.count("batch")

    def flush_all(self) -> None:
        """Write the batches of all streams."""
        for stream in list(self._batches):
            self.flush(stream)

    def drop_batches(self) -> None:
        """Forget what is not written: the owner that held it died."""
        self._batches.clear()

    def write_events(self, stream: Stream, events: Sequence[WireEvent]) -> None:
        """Write events as one record, or as one each in a format without batches."""
        for record in [frame(events)] if self._options.form.batches else [only_event([event]) for event in events]:
            self.write(stream, record)

    def write(self, stream: Stream, record: RecordBytes) -> None:
        """Write one record, some milliseconds after the last one."""
        # Record times never step back within a stream; commit timestamps do.
        self.now_ms += self._rng.randint(0, 3)
        self._written.append(LogRecord(stream, record.key, record.value, self.now_ms))

    def repeat_last(self) -> None:
        """Write the last record a second time, as a client does that got no acknowledgement."""
        if self._written:
            self._written.append(self._written[-1])
            self.count("retry")
