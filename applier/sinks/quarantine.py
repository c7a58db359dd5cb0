"""What callers see of the quarantine: entries, skip rules, and what a transaction stores. Statements: ``bookkeeping/quarantine.py``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from applier.model.events import FoldedName
from applier.model.position import NO_TS, Ts
from applier.model.rejected_event import MAX_QUARANTINED, EventPosition, KeptRecord, QuarantineState, RejectedEvent


class Settlement(NamedTuple):
    """The new state of an entry that waited, and who decided it."""

    position: EventPosition
    state: QuarantineState
    by: str


@dataclass(frozen=True, slots=True)
class Quarantined:
    """What a transaction stores in the quarantine in addition to its rows. Not picklable: it never leaves the process that makes it.

    ``record_of`` reads the record of an event from Kafka; SourceError if Kafka no longer has it. ``takes_refused``: rows that the
    database refuses are stored too; otherwise they stop the transaction. ``at_most`` limits the events that
    are new to the quarantine (None: no limit).
    """

    record_of: Callable[[RejectedEvent], KeptRecord]
    events: tuple[RejectedEvent, ...] = ()
    settled: tuple[Settlement, ...] = ()
    takes_refused: bool = True
    at_most: int | None = MAX_QUARANTINED


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineEntry:
    """A quarantined event, without its record."""

    event: RejectedEvent
    found_at: datetime
    settled_at: datetime | None = None
    settled_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipRule:
    """The operator's rule to skip the event at ``position``; without it, all events of ``commit_ts`` and ``table`` (None: any table)."""

    decided_by: str
    position: EventPosition | None = None
    commit_ts: Ts = NO_TS
    table: FoldedName | None = None
    decided_at: datetime | None = field(default=None, compare=False)
    """None before it is stored."""
