"""The rows of one replica in all tables of the bookkeeping: counted, and deleted when an operator resets or removes the replica."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection

from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, Transactions
from applier.sinks.bookkeeping.owner_table import OwnerTable, fenced
from applier.sinks.bookkeeping.progress_table import ProgressTable

PROGRESS: Final = (
    "progress",
    "stream",
    "known_table",
    "table_location",
    "ddl_ledger",
    "quarantine",
    "loaded_dump",
    "prepared_transaction",
    "copy",
    "copy_table",
    "copy_chunk",
)
"""How far a replica is, and what it has met on its way."""
DECISIONS: Final = ("skip_rule", "pause")
"""What an operator has decided about events and runs to come."""
OTHERS: Final = ("run_end",)
READING: Final = "reading what is stored of the replicas"
RESET: Final = "replicas reset"
"""The command, as the end of the last run names it."""


@dataclass(frozen=True, slots=True)
class ReplicaStore:
    """The replica that ``bookkeeping`` is of, and the names of the others. Each call is a separate transaction.

    The sink's own tables are never touched here: they are what the replica was for. ``epoch``: that of this run; None if it owns nothing.
    """

    bookkeeping: Bookkeeping
    epoch: int | None
    transactions: Transactions

    def names(self) -> Sequence[str]:
        """Return the names of all replicas in the bookkeeping, sorted. Needs no ownership."""

        def work(connection: Connection) -> list[str]:
            return sorted(connection.execute(self.bookkeeping.query("replica_names")).scalars())

        return self.transactions.read(work, READING)

    def holdings(self) -> Mapping[str, int]:
        """Count the rows of this replica by table of the bookkeeping; tables without rows are skipped. Needs no ownership."""

        def work(connection: Connection) -> dict[str, int]:
            tables = (*PROGRESS, *DECISIONS, *OTHERS)
            found = {table: int(self.bookkeeping.run(connection, f"{table}_rows").scalar_one()) for table in tables}
            return {table: rows for table, rows in found.items() if rows}

        return self.transactions.read(work, READING)

    def reset(self, said_by: str) -> None:
        """Forget how far this replica is: its next run begins again. Skip rules and a pause stay. Fenced: this run does not own it."""

        def work(connection: Connection) -> None:
            self._delete(connection, PROGRESS)
            # The epoch outlives the progress: a writer of an old run, wherever it hangs, never meets its own epoch again.
            self.bookkeeping.run(
                connection,
                "run_end_write",
                epoch=self.epoch,
                run_id="",
                command=RESET,
                exit_code=0,
                error_class="",
                message=f"the replica was reset by {said_by}",
                facts="{}",
                remedy="",
            )

        self._as_owner(work)

    def remove(self) -> None:
        """Forget everything of this replica. Fenced: this run does not own it. The owner's row goes when this run releases the replica."""
        self._as_owner(lambda connection: self._delete(connection, (*PROGRESS, *DECISIONS, *OTHERS)))

    def _as_owner(self, work: Callable[[Connection], None]) -> None:
        def guarded(connection: Connection) -> None:
            # The progress first, as every transaction that locks both.
            ProgressTable(self.bookkeeping).row(connection, "progress_lock")
            owner = OwnerTable(self.bookkeeping).read(connection, locked=True)
            if owner is None or owner.owner.epoch != self.epoch:
                raise fenced(self.bookkeeping.name, owner)
            work(connection)

        self.transactions.change(guarded, "deleting what is stored of the replica")

    def _delete(self, connection: Connection, tables: Sequence[str]) -> None:
        for table in tables:
            self.bookkeeping.run(connection, f"{table}_delete")
