"""Both sides at one moment: the sink as it is now, and upstream as it was at the sink's checkpoint, where upstream can show it.

A moment lasts for one range. A long transaction would keep the applier's DDLs waiting, and the history that both servers must not delete.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from applier.model.position import NO_TS, Ts
from applier.verify.reader import Reader


@dataclass(frozen=True, slots=True)
class Sides:
    """A session on each side. One thread uses them at a time."""

    upstream: Reader
    sink: Reader

    @contextmanager
    def moment(self) -> Iterator[Ts]:
        """See one state of each side until the block ends; yield the sink's checkpoint in it (NO_TS: there is none)."""
        try:
            self.sink.begin()
            # Read in the transaction that reads the rows: so upstream's snapshot is exactly theirs.
            ts = self.sink.checkpoint_ts()
            self.upstream.begin(ts or None)
            yield ts or NO_TS
        finally:
            self.sink.end()
            self.upstream.end()

    def close(self) -> None:
        """Close both sessions; the next use opens others."""
        self.sink.close()
        self.upstream.close()
