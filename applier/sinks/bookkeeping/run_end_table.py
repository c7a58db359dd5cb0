"""How the last run of a replica has ended: the table ``run_end``, one row per replica."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, as_datetime
from applier.sinks.bookkeeping.owner_table import OwnerRow, OwnerTable
from applier.sinks.bookkeeping.progress_table import ProgressTable
from applier.sinks.overview import RunEnd, StoredEnd


@dataclass(frozen=True, slots=True)
class RunEndTable:
    """The last end of the replica that ``bookkeeping`` is of."""

    bookkeeping: Bookkeeping

    def store(self, connection: Connection, end: RunEnd, process: tuple[str, int], is_dead: Callable[[OwnerRow], bool]) -> bool:
        """Store the end of a run of this process (host and number); False, with nothing stored, if another one owns the replica."""
        row = OwnerTable(self.bookkeeping).read(connection, locked=True)
        # Of a dead owner nothing is known; why the start after it was refused is what an operator looks for.
        if row is not None and (row.owner.host, row.owner.process) != process and not is_dead(row):
            return False
        progress = ProgressTable(self.bookkeeping).row(connection, "progress_read")
        epoch = row.owner.epoch if row is not None else progress.fence.epoch if progress is not None else 0
        # After a reset no other row has the epoch, which must not fall.
        last = self.bookkeeping.run(connection, "run_end_epoch").scalar_one_or_none() or 0
        self.bookkeeping.run(
            connection,
            "run_end_write",
            epoch=max(epoch, last),
            run_id=row.run_id if row is not None else "",
            command=end.command,
            exit_code=end.exit_code,
            error_class=end.error_class,
            message=end.message,
            facts=json.dumps(dict(end.facts)),
            remedy=end.remedy,
        )
        return True

    def read(self, connection: Connection) -> StoredEnd | None:
        """Return how the last run of the replica has ended; None if it runs, or has died, or no run has ever ended."""
        last = self.last(connection)
        if last is None:
            return None
        owner = OwnerTable(self.bookkeeping).read(connection)
        progress = ProgressTable(self.bookkeeping).row(connection, "progress_read")
        # A run that dies stores nothing: what is there is then of an earlier one, and has a smaller epoch.
        epoch = max(owner.owner.epoch if owner else 0, progress.fence.epoch if progress else 0)
        return None if last.epoch < epoch else last

    def last(self, connection: Connection) -> StoredEnd | None:
        """Return the last end that a run has stored, also if a later one runs or has died; None before the first."""
        row = self.bookkeeping.run(connection, "run_end_read").one_or_none()
        if row is None:
            return None
        end = RunEnd(
            command=row.command,
            exit_code=row.exit_code,
            message=row.message,
            error_class=row.error_class,
            facts=json.loads(row.facts),
            remedy=row.remedy,
        )
        return StoredEnd(end=end, epoch=row.epoch, ended_at=as_datetime(row.ended_at))
