"""Waiting for the replica lock: until another run releases it, is dead, or is taken over (DESIGN.md section 8).

If the lock is free and the heartbeat stands still, the owner is dead: take over at once. If the lock is held and the heartbeat is older
than the lease, the owner is frozen: end its sessions, which releases the lock.
"""

import time
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, repeat

from sqlalchemy import Connection

from applier.model.errors import RetryableSinkError
from applier.model.remedy import Remedy
from applier.mysql.session import transaction
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.owner_table import OwnerRow, OwnerTable, fenced
from applier.sinks.lock_wait_log import log_lock_wait
from applier.sinks.mysql.heartbeat import STILL_BEATS, interval_s
from applier.sinks.mysql.registry import SessionRegistry, end_holder, release_lock, take_lock
from applier.sinks.settings import SinkSettings

LOCK_SLICE_S = 1
"""Seconds for which the server waits for the lock before we look at the owner's heartbeat again."""
ENDING_S = 30
"""Seconds at least that the server gets to end a session: for a DDL it takes longer, until it has rolled back."""


class _StoppedHeartbeat:
    """Whether a heartbeat stood still for ``limit_s`` by our own clock. The database's clock may have been set back meanwhile."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._beat: datetime | None = None
        self._since_s = 0.0

    def is_seen(self, owner: OwnerRow | None, now_s: float) -> bool:
        """Look once more; ``now_s`` is of our own clock, which never steps back."""
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
