"""What a source may keep in the sink, in addition to the progress: what prepared transactions have changed, until they are committed.

Upstream may then purge the files of its log that hold them.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol


class XaReader(Protocol):
    """Executor side. Frozen and picklable; opens its own connection."""

    def read(self, place: int) -> Iterable[bytes]:
        """Yield what is kept of the transaction that was prepared at ``place``, piece by piece; nothing if it is not kept.

        ApplierError: the sink does not answer.
        """
        ...


class XaStore(Protocol):
    """Driver side. Each call is a separate transaction at least; errors as in the sink.

    It needs no fence: the content of a position never changes, and a position is forgotten only once the progress has passed its end, which
    nothing undoes.
    """

    @property
    def reader(self) -> XaReader:
        """The reading part, for executors."""
        ...

    def sizes(self) -> Mapping[int, int]:
        """Return the position and size of each transaction that is kept; a transaction over which a run has died may be incomplete."""
        ...

    def keep(self, place: int, pieces: Iterable[bytes]) -> None:
        """Store what a transaction has changed, instead of what is there."""
        ...

    def forget(self, places: Collection[int]) -> None:
        """Delete transactions that are settled."""
        ...
