"""Epochs: each run that owns a replica has a higher one than all before it, which fences them off.

An epoch is in two rows: the owner's, which the heartbeat renews, and the progress's, which a writer keeps locked. One row for both would
make the heartbeat wait for every long segment.
"""

from dataclasses import dataclass

from sqlalchemy import Connection

from applier.model.errors import FatalSinkError, Remedy
from applier.model.position import Ts
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.owner_table import OwnerRow, OwnerTable, fenced
from applier.sinks.bookkeeping.progress_table import ProgressTable
from applier.sinks.progress import Progress


@dataclass(frozen=True, slots=True)
class Epochs:
    """The epochs of the replica that ``bookkeeping`` is of. Each method locks the progress row first, then the owner's."""

    bookkeeping: Bookkeeping

    def claim(self, connection: Connection, run_id: str, host: str, process: int) -> int:
        """Make the run ``run_id`` the owner under a new epoch, which fences every older one; return the epoch."""
        progress = ProgressTable(self.bookkeeping).row(connection, "progress_lock")
        owner = OwnerTable(self.bookkeeping).read(connection, locked=True)
        # The greatest: a run that died between claim and begin left an epoch in the owner's row only, a reset in that of the last end only.
        last = self.bookkeeping.run(connection, "run_end_epoch").scalar_one_or_none() or 0
        epoch = 1 + max(progress.fence.epoch if progress else 0, owner.owner.epoch if owner else 0, last)
        self.bookkeeping.run(connection, "owner_write", epoch=epoch, run_id=run_id, host=host, process=process)
        if progress is not None:
            self.bookkeeping.run(connection, "progress_fence", epoch=epoch)
        return epoch

    def begin(self, connection: Connection, run_id: str, start_ts: Ts, source_state: str | None = None) -> Progress:
        """Create the progress row at ``start_ts``; Fenced if another run owns the replica by now."""
        owner = self._own(connection, run_id)
        begun_at = self.bookkeeping.number(start_ts)
        self.bookkeeping.run(connection, "progress_begin", epoch=owner.owner.epoch, start_ts=begun_at, source_state=source_state)
        return ProgressTable(self.bookkeeping).present(connection)

    def raise_epoch(self, connection: Connection, run_id: str) -> Progress:
        """Raise the epoch and read the progress after it; Fenced if another run owns the replica by now.

        It waits for a write in flight: that write is in the returned progress, or can never arrive.
        """
        progress = ProgressTable(self.bookkeeping).row(connection, "progress_lock")
        owner = self._own(connection, run_id)
        if progress is None:
            message = "the progress row of the replica is missing in the sink"
            remedy = Remedy("bookkeeping.restore-backup-or-new-replica", "Restore it from a backup, or start a new replica from a dump")
            raise FatalSinkError(message, replica=self.bookkeeping.name, remedy=remedy)
        epoch = 1 + max(progress.fence.epoch, owner.owner.epoch)
        self.bookkeeping.run(connection, "progress_fence", epoch=epoch)
        self.bookkeeping.run(connection, "owner_raise", epoch=epoch, run_id=run_id)
        return ProgressTable(self.bookkeeping).present(connection)

    def _own(self, connection: Connection, run_id: str) -> OwnerRow:
        owner = OwnerTable(self.bookkeeping).read(connection, locked=True)
        if owner is None or owner.run_id != run_id:
            raise fenced(self.bookkeeping.name, owner)
        return owner
