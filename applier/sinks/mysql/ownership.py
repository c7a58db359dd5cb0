"""Owning a replica (DESIGN.md section 8): a named lock, a heartbeat, an epoch. How a run waits for the lock: ``lock_wait``.

The lock (``GET_LOCK``) is held by one session that cannot reconnect and that also runs the DDLs: while the server still executes a dead
run's DDL, the lock is not free. If that session is lost, ``retake`` takes the lock again and makes sure that no other run has become the
owner in between. The lock keeps honest runs apart; the epoch in the progress row is what makes it safe.
"""

import os
import socket
from hashlib import sha256
from uuid import uuid4

import stamina
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import ApplierError, InvariantViolation, RetryableSinkError
from applier.mysql.errors import is_lost_session, translate
from applier.mysql.queries import QUERIES
from applier.mysql.session import ServerSession, discard, session_id, transaction
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.epochs import Epochs
from applier.sinks.bookkeeping.owner_table import OwnerRow, OwnerTable, SessionTable
from applier.sinks.mysql.heartbeat import Heartbeat
from applier.sinks.mysql.lock_wait import LockWait
from applier.sinks.mysql.registry import SessionRegistry, end_holder, lock_holder
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.overview import OwnerState, OwnerView
from applier.sinks.settings import SCHEMA, SinkSettings


def lock_name(settings: SinkSettings) -> str:
    """Return the name of a replica's lock: a hash, because lock names have at most 64 characters and ignore case.

    Replicas of one name in two bookkeeping schemas are two. Some servers ignore the case of a schema's name.
    """
    replica = settings.name if settings.schema == SCHEMA else f"{settings.schema.casefold()}\0{settings.name}"
    return f"applier:{sha256(replica.encode()).hexdigest()[:40]}"


class Ownership:
    """One run's ownership of one replica. Used from the main thread only."""

    def __init__(self, settings: SinkSettings, bookkeeping: Bookkeeping) -> None:
        self._settings, self._bookkeeping = settings, bookkeeping
        self._registry = SessionRegistry(bookkeeping)
        self.run_id = uuid4().hex
        self._lock_name = lock_name(settings)
        self._wait = LockWait(settings, bookkeeping, self._lock_name)
        self._heartbeat = Heartbeat(settings, bookkeeping, self.run_id, self._lock_name)
        self._connection: ServerSession | None = None
        self._token = ""
        self._former = set[str]()
        """Tokens of sessions that held the lock, or may have, and were not seen to have ended."""
        self._session_id = 0

    @property
    def connection(self) -> Connection:
        """The session that holds the lock, for DDL. InvariantViolation before ``acquire``; errors of ``retake`` if it was lost."""
        if self._connection is None or self._connection.is_lost:
            if not self._token:
                message = "the replica is used before this run has acquired it"
                raise InvariantViolation(message, replica=self._settings.name)
            self.retake()
        return self._required()

    def _required(self) -> ServerSession:
        if self._connection is None:
            message = "the owner's session is not open"
            raise InvariantViolation(message, replica=self._settings.name)
        return self._connection

    def acquire(self, *, take_over: bool) -> int:
        """Become the owner and return the epoch. Fenced if another run is alive and keeps the lock for ``lock_timeout_s``."""
        for attempt in stamina.retry_context(on=is_lost_session, attempts=self._settings.retries + 1, timeout=None):
            with attempt:
                epoch = self._acquire(take_over=take_over)
                self._heartbeat.start(self._session_id)
                return epoch
        raise RetryableSinkError("retries ended without an outcome", doing="acquiring the replica")

    def _acquire(self, *, take_over: bool) -> int:
        self._open()
        try:
            # Of an attempt whose session was lost: the server may not have noticed that, and it would look like another run.
            self._end_former()
            self._wait.for_other_run(self._required(), self._token, take_over=take_over)
            epoch = self._claim()
        except (SQLAlchemyError, OSError) as error:
            self._drop()
            raise translate(error, "acquiring the replica", replica=self._settings.name) from error
        except BaseException:
            self._drop()
            raise
        self._former.clear()
        return epoch

    def lost(self) -> Exception | None:
        """Return why this run must stop; None if it is the owner. A lock that was lost is taken again here."""
        if self._heartbeat.error is not None or not self._heartbeat.is_lock_lost:
            return self._heartbeat.error
        try:
            self.retake()
        except RetryableSinkError:
            # The database cannot be reached: the heartbeat reports the lock again, and every write checks the epoch.
            return None
        except ApplierError as error:
            return error
        return None

    @property
    def heartbeat_error(self) -> Exception | None:
        """The error of the heartbeat; for any thread."""
        return self._heartbeat.error

    def ensure(self) -> None:
        """Take the lock again unless this run's own session answers and holds it. Errors: those of ``retake``.

        The session's number is compared too: a proxy between may have replaced the session.
        """
        connection = self.connection
        try:
            found = connection.execute(QUERIES["session_and_holder"], {"lock_name": self._lock_name}).one()
            connection.rollback()
        except (SQLAlchemyError, OSError):
            found = None
        if found != (self._session_id, self._session_id):
            self.retake()

    def retake(self) -> None:
        """Replace the owner's session by a new one that holds the lock; Fenced if another run has become the owner.

        The old session is ended first, so whatever the server still executed for it has ended when this returns. RetryableSinkError if
        the server takes long to end it, or cannot be reached.
        """
        self._drop()
        self._open()
        try:
            self._end_former()
            self._wait.for_own_session(self._required(), self.run_id)
        except (SQLAlchemyError, OSError) as error:
            self._drop()
            raise translate(error, "taking the replica lock again", replica=self._settings.name) from error
        except BaseException:
            self._drop()
            raise
        self._former.clear()
        self._heartbeat.watch(self._session_id)

    def open_background(self) -> ServerSession:
        """Open a session for a statement that runs for long. It ends with this run's ownership: who takes over ends it."""
        connection = open_session(self._settings, Purpose.OWN)
        try:
            self._registry.register(connection)
        except (SQLAlchemyError, OSError) as error:
            discard(connection)
            raise translate(error, "registering a session", replica=self._settings.name) from error
        return connection

    def end_other_sessions(self) -> None:
        """End every session of the replica but the owner's, so that a write in flight ends now."""
        try:
            self._registry.end_others(self.connection, self._token)
        except (SQLAlchemyError, OSError) as error:
            raise translate(error, "ending the replica's other sessions") from error

    def judge(self, connection: Connection, row: OwnerRow) -> OwnerView:
        """Judge, on any session, whether the run that owns the replica lives: a dead one has lost its lock too."""
        # A free lock with a fresh heartbeat is a run that has lost its session and takes the lock again.
        if lock_holder(connection, self._lock_name) is None:
            state = OwnerState.DEAD if self._wait.is_dead(row) else OwnerState.ALIVE
        else:
            state = OwnerState.FROZEN if row.silent_s > self._settings.lease_s else OwnerState.ALIVE
        return OwnerView(owner=row.owner, silent_s=row.silent_s, state=state)

    def release(self) -> None:
        """Stop the heartbeat, delete the owner's row, and release the lock."""
        self._heartbeat.stop()
        if self._connection is None:
            return
        try:
            with transaction(self._connection) as connection:
                OwnerTable(self._bookkeeping).release(connection, self.run_id)
                SessionTable(self._bookkeeping).forget(connection, self._token)
        except (SQLAlchemyError, OSError):
            # The server has ended the session and with it the lock; the next run finds a heartbeat that stands still.
            pass
        finally:
            self._drop()

    def _open(self) -> None:
        self._connection = open_session(self._settings, Purpose.OWN)
        try:
            self._token = self._registry.register(self._connection)
            self._session_id = session_id(self._connection)
        except (SQLAlchemyError, OSError) as error:
            self._drop()
            raise translate(error, "registering a session", replica=self._settings.name) from error

    def _drop(self) -> None:
        # Remembered until they were seen to end: an attempt that is cut off must not leave a session that holds the lock.
        if self._token:
            self._former.add(self._token)
        discard(self._connection)
        self._connection = None

    def _end_former(self) -> None:
        for token in self._former:
            end_holder(self._required(), token)

    def _claim(self) -> int:
        """Raise the epoch. A writer of the old run may hold the progress row: its session is ended first."""
        for attempt in stamina.retry_context(on=_may_claim_again, attempts=self._settings.retries + 1, timeout=None):
            with attempt:
                self._registry.end_others(self._required(), self._token)
                try:
                    with transaction(self._required()) as connection:
                        epoch = Epochs(self._bookkeeping).claim(connection, self.run_id, socket.gethostname(), os.getpid())
                except (SQLAlchemyError, OSError) as error:
                    raise translate(error, "raising the epoch") from error
                return epoch
        raise RetryableSinkError("retries ended without an outcome", doing="raising the epoch")


def _may_claim_again(error: Exception) -> bool:
    # A lost session holds no lock: the attempt begins with a new one.
    return isinstance(error, RetryableSinkError) and not is_lost_session(error)
