"""The times of places in a binlog: from the groups that the scan has seen, and from the server's word that nothing follows."""

from typing import Final

from applier.model.position import Ts
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.scan import Scan

UNKNOWN_FILE: Final = "binlog"
"""Stands for the base name of the files as long as no server has told it."""


class BinlogTimeline:
    """Implements ``Timeline``. The source tells it which scan it follows."""

    def __init__(self) -> None:
        self._scan: Scan | None = None
        self._base_names: dict[int, str] = {}

    def follow(self, scan: Scan | None, generation: int, base_name: str) -> None:
        """Take times from this scan from now on."""
        self._base_names[generation] = base_name
        self._scan = scan

    def time_ms(self, ts: Ts) -> int | None:
        """Return when the group was written that ends at ``ts``, or the last one before it.

        At the end of the log it is the time of the server's last word: a replica that has everything is not behind.
        """
        scan = self._scan
        if scan is None:
            return None
        with scan.journal() as journal:
            # + 1: the ts of a DDL is its end - 1.
            group = journal.last_at(ts + 1)
            is_all = ts >= journal.last
        if is_all and scan.quiet_ms:
            return max(scan.quiet_ms, group.time_ms if group else 0)
        return group.time_ms if group else None

    def text(self, ts: Ts) -> str:
        """Spell the place as ``FILE:POSITION``."""
        place = BinlogPosition.of(ts)
        return place.text(self._base_names.get(place.generation) or next(reversed(self._base_names.values()), UNKNOWN_FILE))
