"""The writer of the MySQL family: one segment, one transaction, on a session that the process keeps."""

from collections.abc import Iterable
from dataclasses import dataclass

from applier.planner.statement import Statement
from applier.sinks.mysql.bookkeeping import bookkeeping_of
from applier.sinks.mysql.write_session import MysqlWriteSessions
from applier.sinks.progress import Fence, ProgressCommit
from applier.sinks.quarantine import Quarantined
from applier.sinks.settings import SinkSettings
from applier.sinks.write_outcome import WriteOutcome
from applier.sinks.write_transaction import WriteTransaction


@dataclass(frozen=True, slots=True)
class MysqlWriter:
    """Writes segments of one replica. Picklable; its session lives in the process that writes."""

    settings: SinkSettings

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
        bookkeeping = bookkeeping_of(self.settings)
        return WriteTransaction(bookkeeping, MysqlWriteSessions(self.settings, bookkeeping))
