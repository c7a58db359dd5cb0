"""Owning a replica (DESIGN.md section 8): a named lock, a heartbeat, an epoch, and transactions that only the owner runs.

The lock (``GET_LOCK``) is held by one session that cannot reconnect and that also runs the DDLs: while the server still executes a dead
run's DDL, the lock is not free. If that session is lost, ``retake`` takes the lock again and makes sure that no other run has become the
owner in between. The lock keeps working runs apart; only the epoch in the progress row makes it safe.

A run waits for the lock until another run releases it, is dead, or is taken over. If the lock is free and the heartbeat does not change,
the owner is dead: take over at once. If the lock is held and the heartbeat is older than the lease, the owner is frozen: end its sessions,
which releases the lock.

The heartbeat is a thread with its own session, because the owner's session may be busy with a DDL for hours. It decides nothing: it renews
the heartbeat and records errors and a lost lock for the main thread.
"""

import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import chain, repeat
from threading import Event, Thread
from typing import Any, TypeVar
from uuid import uuid4

import stamina
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import ApplierError, InvariantViolation, Remedy, RetryableSinkError, SinkError, SinkFull, UnknownOutcome
from applier.mysql.errors import ErrorVerdict, is_lost_session, meaning_of, translate
from applier.mysql.queries import QUERIES
from applier.mysql.session import ServerSession, discard, roll_back, session_id, transaction
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.epochs import Epochs
from applier.sinks.bookkeeping.owner_table import OwnerRow, OwnerTable, SessionTable, fenced
from applier.sinks.lock_wait_log import log_lock_wait
from applier.sinks.mysql.registry import SessionRegistry, end_holder, lock_holder, release_lock, take_lock
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.overview import OwnerState, OwnerView
from applier.sinks.settings import SCHEMA, SinkSettings

BEATS_PER_LEASE = 10
STILL_BEATS = 2
"""Intervals without a beat after which a run that has lost its lock counts as dead."""


def interval_s(lease_s: float) -> float:
    """Return the time between two beats in seconds."""
    return lease_s / BEATS_PER_LEASE


class Heartbeat:
    """Renews ``owner.heartbeat_at`` until stopped. ``error`` and ``is_lock_lost`` are read by the main thread."""

    def __init__(self, settings: SinkSettings, bookkeeping: Bookkeeping, run_id: str, lock_name: str) -> None:
        self._settings, self._bookkeeping, self._run_id, self._lock_name = settings, bookkeeping, run_id, lock_name
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="applier-heartbeat", daemon=True)
        self._owner_session = 0
        self.error: Exception | None = None
        self.is_lock_lost = False

    def start(self, owner_session: int) -> None:
        """Start the heartbeat; ``owner_session`` is the session that holds the lock."""
        self._owner_session = owner_session
        self._thread.start()

    def watch(self, owner_session: int) -> None:
        """The session ``owner_session`` holds the lock again."""
        self._owner_session = owner_session
        self.is_lock_lost = False

    def stop(self) -> None:
        """Stop; returns when the thread has ended (within the lease, even if the server does not answer)."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        connection: ServerSession | None = None
        while not self._stopped.wait(interval_s(self._settings.lease_s)) and self.error is None:
            try:
                connection = connection or open_session(self._settings, Purpose.BEAT)
                self._beat(connection)
            except (RetryableSinkError, SinkFull):
                # The database is unreachable or full. Writers find that out themselves and stop after their retries; a beat is retried.
                discard(connection)
                connection = None
            except Exception as error:  # noqa: BLE001 - nothing catches the errors of a thread: the main thread raises this one
                self.error = error
        discard(connection)

    def _beat(self, connection: Connection) -> None:
        try:
            with transaction(connection):
                is_mine = OwnerTable(self._bookkeeping).beat(connection, self._run_id)
                owner = None if is_mine else OwnerTable(self._bookkeeping).read(connection)
                # Read twice: the main thread may take the lock again, on another session, between the two.
                watched = self._owner_session
                if lock_holder(connection, self._lock_name) != watched and watched == self._owner_session:
                    self.is_lock_lost = True
        except (SQLAlchemyError, OSError) as error:
            raise translate(error, "renewing the heartbeat") from error
        if not is_mine:
            raise fenced(self._bookkeeping.name, owner)


LOCK_SLICE_S = 1
"""Seconds for which the server waits for the lock before we look at the owner's heartbeat again."""
ENDING_S = 30
"""Seconds at least that the server gets to end a session: for a DDL it takes longer, until it has rolled back."""


class _StoppedHeartbeat:
    """Whether a heartbeat did not change for ``limit_s`` by our own clock. The database's clock may have been set back meanwhile."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._beat: datetime | None = None
        self._since_s = 0.0

    def is_seen(self, owner: OwnerRow | None, now_s: float) -> bool:
        """Check again; ``now_s`` is of our own clock, which never steps back."""
        beat = None if owner is None else owner.owner.heartbeat_at
        if beat != self._beat:
            self._beat, self._since_s = beat, now_s
        return beat is not None and now_s - self._since_s > self._limit_s


@dataclass(frozen=True, slots=True)
class LockWait:
    """Waits for the lock ``lock_name`` of one replica. Database errors come through as SQLAlchemy's."""

    settings: SinkSettings
    bookkeeping: Bookkeeping
    lock_name: str

    def for_other_run(self, connection: Connection, own_token: str, *, take_over: bool) -> None:
        """Take the lock on ``connection``. Fenced if another run is alive and keeps it for ``lock_timeout_s``.

        ``own_token`` is the registered session that must not be ended; ``take_over`` ends a living owner too.
        """
        interval = interval_s(self.settings.lease_s)
        # However short the timeout, it suffices to see that a dead run's heartbeat stands still.
        deadline = time.monotonic() + max(self.settings.lock_timeout_s, (STILL_BEATS + 1) * interval)
        is_ending = False
        still = _StoppedHeartbeat(STILL_BEATS * interval)
        for wait_s in chain([0], repeat(LOCK_SLICE_S)):
            is_last = time.monotonic() > deadline  # before the look: however long the look lasts, what it sees counts
            is_taken = take_lock(connection, self.lock_name, wait_s)
            owner = self._owner(connection)
            if is_taken and (take_over or self.is_dead(owner) or still.is_seen(owner, time.monotonic())):
                return
            if is_taken:
                # Its owner lives and has only lost the lock: it must be able to take it again.
                release_lock(connection, self.lock_name)
                time.sleep(interval / 2)
            elif take_over or (owner is not None and owner.silent_s > self.settings.lease_s):
                if not is_ending:
                    is_ending, is_last, deadline = True, False, time.monotonic() + self._ending_s
                SessionRegistry(self.bookkeeping).end_others(connection, own_token)
                end_holder(connection, self.lock_name)
            if is_last:
                raise fenced(self.settings.name, owner)
            if wait_s == 0:
                log_lock_wait(fenced(self.settings.name, owner))

    def for_own_session(self, connection: Connection, run_id: str) -> None:
        """Take the lock again for the run ``run_id``, whose former session the server is ending.

        Fenced if another run has become the owner; RetryableSinkError if the server takes long to end the session.
        """
        deadline = time.monotonic() + self._ending_s
        is_taken = False
        while not is_taken:
            is_last = time.monotonic() > deadline  # as above
            is_taken = take_lock(connection, self.lock_name, LOCK_SLICE_S)
            owner = self._owner(connection)
            if owner is None or owner.run_id != run_id:
                raise fenced(self.settings.name, owner)
            if is_last and not is_taken:
                message = "the server is still ending this run's former session, which holds the replica lock"
                remedy = Remedy("mysql.wait-for-rollback", "Wait until the server has rolled back what that session did")
                raise RetryableSinkError(message, remedy=remedy, replica=self.settings.name)

    def is_dead(self, owner: OwnerRow | None) -> bool:
        """Return whether the owner is dead, given that the lock is free."""
        return owner is None or owner.silent_s > STILL_BEATS * interval_s(self.settings.lease_s)

    @property
    def _ending_s(self) -> float:
        return max(self.settings.lock_timeout_s, ENDING_S)

    def _owner(self, connection: Connection) -> OwnerRow | None:
        with transaction(connection):
            return OwnerTable(self.bookkeeping).read(connection)


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
        """Take the lock again unless this run's own session answers and holds it. Errors as in ``retake``.

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


T = TypeVar("T")


def commit_owned(ownership: Ownership, retries: int, work: Callable[[Connection], T], doing: str, **facts: Any) -> T:
    """Run ``work`` and COMMIT on the owner's session; return what ``work`` returned.

    What was rolled back is retried, at most ``retries`` times, on a new session if the old one is lost. UnknownOutcome if the answer to
    COMMIT was lost; Fenced if another run has become the owner; other errors of ``work`` come through.
    """
    for attempt in stamina.retry_context(on=RetryableSinkError, attempts=retries + 1, timeout=None):
        with attempt:
            # Not before the first attempt: the check costs a round trip, and a lost session is found by the work itself.
            if attempt.num > 1:
                ownership.ensure()
            return _once(ownership.connection, work, doing, facts)
    raise RetryableSinkError("retries ended without an outcome", doing=doing)


def _once(connection: Connection, work: Callable[[Connection], T], doing: str, facts: dict[str, Any]) -> T:
    is_sent = False
    try:
        result = work(connection)
        is_sent = True
        connection.commit()
    except (SQLAlchemyError, OSError) as error:
        roll_back(connection)
        raise _judged(error, doing, facts, is_sent=is_sent) from error
    except BaseException:
        roll_back(connection)
        raise
    return result


def _judged(error: Exception, doing: str, facts: dict[str, Any], *, is_sent: bool) -> SinkError:
    ours = translate(error, doing, **facts)
    # After COMMIT was sent, only these codes say that the server has rolled back.
    if is_sent and meaning_of(error).verdict is not ErrorVerdict.RETRY:
        return UnknownOutcome("the answer to COMMIT was lost", doing=doing, code=ours.facts.get("code"), **facts)
    return ours
