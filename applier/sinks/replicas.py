"""What callers see of the replicas whose bookkeeping one sink holds: their names, what is stored of each, and the end of it.

The sink's own tables are never touched here: they are what the replica was for.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol


class ReplicaStore(Protocol):
    """The bookkeeping of replicas. Each call is a separate transaction."""

    def names(self) -> Sequence[str]:
        """Return the names of all replicas in the bookkeeping, sorted. Needs no ownership."""
        ...

    def holdings(self) -> Mapping[str, int]:
        """Count the rows of this replica by table of the bookkeeping; tables without rows are skipped. Needs no ownership."""
        ...

    def reset(self, said_by: str) -> None:
        """Forget how far this replica is: its next run begins anew. Skip rules and a pause stay. Fenced: this run does not own it."""
        ...

    def remove(self) -> None:
        """Forget everything of this replica. Fenced: this run does not own it."""
        ...
