"""Which run owns the replica and with which sessions, its pause, and the dump it was loaded from.

The tables ``owner``, ``owner_session``, ``pause`` and ``loaded_dump``. A pause outlives the run: a restarted daemon stays paused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import Connection

from applier.model.errors import Fenced
from applier.model.position import Ts
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, Transactions, as_datetime
from applier.sinks.loaded_dump import LoadedDump
from applier.sinks.overview import Owner, Pause


class OwnerRow(NamedTuple):
    """The owner with its run, and the database's clock at that point in time."""

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


@dataclass(frozen=True, slots=True)
class PauseStore:
    """The pause of one replica. Each call is a separate transaction; none needs ownership."""

    bookkeeping: Bookkeeping
    transactions: Transactions

    def read(self) -> Pause | None:
        """Return the pause; None if the replica is not paused. Cheap: a run asks each second."""
        return self.transactions.read(lambda connection: read_pause(connection, self.bookkeeping), "reading whether the replica is paused")

    def begin(self, said_by: str) -> Pause | None:
        """Pause the replica; return the pause that was there before, which stays as it is."""

        def work(connection: Connection) -> Pause | None:
            before = read_pause(connection, self.bookkeeping)
            if before is None:
                self.bookkeeping.run(connection, "pause_begin", said_by=said_by)
            return before

        return self.transactions.change(work, "pausing or resuming the replica")

    def end(self) -> Pause | None:
        """Resume the replica; return the pause that has ended, None if there was none."""

        def work(connection: Connection) -> Pause | None:
            before = read_pause(connection, self.bookkeeping)
            self.bookkeeping.run(connection, "pause_end")
            return before

        return self.transactions.change(work, "pausing or resuming the replica")


def read_pause(connection: Connection, bookkeeping: Bookkeeping) -> Pause | None:
    """Return the pause of the replica that ``bookkeeping`` is of."""
    row = bookkeeping.run(connection, "pause_read").one_or_none()
    return None if row is None else Pause(row.said_by, as_datetime(row.said_at))


DONE: Final = "done"


@dataclass(frozen=True, slots=True)
class LoadedDumpStore:
    """The dump of the replica that ``bookkeeping`` is of. Each call is a separate transaction; none needs ownership."""

    bookkeeping: Bookkeeping
    transactions: Transactions

    def read(self) -> LoadedDump | None:
        """Return the dump that this replica begins from; None: there is none."""
        return self.transactions.read(lambda connection: read_loaded(connection, self.bookkeeping), "reading about the loaded dump")

    def begin(self, dump: LoadedDump) -> None:
        """Store that a load begins, instead of an earlier one."""
        self._change(lambda connection: self._begin(connection, dump))

    def end(self) -> None:
        """Store that the load has ended well."""
        self._change(self._end)

    def declare(self, dump: LoadedDump) -> None:
        """Store that other programs have loaded this dump, instead of an earlier entry. One transaction: no run may see half of it."""

        def work(connection: Connection) -> None:
            self._begin(connection, dump)
            self._end(connection)

        self._change(work)

    def _change(self, work: Callable[[Connection], None]) -> None:
        self.transactions.change(work, "writing about the loaded dump")

    def _begin(self, connection: Connection, dump: LoadedDump) -> None:
        # The replica has not begun: an earlier load has written whatever the ledger holds.
        self.bookkeeping.run(connection, "ledger_forget_load")
        self.bookkeeping.run(
            connection,
            "loaded_dump_begin",
            start_ts=self.bookkeeping.number(dump.start_ts),
            directory=dump.directory,
            loader=dump.loader,
            loaded_by=dump.loaded_by,
        )

    def _end(self, connection: Connection) -> None:
        self.bookkeeping.run(connection, "loaded_dump_end")


def read_loaded(connection: Connection, bookkeeping: Bookkeeping) -> LoadedDump | None:
    """Read the dump that this replica begins from."""
    row = bookkeeping.run(connection, "loaded_dump_read").one_or_none()
    if row is None:
        return None
    return LoadedDump(
        start_ts=Ts(int(row.start_ts)),
        directory=row.directory,
        loader=row.loader,
        loaded_by=row.loaded_by,
        began_at=as_datetime(row.began_at),
        ended_at=as_datetime(row.ended_at) if row.state == DONE else None,
    )
