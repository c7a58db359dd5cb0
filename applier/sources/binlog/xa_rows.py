"""Prepared XA transactions until their commit is read: what this process has read, if there is room, and the rest in the sink.

Without the first each XA COMMIT costs a connection, which reads what was prepared again: 2,000 of them took 18 s. Without the second the
server has to keep the files that hold them.
"""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Final, NamedTuple

from applier.model.errors import ApplierError, SourceError
from applier.model.failure import FailureKind
from applier.model.xa_store import XaReader
from applier.sources.binlog.content import GroupContent
from applier.sources.binlog.settings import BinlogSettings

MOST_BYTES: Final = 16 << 20
"""What a process keeps. A transaction that it does not keep is read again."""


class XaPosition(NamedTuple):
    """Where a transaction was prepared. ``server``: its identity."""

    settings: BinlogSettings
    server: str
    begin: int
    xid: str


class XaRows:
    """Used by the threads of a process. The oldest ones make room."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes, self._size = most_bytes, 0
        self._lock = Lock()
        self._kept: OrderedDict[XaPosition, GroupContent] = OrderedDict()

    def keep(self, position: XaPosition, content: GroupContent) -> None:
        """Keep what a transaction holds; but none that is in a file."""
        if content.memory_bytes is None or content.memory_bytes > self._most_bytes:
            return
        with self._lock:
            self._drop(position)
            self._kept[position] = content
            self._size += content.memory_bytes
            while self._size > self._most_bytes:
                self._drop(next(iter(self._kept)))

    def of(self, position: XaPosition) -> GroupContent | None:
        """Return what a transaction holds; None: it is not kept. It stays: a range may be read again."""
        with self._lock:
            return self._kept.get(position)

    def _drop(self, position: XaPosition) -> None:
        content = self._kept.pop(position, None)
        if content is not None:
            self._size -= content.memory_bytes or 0


@dataclass(frozen=True, slots=True)
class KeptTransactions:
    """What the sink keeps: of the transactions that were prepared at ``positions``."""

    positions: frozenset[int] = frozenset()
    reader: XaReader | None = None

    def read(self, position: int) -> GroupContent | None:
        """Return what a transaction holds; None: it is not kept. SourceError "unreachable": the sink does not answer."""
        if self.reader is None or position not in self.positions:
            return None
        try:
            return GroupContent.restored(self.reader.read(position))
        except ApplierError as error:
            raise SourceError(
                "the sink does not return a prepared transaction that it keeps",
                remedy=error.remedy,
                kind=FailureKind.UNREACHABLE,
                cause=error.message,
            ) from error


NOTHING_KEPT: Final = KeptTransactions()
