"""The table ``loaded_dump``: the dump that the sink of a replica was loaded from."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from applier.model.position import Ts
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, Transactions, as_datetime
from applier.sinks.loaded_dump import LoadedDump

DONE: Final = "done"


@dataclass(frozen=True, slots=True)
class LoadedDumpStore:
    """The dump of the replica that ``bookkeeping`` is of. Each call is a separate transaction; none needs ownership."""

    bookkeeping: Bookkeeping
    transactions: Transactions

    def read(self) -> LoadedDump | None:
        """Return the dump that this replica begins from; None: there is none."""
        return self.transactions.read(self._read, "reading about the loaded dump")

    def begin(self, dump: LoadedDump) -> None:
        """Store that a load begins, in place of an earlier one."""
        self._change(lambda connection: self._begin(connection, dump))

    def end(self) -> None:
        """Store that the load has ended well."""
        self._change(self._end)

    def declare(self, dump: LoadedDump) -> None:
        """Store that other programs have loaded this dump, in place of an earlier entry. One transaction: no run may find half of it."""

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
