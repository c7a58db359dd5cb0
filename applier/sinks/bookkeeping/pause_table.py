"""The pause of one replica: a row, or none. It outlives the run, so that a daemon that is restarted stays paused."""

from dataclasses import dataclass

from sqlalchemy import Connection

from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, as_datetime
from applier.sinks.bookkeeping.quarantine_store import InTransaction
from applier.sinks.pause import Pause


@dataclass(frozen=True, slots=True)
class SqlPauseStore:
    """A ``PauseStore`` over named statements. SQLite reads and writes in different kinds of transactions."""

    bookkeeping: Bookkeeping
    reading: InTransaction
    writing: InTransaction

    def read(self) -> Pause | None:
        """Return the pause; None if the replica is not paused."""
        return self.reading(lambda connection: read_pause(connection, self.bookkeeping))

    def begin(self, said_by: str) -> Pause | None:
        """Pause the replica; return the pause that was there before."""

        def work(connection: Connection) -> Pause | None:
            before = read_pause(connection, self.bookkeeping)
            if before is None:
                self.bookkeeping.run(connection, "pause_begin", said_by=said_by)
            return before

        return self.writing(work)

    def end(self) -> Pause | None:
        """Resume the replica; return the pause that has ended."""

        def work(connection: Connection) -> Pause | None:
            before = read_pause(connection, self.bookkeeping)
            self.bookkeeping.run(connection, "pause_end")
            return before

        return self.writing(work)


def read_pause(connection: Connection, bookkeeping: Bookkeeping) -> Pause | None:
    """Return the pause of the replica that ``bookkeeping`` is of."""
    row = bookkeeping.run(connection, "pause_read").one_or_none()
    return None if row is None else Pause(row.said_by, as_datetime(row.said_at))
