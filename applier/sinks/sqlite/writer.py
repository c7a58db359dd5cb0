"""The writer of SQLite: one segment in one transaction of the file."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from applier.planner.statement import Statement
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.progress import Fence, ProgressCommit
from applier.sinks.quarantine import Quarantined
from applier.sinks.sqlite.write_session import SqliteWriteSessions
from applier.sinks.write_outcome import WriteOutcome
from applier.sinks.write_transaction import WriteTransaction


@dataclass(frozen=True, slots=True)
class SqliteWriter:
    """Writes a segment from any process of the machine that holds the file. Picklable."""

    path: Path
    bookkeeping: Bookkeeping
    lock_wait_timeout_s: int

    def write(
        self, fence: Fence, statements: Iterable[Statement], commit: ProgressCommit, quarantined: Quarantined | None = None
    ) -> WriteOutcome:
        """Write one segment: see ``Writer.write``."""
        return self._transaction.write(fence, statements, commit, quarantined)

    def write_rows(self, fence: Fence, statements: Iterable[Statement], *, at_once: bool = False) -> WriteOutcome:
        """Write rows ahead of the checkpoint: see ``Writer.write_rows``."""
        return self._transaction.write_rows(fence, statements, at_once=at_once)

    @property
    def _transaction(self) -> WriteTransaction:
        return WriteTransaction(self.bookkeeping, SqliteWriteSessions(self.path, self.lock_wait_timeout_s))
