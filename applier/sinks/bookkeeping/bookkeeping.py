"""The bookkeeping of one replica, over a SQLAlchemy connection of any dialect: progress, fence, streams, owner, sessions.

Everything here is one or a few named statements (sql/queries.sql) inside a transaction that the caller began and commits.
Database errors come through as SQLAlchemy's: each dialect translates them at its own edge. The ledger is in ``ledger.py``.

Theory. ``epoch`` numbers the run that owns the replica, ``window_id`` the commits since ``begin``; together they are the
fence. Every transaction that writes locks the progress row first, so two writers of one replica never overlap, and what an
older epoch still sends finds another fence. ``window_id`` is never reset, so a replica has committed if it is above zero.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, NamedTuple

from sqlalchemy import Connection, CursorResult, TextClause

from applier.model.errors import FatalSinkError, Fenced, InvariantViolation, RetryableSinkError
from applier.model.events import FoldedName
from applier.model.position import Offset, Stream, StreamPosition, Ts
from applier.model.segment import steps_back
from applier.sinks.bookkeeping.queries import load_queries
from applier.sinks.overview import Owner
from applier.sinks.progress import Fence, Progress, ProgressCommit
from applier.sinks.settings import SCHEMA
from applier.sinks.write_outcome import WriteState

MAX_INTEGER = 2**63 - 1
MAX_READS = 10
"""How often an unlocked read is repeated because a writer committed in the middle of it."""


class FenceState(Enum):
    """What the progress row says to a writer that holds it."""

    HELD = "held"
    ALREADY = "already"
    FENCED = "fenced"
    REBUILD = "rebuild"

    @property
    def refusal(self) -> WriteState | None:
        """How the write ends here; None if it may go on."""
        return None if self is FenceState.HELD else WriteState(self.value)


class ProgressRow(NamedTuple):
    """The progress row itself."""

    fence: Fence
    checkpoint_ts: Ts
    start_ts: Ts


class OwnerRow(NamedTuple):
    """The owner with its run, and the database's clock at that moment."""

    owner: Owner
    run_id: str
    now: datetime

    @property
    def silent_s(self) -> float:
        """Seconds since the last heartbeat, by the clock of the database."""
        return (self.now - self.owner.heartbeat_at).total_seconds()


class SessionRow(NamedTuple):
    """A registered session: the named lock that it holds while it lives, and whose it is."""

    token: str
    host: str
    process: int


class _StoredStream(NamedTuple):
    topic_id: str
    position: StreamPosition


@dataclass(frozen=True, slots=True)
class Bookkeeping:
    """The bookkeeping of the replica ``name`` in a database of ``dialect`` (SQLAlchemy's name of it)."""

    name: str
    dialect: str
    schema: str = SCHEMA
    """Where its tables lie; in SQLite the prefix of their names."""

    # Progress and fence

    def load(self, connection: Connection, known_tables: frozenset[FoldedName] | None = None) -> Progress | None:
        """Read the progress as one moment shows it, without waiting for a writer; None before ``begin``.

        ``known_tables``, if given, are not read: a replica has ten thousand of them, and each commit reads the progress back.
        RetryableSinkError if a writer commits again and again in between.
        """
        for _ in range(MAX_READS):
            row = self._progress(connection, "progress_read")
            if row is None:
                return None
            progress = self._collect(connection, row, known_tables)
            if self._progress(connection, "progress_read") == row:
                return progress
        message = "the progress changes faster than it can be read"
        raise RetryableSinkError(message, replica=self.name)

    def lock(self, connection: Connection, fence: Fence) -> FenceState:
        """Lock the progress row and compare it with ``fence``: the first statement of every transaction that writes."""
        row = self._progress(connection, "progress_lock")
        if row is None:
            return FenceState.REBUILD
        if row.fence.epoch != fence.epoch:
            return FenceState.FENCED
        if row.fence == fence:
            return FenceState.HELD
        # Each commit increments window_id: one more is what this very write was to produce.
        return FenceState.ALREADY if row.fence.window_id == fence.window_id + 1 else FenceState.REBUILD

    def advance(self, connection: Connection, fence: Fence, commit: ProgressCommit) -> Fence:
        """Move the progress, in the transaction that holds the lock, and return the next fence.

        InvariantViolation if the checkpoint would step back or the lock is not held.
        """
        row = self._progress(connection, "progress_read")
        if row is None or row.fence != fence or steps_back(commit.checkpoint_ts, row.checkpoint_ts):
            message = "the progress cannot be moved so"
            raise InvariantViolation(message, replica=self.name, stored=row, fence=fence, checkpoint_ts=commit.checkpoint_ts)
        self._write_streams(connection, commit)
        since = {"name": self.name, "since_ts": self.number(commit.checkpoint_ts)}
        tables = [since | {"schema_name": table.schema, "table_name": table.table} for table in sorted(commit.known_tables)]
        if tables:
            connection.execute(self.query("known_table_write"), tables)
        moved = self._run(
            connection,
            "progress_advance",
            epoch=fence.epoch,
            window_id=fence.window_id,
            checkpoint_ts=self.number(commit.checkpoint_ts),
        )
        if moved.rowcount != 1:
            message = "the progress row was changed although it was locked"
            raise InvariantViolation(message, replica=self.name, fence=fence)
        return Fence(fence.epoch, fence.window_id + 1)

    # Runs and their epochs

    def claim(self, connection: Connection, run_id: str, host: str, process: int) -> int:
        """Make the run ``run_id`` the owner under a new epoch, which fences every older one; return the epoch."""
        progress = self._progress(connection, "progress_lock")
        owner = self.owner(connection, locked=True)
        epoch = 1 + max(progress.fence.epoch if progress else 0, owner.owner.epoch if owner else 0)
        self._run(connection, "owner_write", epoch=epoch, run_id=run_id, host=host, process=process)
        if progress is not None:
            self._run(connection, "progress_fence", epoch=epoch)
        return epoch

    def begin(self, connection: Connection, run_id: str, start_ts: Ts) -> Progress:
        """Create the progress row at ``start_ts``; Fenced if another run owns the replica by now."""
        owner = self._own(connection, run_id)
        self._run(connection, "progress_begin", epoch=owner.owner.epoch, start_ts=self.number(start_ts))
        return self._present(connection)

    def raise_epoch(self, connection: Connection, run_id: str) -> Progress:
        """Raise the epoch and read the progress behind it; Fenced if another run owns the replica by now.

        It waits for a write in flight, which so either is in the progress returned or can never arrive.
        """
        progress = self._progress(connection, "progress_lock")
        owner = self._own(connection, run_id)
        if progress is None:
            message = "the progress of the replica is gone from the sink"
            raise FatalSinkError(message, replica=self.name, remedy="Restore it from a backup, or start a new replica from a dump")
        epoch = 1 + max(progress.fence.epoch, owner.owner.epoch)
        self._run(connection, "progress_fence", epoch=epoch)
        self._run(connection, "owner_raise", epoch=epoch, run_id=run_id)
        return self._present(connection)

    def owner(self, connection: Connection, *, locked: bool = False) -> OwnerRow | None:
        """Read who owns the replica; None if the last run ended in good order, or there was none."""
        row = self._run(connection, "owner_lock" if locked else "owner_read").one_or_none()
        if row is None:
            return None
        owner = Owner(
            epoch=row.epoch, host=row.host, process=row.process, started_at=moment(row.started_at), heartbeat_at=moment(row.heartbeat_at)
        )
        return OwnerRow(owner, row.run_id, moment(row.now))

    def beat(self, connection: Connection, run_id: str) -> bool:
        """Renew the heartbeat; False if another run owns the replica by now."""
        return self._run(connection, "owner_beat", run_id=run_id).rowcount == 1

    def release(self, connection: Connection, run_id: str) -> None:
        """Say that the run ended in good order, so that the next one need not wait."""
        self._run(connection, "owner_release", run_id=run_id)

    def register_session(self, connection: Connection, session: SessionRow) -> None:
        """Remember a session of this replica, so that a take-over can end it."""
        self._run(connection, "session_write", **session._asdict())

    def sessions(self, connection: Connection) -> list[SessionRow]:
        """Return the registered sessions; some may have ended."""
        return [SessionRow(row.token, row.host, row.process) for row in self._run(connection, "session_read")]

    def forget_session(self, connection: Connection, token: str) -> None:
        """Forget a session that has ended."""
        self._run(connection, "session_forget", token=token)

    # Encoding

    def number(self, ts: int) -> int | str:
        """Encode an unsigned 64-bit number: SQLite's integers end at 2^63-1, above it stores decimal text."""
        return str(ts) if self.dialect == "sqlite" and ts > MAX_INTEGER else ts

    def query(self, name: str) -> TextClause:
        """Return a named statement for this dialect."""
        return load_queries(self.dialect, schema=self.schema)[name]

    def _run(self, connection: Connection, query: str, **values: object) -> CursorResult[Any]:
        return connection.execute(self.query(query), {"name": self.name, **values})

    def _progress(self, connection: Connection, query: str) -> ProgressRow | None:
        row = self._run(connection, query).one_or_none()
        return None if row is None else ProgressRow(Fence(row.epoch, row.window_id), Ts(int(row.checkpoint_ts)), Ts(int(row.start_ts)))

    def _present(self, connection: Connection) -> Progress:
        row = self._progress(connection, "progress_read")
        if row is None:
            message = "the progress row vanished although it was locked"
            raise InvariantViolation(message, replica=self.name)
        return self._collect(connection, row)

    def _collect(self, connection: Connection, row: ProgressRow, known_tables: frozenset[FoldedName] | None = None) -> Progress:
        streams = self._streams(connection)
        if known_tables is None:
            known_tables = frozenset(FoldedName(row.schema_name, row.table_name) for row in self._run(connection, "known_table_read"))
        return Progress(
            fence=row.fence,
            checkpoint_ts=row.checkpoint_ts,
            start_ts=row.start_ts,
            positions={stream: stored.position for stream, stored in streams.items()},
            topic_ids={stream.topic: stored.topic_id for stream, stored in streams.items() if stored.topic_id},
            known_tables=known_tables,
        )

    def _own(self, connection: Connection, run_id: str) -> OwnerRow:
        owner = self.owner(connection, locked=True)
        if owner is None or owner.run_id != run_id:
            raise fenced(self.name, owner)
        return owner

    def _streams(self, connection: Connection) -> Mapping[Stream, _StoredStream]:
        return {
            Stream(row.topic, row.partition_number): _StoredStream(
                row.topic_id, StreamPosition(next_offset=Offset(row.next_offset), resolved_ts=Ts(int(row.resolved_ts)))
            )
            for row in self._run(connection, "stream_read")
        }

    def _write_streams(self, connection: Connection, commit: ProgressCommit) -> None:
        if not commit.positions:
            return
        stored = self._streams(connection)
        known_ids = {stream.topic: entry.topic_id for stream, entry in stored.items()} | commit.topic_ids
        wanted = {stream: _StoredStream(known_ids.get(stream.topic, ""), position) for stream, position in commit.positions.items()}
        changed = [
            {
                "name": self.name,
                "topic": stream.topic,
                "partition_number": stream.partition,
                "topic_id": entry.topic_id,
                "next_offset": entry.position.next_offset,
                "resolved_ts": self.number(entry.position.resolved_ts),
            }
            for stream, entry in wanted.items()
            if stored.get(stream) != entry
        ]
        if changed:
            connection.execute(self.query("stream_write"), changed)


def of_epoch(progress: Progress | None, epoch: int | None, name: str) -> Progress | None:
    """Return the progress; Fenced if it is of another epoch than that of the run that reads it (None: a reader that owns nothing).

    A run that was frozen between its commit and this look would take its successor's fence for its own, and write under it.
    """
    if progress is not None and epoch is not None and progress.fence.epoch != epoch:
        raise Fenced(
            "another run has taken over the replica",
            replica=name,
            epoch=progress.fence.epoch,
            own_epoch=epoch,
            remedy="Look for a second applier with the same name",
        )
    return progress


def fenced(name: str, row: OwnerRow | None) -> Fenced:
    """Return the error that names the run which owns the replica."""
    message = "another run owns the replica"
    if row is None:
        return Fenced(message, replica=name)
    return Fenced(
        message,
        replica=name,
        host=row.owner.host,
        process=row.owner.process,
        since=row.owner.started_at.isoformat(timespec="seconds"),
        epoch=row.owner.epoch,
        silent_s=round(row.silent_s, 1),
    )


def moment(value: datetime | str) -> datetime:
    """Read a wall-clock time of the database (UTC) as an aware datetime."""
    parsed = datetime.fromisoformat(value) if isinstance(value, str) else value
    return parsed.replace(tzinfo=UTC)
