"""How much of what upstream has written is not applied yet. The embedded broker forgets, so upstream waits for the replica."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from applier.model.position import Ts
from applier.model.segment import is_beyond

ROWS_LIMIT: Final = 2_000_000
"""Bytes. The broker keeps about 5 MB of each partition; the sum of all partitions must fit into one."""
LIMIT: Final = 2 * ROWS_LIMIT


@dataclass(slots=True)
class Backlog:
    """Counts bytes up to each resolved ts. ``rows_limit`` and ``limit``: bytes that upstream may be ahead with rows, with anything."""

    rows_limit: int = ROWS_LIMIT
    limit: int = LIMIT
    _written: int = 0
    _applied: int = 0
    _promises: deque[tuple[Ts, int]] = field(default_factory=deque)

    def wrote(self, size: int) -> None:
        """Add bytes of records."""
        self._written += size

    def promised(self, ts: Ts) -> None:
        """Remember that everything so far is at or before the resolved ``ts``."""
        self._promises.append((ts, self._written))

    def applied(self, checkpoint_ts: Ts) -> None:
        """Forget what the replica has durably."""
        while self._promises and not is_beyond(self._promises[0][0], checkpoint_ts):
            _, self._applied = self._promises.popleft()

    @property
    def takes_rows(self) -> bool:
        """Whether upstream may commit."""
        return self._written - self._applied < self.rows_limit

    @property
    def takes_promises(self) -> bool:
        """Whether upstream may write a resolved ts: while the replica is paused these add up too."""
        # Rows without a promise above them could never be applied, and upstream would wait for ever.
        promised = self._promises[-1][1] if self._promises else self._applied
        return self._written - self._applied < self.limit or self._written > promised
