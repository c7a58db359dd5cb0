"""The pause of one replica: a row, or none. It outlives the run, so that a daemon that is restarted stays paused."""

from dataclasses import dataclass

from sqlalchemy import Connection

from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, Transactions, as_datetime
from applier.sinks.pause import Pause


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
