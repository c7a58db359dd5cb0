"""What the page asks of the sink: the DDLs and the quarantine of the replica, and whether it is paused.

Each question has a connection of its own, so it never disturbs the sessions of the run. One thread asks at a time, and everybody who asks
within two seconds gets the same answer: a page that is open on twenty screens costs the database no more than one.
"""

import time
from collections.abc import Callable
from threading import Lock
from typing import Any, Final, Protocol, TypeVar

from sqlalchemy import Connection

from applier.model.errors import RetryableSinkError
from applier.model.remedy import Remedy
from applier.model.timeline import DIGITS, Timeline
from applier.sinks.bookkeeping.glance import Glance
from applier.sinks.bookkeeping.pause_table import SqlPauseStore
from applier.sinks.pause import PauseStore
from applier.sinks.registry import bookkeeping_of, open_glance
from applier.sinks.settings import SinkSettings

FRESH_S: Final = 2.0
PATIENCE_S: Final = 8.0
"""How long a request waits for another one that asks the sink now."""

Document = dict[str, Any]
T = TypeVar("T")


class ReplicaAccess(Protocol):
    """What a page may know of a replica beyond the state of its run. Thread-safe. ApplierError if the sink does not answer."""

    def ddls(self) -> Document:
        """Return the newest DDLs."""
        ...

    def quarantine(self) -> Document:
        """Return the events in quarantine."""
        ...

    def last_end(self) -> Document:
        """Return how an earlier run has ended."""
        ...

    def pause(self, said_by: str) -> None:
        """Pause the replica; the pause of somebody else stays as it is."""
        ...

    def resume(self) -> None:
        """Resume the replica, if it is paused."""
        ...


class SinkAccess:
    """A ``ReplicaAccess`` that asks the sink itself. ``timeline``: what the replica's timestamps mean, as far as that is known."""

    def __init__(self, settings: SinkSettings, timeline: Callable[[], Timeline] = lambda: DIGITS) -> None:
        self._settings = settings
        self._glance = Glance(bookkeeping_of(settings), timeline)
        self._asking = Lock()
        self._answers: dict[str, tuple[float, Document]] = {}

    def ddls(self) -> Document:
        """Return the newest DDLs."""
        return self._answer("ddls", self._glance.ddls)

    def quarantine(self) -> Document:
        """Return the events in quarantine."""
        return self._answer("quarantine", self._glance.quarantine)

    def last_end(self) -> Document:
        """Return how an earlier run has ended."""
        return self._answer("last_end", self._glance.last_end)

    def pause(self, said_by: str) -> None:
        """Pause the replica; the pause of somebody else stays as it is."""
        self._pauses().begin(said_by)

    def resume(self) -> None:
        """Resume the replica, if it is paused."""
        self._pauses().end()

    def _pauses(self) -> PauseStore:
        def change(work: Callable[[Connection], T]) -> T:
            with open_glance(self._settings, changes=True) as connection:
                return work(connection)

        return SqlPauseStore(bookkeeping_of(self._settings), change, change)

    def _answer(self, name: str, work: Callable[[Connection], Document]) -> Document:
        # A server that does not answer would otherwise hold one thread per request.
        if not self._asking.acquire(timeout=PATIENCE_S):
            raise RetryableSinkError(
                "the sink does not answer", remedy=Remedy("status.look-at-page", "Look at the state of the run on this page")
            )
        try:
            known = self._answers.get(name)
            if known is not None and time.monotonic() - known[0] < FRESH_S:
                return known[1]
            with open_glance(self._settings) as connection:
                document = work(connection)
            self._answers[name] = (time.monotonic(), document)
            return document
        finally:
            self._asking.release()
