"""A replica as its bookkeeping shows it from outside: progress, owner, pause, open DDLs, quarantine, and how its last run ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from applier.sinks.copy_state import CopyRow
from applier.sinks.ledger_entry import LedgerEntry
from applier.sinks.loaded_dump import LoadedDump
from applier.sinks.progress import Progress


@dataclass(frozen=True, slots=True)
class Pause:
    """An operator's decision that nothing is read, until the replica is resumed."""

    said_by: str
    said_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """The end of a run. ``error_class`` is "" where nothing has failed; ``message`` says what ended it."""

    command: str
    exit_code: int
    message: str
    error_class: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEnd:
    """An end as it was read, by the clock of the database. It is that of the replica's last run if their epochs are the same."""

    end: RunEnd
    epoch: int
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The run that owns the replica."""

    epoch: int
    host: str
    process: int
    started_at: datetime
    heartbeat_at: datetime


class OwnerState(StrEnum):
    """Whether the run that owns a replica lives."""

    ALIVE = "alive"
    FROZEN = "frozen"
    """It holds the replica and its heartbeat is older than the lease: the next run takes over."""
    DEAD = "dead"
    """It ended without releasing the replica: the next run takes over at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerView:
    """The run that owns a replica, as others see it. ``silent_s``: seconds since its last heartbeat."""

    owner: Owner
    silent_s: float
    state: OwnerState


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyView:
    """The initial copy of a replica. ``rows`` and ``size_bytes``: what its done chunks have; ``rows_planned``: by upstream's statistics."""

    row: CopyRow
    tables: int
    tables_done: int
    rows: int
    rows_planned: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """One replica from outside. ``progress`` is None before its first ``begin``, ``owner`` while no run owns it."""

    progress: Progress | None
    updated_at: datetime | None
    """When the progress was last written, by the clock of the database."""
    owner: OwnerView | None
    undecided: tuple[LedgerEntry, ...]
    """The DDLs that began and did not end: one that runs now, or one that a dead run left."""
    quarantined: int
    """Events in quarantine that wait for the operator."""
    last_end: StoredEnd | None = None
    """How the replica's last run has ended; None while one runs, or if it died without a word."""
    pause: Pause | None = None
    """None: the replica is not paused."""
    copy: CopyView | None = None
    """The initial copy; None: the replica has not begun with one."""
    loaded: LoadedDump | None = None
    """What the sink held when the replica began; None: no one has recorded it."""

    @property
    def is_consistent(self) -> bool:
        """Whether the sink equals upstream at one point in time. False: its copy is not read, or later changes are not applied."""
        if self.copy is None:
            return self.progress is not None
        return self.copy.row.is_consistent_at(None if self.progress is None else self.progress.checkpoint_ts)
