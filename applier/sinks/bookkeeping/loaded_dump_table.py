"""The table ``loaded_dump``: the dump that the sink of a replica was loaded from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from applier.model.position import Ts
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, as_datetime
from applier.sinks.bookkeeping.quarantine_store import InTransaction
from applier.sinks.loaded_dump import LoadedDump

DONE: Final = "done"


@dataclass(frozen=True, slots=True)
class LoadedDumpTable:
    """A ``LoadedDumpStore`` of the replica that ``bookkeeping`` is of."""

    bookkeeping: Bookkeeping
    in_reading: InTransaction
    in_writing: InTransaction

    def read(self) -> LoadedDump | None:
        """Return the dump that this replica begins from."""
        return self.in_reading(self._read)

    def begin(self, dump: LoadedDump) -> None:
        """Store that a load begins."""
        self.in_writing(_ignoring(lambda connection: self._begin(connection, dump)))

    def end(self) -> None:
        """Store that the load has ended well."""
        self.in_writing(_ignoring(lambda connection: self.bookkeeping.run(connection, "loaded_dump_end")))

    def declare(self, dump: LoadedDump) -> None:
        """Store that other programs have loaded this dump. One transaction: no run may find half of it."""

        def work(connection: Connection) -> None:
            self._begin(connection, dump)
            self.bookkeeping.run(connection, "loaded_dump_end")

        self.in_writing(work)

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

    def _read(self, connection: Connection) -> LoadedDump | None:
        row = self.bookkeeping.run(connection, "loaded_dump_read").one_or_none()
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


def _ignoring(work: Callable[[Connection], object]) -> Callable[[Connection], None]:
    def run(connection: Connection) -> None:
        work(connection)

    return run
