"""A look at one replica from outside: what its bookkeeping says, without owning it, changing it or waiting for it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import Connection

from applier.sinks.bookkeeping import migration
from applier.sinks.bookkeeping.bookkeeping import OwnerRow, moment
from applier.sinks.bookkeeping.ledger import Ledger
from applier.sinks.bookkeeping.quarantine import Quarantine
from applier.sinks.port import LedgerEntry, Owner, Progress


class OwnerState(StrEnum):
    """Whether the run that owns a replica lives."""

    ALIVE = "alive"
    FROZEN = "frozen"
    """It holds the replica and its heartbeat is older than the lease: the next run takes over."""
    DEAD = "dead"
    """It ended without saying so: the next run takes over at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerView:
    """The run that owns a replica, as others see it. ``silent_s``: seconds since its last heartbeat."""

    owner: Owner
    silent_s: float
    state: OwnerState


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """One replica from outside. ``progress`` is None before it has begun, ``owner`` while no run owns it."""

    progress: Progress | None
    updated_at: datetime | None
    """When the progress was last written, by the clock of the database."""
    owner: OwnerView | None
    undecided: tuple[LedgerEntry, ...]
    """The DDLs that were begun and not ended: one that runs now, or one that a dead run left."""
    quarantined: int
    """Events in quarantine that wait for the operator."""


def look(connection: Connection, ledger: Ledger, judge: Callable[[OwnerRow], OwnerView]) -> Overview:
    """Read the bookkeeping of one replica; FatalSinkError if the tables are missing, or not those of this applier.

    ``judge`` knows how one sees in this database whether the owner lives.
    """
    books = ledger.bookkeeping
    migration.check(connection, books.schema)
    updated = connection.execute(books.query("progress_updated"), {"name": books.name}).scalar_one_or_none()
    owner = books.owner(connection)
    return Overview(
        progress=books.load(connection),
        updated_at=None if updated is None else moment(updated),
        owner=None if owner is None else judge(owner),
        undecided=tuple(ledger.intents(connection)),
        quarantined=Quarantine(books).count(connection),
    )
