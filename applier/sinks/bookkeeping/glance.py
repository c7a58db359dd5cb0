"""The newest entries of the ledger and of the quarantine, for people who look at a running replica: a few, with their texts cut."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from applier.ddl import ddl_type_name
from applier.model.position import Offset, Stream, Ts
from applier.model.rejected_event import EventPlace
from applier.model.timeline import Timeline, iso_at
from applier.sinks.bookkeeping.bookkeeping import Bookkeeping, as_datetime

MAX_ENTRIES: Final = 100
MAX_TEXT: Final = 2000
"""Characters of a statement or an error. The commands show the whole."""


@dataclass(frozen=True, slots=True)
class Glance:
    """A look at the bookkeeping of one replica, as JSON objects. Statements inside the caller's transaction.

    ``timeline``: what the replica's timestamps mean, as far as that is known now.
    """

    bookkeeping: Bookkeeping
    timeline: Callable[[], Timeline]

    def ddls(self, connection: Connection) -> dict[str, Any]:
        """Return the newest DDLs first."""
        rows = self.bookkeeping.run(connection, "ledger_recent", at_most=MAX_ENTRIES, at_most_text=MAX_TEXT)
        return {"ddls": [_ddl(row, self.timeline()) for row in rows], "at_most": MAX_ENTRIES}

    def quarantine(self, connection: Connection) -> dict[str, Any]:
        """Return the events that wait for the operator first, then the newest of the others."""
        rows = self.bookkeeping.run(connection, "quarantine_recent", at_most=MAX_ENTRIES, at_most_text=MAX_TEXT)
        held = int(self.bookkeeping.run(connection, "quarantine_count").scalar_one())
        return {"held": held, "entries": [_entry(row, self.timeline()) for row in rows], "at_most": MAX_ENTRIES}

    def last_end(self, connection: Connection) -> dict[str, Any]:
        """Return how the last run that has ended did so; None before that."""
        row = self.bookkeeping.run(connection, "run_end_glance", at_most_text=MAX_TEXT).one_or_none()
        return {"end": None if row is None else dict(row._mapping) | {"ended_at": _moment(row.ended_at)}}  # noqa: SLF001 - SQLAlchemy's name


def _ddl(row: Any, timeline: Timeline) -> dict[str, Any]:
    ts = Ts(int(row.ddl_ts))
    return {
        # As text: JavaScript rounds integers above 2**53.
        "ts": timeline.text(ts),
        "time": iso_at(ts, timeline),
        "schema": row.schema_name,
        "table": row.table_name,
        "type": ddl_type_name(row.ddl_type),
        "query": row.query,
        "state": row.state,
        "began_at": _moment(row.began_at),
        "ended_at": _moment(row.ended_at),
        "error": row.error,
    }


def _entry(row: Any, timeline: Timeline) -> dict[str, Any]:
    place = EventPlace(Stream(row.topic, row.partition_number), Offset(row.record_offset), row.event_index)
    ts = Ts(int(row.commit_ts))
    return {
        # Not the key: it is a part of a row, and there is no password. `applier quarantine show` shows it.
        "place": str(place),
        "stream": str(place.stream),
        "offset": place.offset,
        "state": row.state,
        "ts": timeline.text(ts) if ts else None,
        "time": iso_at(ts, timeline),
        "schema": row.schema_name,
        "table": row.table_name,
        "error": row.error,
        "found_at": _moment(row.found_at),
        "settled_at": _moment(row.settled_at),
        "settled_by": row.settled_by,
    }


def _moment(value: Any) -> str | None:
    return None if value is None else as_datetime(value).isoformat(timespec="milliseconds")
