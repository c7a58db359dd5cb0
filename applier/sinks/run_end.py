"""How a run has ended, as the sink stores it: what an operator asks first of a replica that does not run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


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
