"""Keeps prepared XA transactions in the sink until they are committed, so that the server may purge the files that hold them.

Written before the checkpoint that passes them, in transactions of their own: the state that is stored with the checkpoint says which ones
are whole. A run that dies in between writes them again. The driver reads them: its scan knows their positions, and they are few.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Final, Self

from applier.model.errors import SourceError
from applier.model.failure import FailureKind
from applier.model.xa_store import XaStore
from applier.sources.binlog.content import GroupContent
from applier.sources.binlog.event_stream import EventStream
from applier.sources.binlog.position import GENERATION_BITS
from applier.sources.binlog.reader import PREPARED, Log, gather_prepared
from applier.sources.binlog.xa_rows import KeptTransactions

MOST_BYTES: Final = 256 << 20
"""A larger transaction is not kept: its file is needed until its end, which ``applier status`` says."""
MOST_BYTES_IN_ALL: Final = 1 << 30
NEAR_BYTES: Final = 4 << 20
"""Bytes of log that are read to reach the next transaction on the same connection: about what another connection costs."""


class XaKeeper:
    """Of one replica, which has the log for as long as this lives. ``sizes``: what is kept and whole, by position."""

    def __init__(self, store: XaStore, log: Log, generation: int, sizes: Mapping[int, int]) -> None:
        self._store, self._log, self._generation, self._sizes = store, log, generation, dict(sizes)
        self._refused: set[int] = set()
        self._kept = KeptTransactions(frozenset(sizes), store.reader)

    @classmethod
    def resumed(cls, store: XaStore, log: Log, position: int, whole: Collection[int]) -> Self:
        """Begin at ``position``. ``whole``: what the stored state calls kept. Errors as in the sink."""
        stored = store.sizes()
        # Not what lies behind the position: that is a successor's, if this run has lost the replica, or it is written again.
        if gone := [each for each in stored if each < position and each not in whole]:
            store.forget(gone)
        return cls(store, log, position >> GENERATION_BITS, {each: size for each, size in stored.items() if each in whole})

    @property
    def kept(self) -> KeptTransactions:
        """What executors may read. Any thread may ask."""
        return self._kept

    def keep(self, prepared: Mapping[str, int]) -> list[str]:
        """Keep the transactions that are open; return the xids of the kept ones.

        SourceError: the server does not answer; or an error of the sink.
        """
        wanted = {position: xid for xid, position in prepared.items() if position not in self._sizes and position not in self._refused}
        # A position of another server's log is not found in this one.
        readable = [position for position in sorted(wanted) if position >> GENERATION_BITS == self._generation]
        try:
            for position, content in self._gathered(readable, wanted):
                size = content.size
                if size <= MOST_BYTES and sum(self._sizes.values()) + size <= MOST_BYTES_IN_ALL:
                    self._store.keep(position, content.pieces())
                    self._sizes[position] = size
        except SourceError as error:
            # Prepared before this program kept any, and purged since: its commit will report it.
            if error.kind is not FailureKind.PURGED:
                raise
        if wanted:
            self._refused.update(position for position in wanted if position not in self._sizes)
            self._kept = KeptTransactions(frozenset(self._sizes), self._store.reader)
        return sorted(xid for xid, position in prepared.items() if position in self._sizes)

    def forget_all_but(self, positions: Collection[int]) -> None:
        """Delete what no commit can need any more."""
        settled = [position for position in self._sizes if position not in positions]
        if settled:
            self._store.forget(settled)
            for position in settled:
                del self._sizes[position]
            self._kept = KeptTransactions(frozenset(self._sizes), self._store.reader)

    def _gathered(self, positions: Sequence[int], xids: Mapping[int, str]) -> Iterator[tuple[int, GroupContent]]:
        """Yield what was prepared at these positions, ascending; each is closed when the next one is asked for."""
        stream: EventStream | None = None
        try:
            for position in positions:
                content = PREPARED.of(self._log.prepared_at(position, xids[position]))
                if content is not None:
                    yield position, content
                    continue
                if stream is None or position - stream.position > NEAR_BYTES:
                    if stream is not None:
                        stream.close()
                    stream = self._log.stream(position)
                with closing(GroupContent()) as content:
                    gather_prepared(self._log, stream, position, xids[position], content)
                    yield position, content
        finally:
            if stream is not None:
                stream.close()
