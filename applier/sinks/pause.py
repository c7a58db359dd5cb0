"""Who has paused a replica, and when. Statements: ``bookkeeping/pause_table.py``."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Pause:
    """An operator's decision that nothing is read, until the replica is resumed."""

    said_by: str
    said_at: datetime
