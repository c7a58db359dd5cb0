"""What the page asks of the sink: the DDLs and the quarantine of the replica, and whether it is paused.

Each question has a connection of its own, so it never disturbs the sessions of the run. One thread asks at a time, and all who ask within
two seconds get the same answer: a page that is open on twenty screens costs the database no more than one.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any, Final, Protocol, TypeVar

from sqlalchemy import Connection

from applier.ddl import ddl_type_name
from applier.model.errors import Remedy, RetryableSinkError
from applier.model.position import DIGITS, Timeline, iso_at
from applier.sinks.bookkeeping.ledger import Ledger
from applier.sinks.bookkeeping.owner_table import PauseStore
from applier.sinks.bookkeeping.quarantine import Quarantine
from applier.sinks.bookkeeping.run_end_table import RunEndTable
from applier.sinks.ledger_entry import LedgerEntry
from applier.sinks.overview import StoredEnd
from applier.sinks.quarantine import QuarantineEntry
from applier.sinks.registry import bookkeeping_of, open_glance
from applier.sinks.settings import SinkSettings

FRESH_S: Final = 2.0
PATIENCE_S: Final = 8.0
"""How long a request waits for another one that asks the sink now."""
MAX_ENTRIES: Final = 100
MAX_TEXT: Final = 2000
"""Characters of a statement or an error. The commands show the whole."""

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
        """Pause the replica; another operator's pause stays as it is."""
        ...

    def resume(self) -> None:
        """Resume the replica, if it is paused."""
        ...


class SinkAccess:
    """A ``ReplicaAccess`` that asks the sink itself. ``timeline``: what the replica's timestamps mean, if that is known."""

    def __init__(self, settings: SinkSettings, timeline: Callable[[], Timeline] = lambda: DIGITS) -> None:
        self._settings = settings
        self._tables, self._timeline = bookkeeping_of(settings), timeline
        self._glances = _Glances(settings)
        self._pauses = PauseStore(self._tables, self._glances)
        self._asking = Lock()
        self._answers: dict[str, tuple[float, Document]] = {}

    def ddls(self) -> Document:
        """Return the newest DDLs."""

        def work(connection: Connection) -> Document:
            entries = Ledger(self._tables).recent(connection, MAX_ENTRIES, MAX_TEXT)
            return {"ddls": [_ddl(entry, self._timeline()) for entry in entries], "at_most": MAX_ENTRIES}

        return self._answer("ddls", work)

    def quarantine(self) -> Document:
        """Return the events in quarantine: first events that wait for the operator, then the newest of the others."""

        def work(connection: Connection) -> Document:
            quarantine = Quarantine(self._tables)
            entries = [_quarantined(entry, self._timeline()) for entry in quarantine.recent(connection, MAX_ENTRIES, MAX_TEXT)]
            return {"held": quarantine.count(connection), "entries": entries, "at_most": MAX_ENTRIES}

        return self._answer("quarantine", work)

    def last_end(self) -> Document:
        """Return how an earlier run has ended."""
        return self._answer("last_end", lambda connection: {"end": _end(RunEndTable(self._tables).last(connection))})

    def pause(self, said_by: str) -> None:
        """Pause the replica; another operator's pause stays as it is."""
        self._pauses.begin(said_by)

    def resume(self) -> None:
        """Resume the replica, if it is paused."""
        self._pauses.end()

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
            document = self._glances.read(work, name)
            self._answers[name] = (time.monotonic(), document)
            return document
        finally:
            self._asking.release()


@dataclass(frozen=True, slots=True)
class _Glances:
    """Transactions on connections of their own. The page's messages need no ``doing``."""

    settings: SinkSettings

    def read(self, work: Callable[[Connection], T], doing: str) -> T:
        """Run reads."""
        del doing
        with open_glance(self.settings) as connection:
            return work(connection)

    def change(self, work: Callable[[Connection], T], doing: str) -> T:
        """Run ``work`` and commit."""
        del doing
        with open_glance(self.settings, changes=True) as connection:
            return work(connection)


def _ddl(entry: LedgerEntry, timeline: Timeline) -> Document:
    return {
        # As text: JavaScript rounds integers above 2**53.
        "ts": timeline.text(entry.ddl.commit_ts),
        "time": iso_at(entry.ddl.commit_ts, timeline),
        "schema": entry.ddl.schema,
        "table": entry.ddl.table,
        "type": ddl_type_name(entry.ddl.ddl_type),
        "query": entry.ddl.query,
        "state": entry.state,
        "began_at": _iso(entry.began_at),
        "ended_at": _iso(entry.ended_at),
        "error": entry.error,
    }


def _quarantined(entry: QuarantineEntry, timeline: Timeline) -> Document:
    event = entry.event
    return {
        # Not the key: it is a part of a row, and there is no password. `applier quarantine show` shows it.
        "position": str(event.position),
        "stream": str(event.position.stream),
        "offset": event.position.offset,
        "state": event.state,
        "ts": timeline.text(event.commit_ts) if event.commit_ts else None,
        "time": iso_at(event.commit_ts, timeline),
        "schema": event.schema,
        "table": event.table,
        "error": event.error,
        "found_at": _iso(entry.found_at),
        "settled_at": _iso(entry.settled_at),
        "settled_by": entry.settled_by or None,
    }


def _end(stored: StoredEnd | None) -> Document | None:
    if stored is None:
        return None
    return {
        "command": stored.end.command,
        "exit_code": stored.end.exit_code,
        "error_class": stored.end.error_class,
        "message": stored.end.message[:MAX_TEXT],
        "remedy": stored.end.remedy[:MAX_TEXT],
        "ended_at": _iso(stored.ended_at),
    }


def _iso(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat(timespec="milliseconds")
