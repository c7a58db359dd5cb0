"""The progress of one replica, and the fence that guards it: ``progress``, ``stream``, ``known_table`` and ``table_location``.

Theory. ``epoch`` numbers the run that owns the replica, ``window_id`` the commits since ``begin``; together they are the fence. Every
transaction that writes locks the progress row first, so two writers of one replica never overlap, and writes of an older epoch meet
another fence. ``window_id`` is never reset, so a replica has committed if it is above zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple

from sqlalchemy import Connection

from applier.model.errors import Fenced, InvariantViolation, Remedy, RetryableSinkError, UnknownOutcome
from applier.model.events import FoldedName
from applier.model.position import Offset, Stream, StreamPosition, Ts
from applier.model.segment import steps_back
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.owner_table import OwnerTable, fenced
from applier.sinks.progress import Fence, Progress, ProgressCommit, WriteState


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
        # What is stored is read only for the sake of an id that no one could ask for: there may be ten thousand rows. It is read under the
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


MAX_READS = 10
"""How often an unlocked read is repeated because a writer committed in the middle of it."""


class FenceState(Enum):
    """How the fence of the progress row compares with that of a writer that has locked it."""

    HELD = "held"
    ALREADY = "already"
    FENCED = "fenced"
    RELOAD = "reload"

    @property
    def refusal(self) -> WriteState | None:
        """How the write ends here; None if it may continue."""
        return None if self is FenceState.HELD else WriteState(self.value)


class ProgressRow(NamedTuple):
    """The progress row itself."""

    fence: Fence
    checkpoint_ts: Ts
    start_ts: Ts
    source_state: str | None


@dataclass(frozen=True, slots=True)
class ProgressTable:
    """The progress of the replica that ``bookkeeping`` is of."""

    bookkeeping: Bookkeeping

    def load(self, connection: Connection, known: Progress | None = None) -> Progress | None:
        """Read the progress as it was at one point in time, without waiting for a writer; None before ``begin``.

        Everything but the row itself is copied from ``known``, if given: a replica has ten thousand streams and tables, and each
        commit reads the progress back.
        RetryableSinkError if a writer commits again and again in between.
        """
        # Two reads of the row with the same fence enclose one state: each commit increments window_id. A snapshot would do
        # the same, but the sessions of servers are READ COMMITTED, which gives each statement its own snapshot.
        for _ in range(MAX_READS):
            row = self.row(connection)
            if row is None:
                return None
            if known is not None:
                return replace(
                    known, fence=row.fence, checkpoint_ts=row.checkpoint_ts, start_ts=row.start_ts, source_state=row.source_state
                )
            progress = self._collect(connection, row)
            if self.row(connection) == row:
                return progress
        message = "the progress changes faster than it can be read"
        raise RetryableSinkError(message, replica=self.bookkeeping.name)

    def lock(self, connection: Connection, fence: Fence) -> FenceState:
        """Lock the progress row and compare it with ``fence``: the first statement of every transaction that writes."""
        return self._compared(self.row(connection, "progress_lock"), fence)

    @staticmethod
    def _compared(row: ProgressRow | None, fence: Fence) -> FenceState:
        if row is None:
            return FenceState.RELOAD
        if row.fence.epoch != fence.epoch:
            return FenceState.FENCED
        if row.fence == fence:
            return FenceState.HELD
        # Each commit increments window_id: one more means that an earlier attempt of this very write has committed.
        return FenceState.ALREADY if row.fence.window_id == fence.window_id + 1 else FenceState.RELOAD

    def share(self, connection: Connection, fence: Fence) -> FenceState:
        """Lock the progress row together with other writers of rows, and compare it: no writer is left when the progress moves."""
        row = self.row(connection, "progress_share")
        if row is None or row.fence == fence:
            return FenceState.RELOAD if row is None else FenceState.HELD
        return FenceState.FENCED if row.fence.epoch != fence.epoch else FenceState.RELOAD

    def lock_or_raise(self, connection: Connection, fence: Fence) -> Ts:
        """Lock the progress row and return the checkpoint. Fenced or UnknownOutcome unless the row has this fence."""
        row = self.row(connection, "progress_lock")
        state = self._compared(row, fence)
        if state is FenceState.FENCED:
            raise fenced(self.bookkeeping.name, OwnerTable(self.bookkeeping).read(connection))
        if state is not FenceState.HELD or row is None:
            message = "fencing token mismatch"
            raise UnknownOutcome(message, replica=self.bookkeeping.name, fence=fence, stored=row)
        return row.checkpoint_ts

    def advance(self, connection: Connection, fence: Fence, commit: ProgressCommit) -> Fence:
        """Move the progress, in the transaction that holds the lock, and return the next fence.

        InvariantViolation if the checkpoint would step back or the lock is not held.
        """
        row = self.row(connection)
        if row is None or row.fence != fence or steps_back(commit.checkpoint_ts, row.checkpoint_ts):
            message = "checkpoint update rejected"
            raise InvariantViolation(message, replica=self.bookkeeping.name, stored=row, fence=fence, checkpoint_ts=commit.checkpoint_ts)
        StreamTable(self.bookkeeping).write(connection, commit)
        self._write_known_tables(connection, commit)
        self._write_locations(connection, commit)
        moved = self.bookkeeping.run(
            connection,
            "progress_advance",
            epoch=fence.epoch,
            window_id=fence.window_id,
            checkpoint_ts=self.bookkeeping.number(commit.checkpoint_ts),
            source_state=commit.source_state,
        )
        if moved.rowcount != 1:
            message = "the progress row changed although it was locked"
            raise InvariantViolation(message, replica=self.bookkeeping.name, fence=fence)
        return Fence(fence.epoch, fence.window_id + 1)

    def present(self, connection: Connection) -> Progress:
        """Read the progress in a transaction that holds the lock."""
        row = self.row(connection)
        if row is None:
            message = "the progress row vanished although it was locked"
            raise InvariantViolation(message, replica=self.bookkeeping.name)
        return self._collect(connection, row)

    def row(self, connection: Connection, query: str = "progress_read") -> ProgressRow | None:
        """Read the progress row by one of the statements that do; None before ``begin``."""
        row = self.bookkeeping.run(connection, query).one_or_none()
        if row is None:
            return None
        return ProgressRow(Fence(row.epoch, row.window_id), Ts(int(row.checkpoint_ts)), Ts(int(row.start_ts)), row.source_state)

    def _collect(self, connection: Connection, row: ProgressRow) -> Progress:
        streams = StreamTable(self.bookkeeping).read(connection)
        tables = self.bookkeeping.run(connection, "known_table_read").all()
        return Progress(
            fence=row.fence,
            checkpoint_ts=row.checkpoint_ts,
            start_ts=row.start_ts,
            positions={stream: stored.position for stream, stored in streams.items()},
            topic_ids={stream.topic: stored.topic_id for stream, stored in streams.items() if stored.topic_id},
            known_tables=frozenset(FoldedName(table.schema_name, table.table_name) for table in tables),
            ahead_tables=frozenset(FoldedName(table.schema_name, table.table_name) for table in tables if table.is_ahead),
            source_state=row.source_state,
        )

    def _write_known_tables(self, connection: Connection, commit: ProgressCommit) -> None:
        since = {"name": self.bookkeeping.name, "since_ts": self.bookkeeping.number(commit.checkpoint_ts)}
        tables = [since | {"schema_name": table.schema, "table_name": table.table} for table in sorted(commit.known_tables)]
        if tables:
            connection.execute(self.bookkeeping.query("known_table_write"), tables)
        ahead = [
            {"name": self.bookkeeping.name, "schema_name": table.schema, "table_name": table.table, "is_ahead": int(is_ahead)}
            for table, is_ahead in sorted(commit.ahead_tables.items())
        ]
        if ahead:
            connection.execute(self.bookkeeping.query("known_table_ahead"), ahead)

    def locations(self, connection: Connection) -> dict[FoldedName, FoldedName]:
        """Read where the sink has each table of upstream, if a filter or routes have ever been configured."""
        rows = self.bookkeeping.run(connection, "table_location_read")
        return {FoldedName(row.upstream_schema, row.upstream_table): FoldedName(row.schema_name, row.table_name) for row in rows}

    def _write_locations(self, connection: Connection, commit: ProgressCommit) -> None:
        since = self.bookkeeping.number(commit.checkpoint_ts)
        removed, written = list[dict[str, Any]](), list[dict[str, Any]]()
        # One call each: the first commit under a filter writes a location for every table.
        for table, place in sorted(commit.locations.items()):
            key = {"name": self.bookkeeping.name, "upstream_schema": table.schema, "upstream_table": table.table}
            if place is None:
                removed.append(key)
            else:
                written.append(key | {"schema_name": place.schema, "table_name": place.table, "since_ts": since})
        if removed:
            connection.execute(self.bookkeeping.query("table_location_remove"), removed)
        if written:
            connection.execute(self.bookkeeping.query("table_location_write"), written)


def of_epoch(progress: Progress | None, epoch: int | None, name: str) -> Progress | None:
    """Return the progress; Fenced if it is of another epoch than that of the run that reads it (None: a reader that owns nothing).

    A run that was frozen between its commit and this read would mistake its successor's fence for its own, and write under it.
    """
    if progress is not None and epoch is not None and progress.fence.epoch != epoch:
        raise Fenced(
            "another run has taken over the replica",
            replica=name,
            epoch=progress.fence.epoch,
            own_epoch=epoch,
            remedy=Remedy(
                "bookkeeping.stop-second-run",
                "`applier status` names that run. If two were started for one replica by mistake, stop one of them",
            ),
        )
    return progress
