"""What callers see of a pause: who has paused a replica, and the port to pause and resume it.

Statements: ``bookkeeping/pause_table.py``.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Pause:
    """An operator's decision that nothing is read, until the replica is resumed."""

    said_by: str
    said_at: datetime


class PauseStore(Protocol):
    """The pause of one replica. Each call is a separate transaction; none needs ownership."""

    def read(self) -> Pause | None:
        """Return the pause; None if the replica is not paused. Cheap: a run asks each second."""
        ...

    def begin(self, said_by: str) -> Pause | None:
        """Pause the replica; return the pause that was there before, which stays as it is."""
        ...

    def end(self) -> Pause | None:
        """Resume the replica; return the pause that has ended, None if there was none."""
        ...
