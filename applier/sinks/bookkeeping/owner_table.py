"""Which run owns the replica, and the database sessions that it has open: the tables ``owner`` and ``owner_session``."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from applier.model.errors import Fenced
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, as_datetime
from applier.sinks.overview import Owner


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
    """A registered session: the named lock that it holds while it lives, and the process that opened it."""

    token: str
    host: str
    process: int


@dataclass(frozen=True, slots=True)
class OwnerTable:
    """The owner of the replica that ``bookkeeping`` is of."""

    bookkeeping: Bookkeeping

    def read(self, connection: Connection, *, locked: bool = False) -> OwnerRow | None:
        """Read who owns the replica; None if the last run released it, or there was none."""
        row = self.bookkeeping.run(connection, "owner_lock" if locked else "owner_read").one_or_none()
        if row is None:
            return None
        owner = Owner(
            epoch=row.epoch,
            host=row.host,
            process=row.process,
            started_at=as_datetime(row.started_at),
            heartbeat_at=as_datetime(row.heartbeat_at),
        )
        # The database's clock for both times: the clocks of two hosts may differ by more than a lease.
        return OwnerRow(owner, row.run_id, as_datetime(row.now))

    def beat(self, connection: Connection, run_id: str) -> bool:
        """Renew the heartbeat; False if another run owns the replica by now."""
        return self.bookkeeping.run(connection, "owner_beat", run_id=run_id).rowcount == 1

    def release(self, connection: Connection, run_id: str) -> None:
        """Release the replica, so that the next run need not wait."""
        self.bookkeeping.run(connection, "owner_release", run_id=run_id)


@dataclass(frozen=True, slots=True)
class SessionTable:
    """The registered sessions of the replica that ``bookkeeping`` is of."""

    bookkeeping: Bookkeeping

    def register(self, connection: Connection, session: SessionRow) -> None:
        """Store a session of this replica, so that a take-over can end it."""
        self.bookkeeping.run(connection, "session_write", **session._asdict())

    def read(self, connection: Connection) -> list[SessionRow]:
        """Return the registered sessions; some may have ended."""
        return [SessionRow(row.token, row.host, row.process) for row in self.bookkeeping.run(connection, "session_read")]

    def forget(self, connection: Connection, token: str) -> None:
        """Delete a session that has ended."""
        self.bookkeeping.run(connection, "session_forget", token=token)


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
