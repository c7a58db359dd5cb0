"""The transaction of one chunk of a copy, once for every database: lock, fence, write, mark as done, commit.

A database says how rows are put into a table; it does not decide the order of the steps. It uses the sessions of its write transaction.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from sqlalchemy import Connection

from applier.copy.port import ChunkDone, CopyFence
from applier.model.events import TableName
from applier.sinks.bookkeeping.copy_table import CopyBook
from applier.sinks.bookkeeping.progress_table import FenceState
from applier.sinks.failpoint import reach
from applier.sinks.write_transaction import WriteSession, raise_translated

S_co = TypeVar("S_co", bound=WriteSession, covariant=True)


class ChunkSessions(Protocol[S_co]):
    """``WriteSessions`` of one database, whose own kind of session puts the rows."""

    def locked(self, lock: Callable[[Connection], FenceState]) -> tuple[S_co, FenceState]:
        """Begin a transaction, call ``lock`` in it, and return the session with what ``lock`` returned. ApplierError if that fails."""
        ...


@dataclass(frozen=True, slots=True)
class ChunkTransaction(Generic[S_co]):
    """Writes chunks of the copy that ``book`` is of: see ``ChunkWriter.write``."""

    book: CopyBook
    sessions: ChunkSessions[S_co]

    def write(self, fence: CopyFence, table: TableName, target: TableName, number: int, put: Callable[[S_co], ChunkDone]) -> ChunkDone:
        """Return what the chunk ``number`` of ``table`` has put into ``target``. ``put`` puts it there, unless it is done."""
        session, state = self.sessions.locked(lambda connection: self.book.share(connection, fence))
        try:
            done = self._done(session, state, table, number, lambda: put(session))
        except Exception as error:  # noqa: BLE001 - every path of the handler raises
            session.discard()
            raise_translated(session, error, "copying rows", table=str(target))
        except BaseException:  # Spark ends the task: a kept session would hold the row of the copy
            session.discard()
            raise
        session.release()
        return done

    def _done(self, session: WriteSession, state: FenceState, table: TableName, number: int, put: Callable[[], ChunkDone]) -> ChunkDone:
        if state is not FenceState.HELD:
            raise self.book.fenced(session.connection)
        done = self.book.find(session.connection, table, number)
        if done is None:
            done = put()
            self.book.store(session.connection, table, number, done)
            reach("copy.before_commit")
            _commit(session)
        return done


def _commit(session: WriteSession) -> None:
    try:
        session.commit()
    except Exception as error:
        ours = session.translate_commit(error)
        if ours is None:
            raise
        raise ours from None
