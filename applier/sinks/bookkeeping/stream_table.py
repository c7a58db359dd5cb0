"""The table ``stream``: from where each stream is read, and what it promised."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection

from applier.model.position import Offset, Stream, StreamPosition, Ts
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.progress import ProgressCommit


class StoredStream(NamedTuple):
    """A stream's position, and Kafka's id of its topic ('': unknown)."""

    topic_id: str
    position: StreamPosition


@dataclass(frozen=True, slots=True)
class StreamTable:
    """The streams of the replica that ``bookkeeping`` is of."""

    bookkeeping: Bookkeeping

    def read(self, connection: Connection) -> Mapping[Stream, StoredStream]:
        """Return all streams."""
        return {
            Stream(row.topic, row.partition_number): StoredStream(
                row.topic_id,
                StreamPosition(
                    next_offset=Offset(row.next_offset), resolved_ts=Ts(int(row.resolved_ts)), applied_ts=Ts(int(row.applied_ts))
                ),
            )
            for row in self.bookkeeping.run(connection, "stream_read")
        }

    def write(self, connection: Connection, commit: ProgressCommit) -> None:
        """Store the positions of ``commit``."""
        if not commit.positions:
            return
        # What is stored is read only for the sake of an id that nobody could ask for: there may be ten thousand rows. It is read under the
        # lock of the progress row, so no other writer changes it before COMMIT.
        is_known = all(stream.topic in commit.topic_ids for stream in commit.positions)
        stored: Mapping[Stream, StoredStream] = {} if is_known else self.read(connection)
        topic_ids = {stream.topic: entry.topic_id for stream, entry in stored.items()} | commit.topic_ids
        wanted = {stream: StoredStream(topic_ids.get(stream.topic, ""), position) for stream, position in commit.positions.items()}
        changed = [
            {
                "name": self.bookkeeping.name,
                "topic": stream.topic,
                "partition_number": stream.partition,
                "topic_id": entry.topic_id,
                "next_offset": entry.position.next_offset,
                "resolved_ts": self.bookkeeping.number(entry.position.resolved_ts),
                "applied_ts": self.bookkeeping.number(entry.position.applied_ts),
            }
            for stream, entry in wanted.items()
            if stored.get(stream) != entry
        ]
        if changed:
            connection.execute(self.bookkeeping.query("stream_write"), changed)
