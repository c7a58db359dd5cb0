"""The heartbeat of a run: a thread with its own session, because the owner's session may be busy with a DDL for hours.

It decides nothing: it renews the heartbeat and records errors and a lost lock for the main thread.
"""

from threading import Event, Thread

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import RetryableSinkError, SinkFull
from applier.mysql.errors import translate
from applier.mysql.session import ServerSession, discard, transaction
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.owner_table import OwnerTable, fenced
from applier.sinks.mysql.registry import lock_holder
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings

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
