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
        sessions = SqliteWriteSessions(self.path, self.lock_wait_timeout_s)
        return WriteTransaction(self.bookkeeping, sessions).write(fence, statements, commit, quarantined)
