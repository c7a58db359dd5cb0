"""The times of positions in a binlog: from the scan of a run, or from a replica's stored state where no log is read."""

from dataclasses import dataclass

from applier.model.errors import NeedsOperator
from applier.model.position import Ts
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.scan import Scan
from applier.sources.binlog.state import SourceState


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTimeline:
    """Knows the files' name and, of one position, its time: ``known_at`` and everything after it was at ``time_ms`` or later."""

    base_name: str = ""
    known_at: int = 0
    known_ms: int | None = None
    end: int | None = None
    """The end of the log, where the server was asked: a replica that is there is up to date."""
    now_ms: int = 0

    @classmethod
    def of(cls, state: SourceState | None) -> "StoredTimeline":
        """Return what the state tells."""
        if state is None:
            return cls()
        if state.last is None:
            return cls(base_name=state.base_name)
        return cls(base_name=state.base_name, known_at=state.last.end, known_ms=state.last.time_ms)

    def time_ms(self, ts: Ts) -> int | None:
        """Return when it was, in milliseconds since the epoch; None: not known."""
        if self.end is not None and ts >= self.end:
            return self.now_ms
        return self.known_ms if ts >= self.known_at else None

    def ts_at_ms(self, time_ms: int) -> None:  # noqa: ARG002 - of the port
        """Return None: a position does not hold its time."""
        return

    def text(self, ts: Ts) -> str:
        """Spell the position as ``FILE:POSITION``."""
        return BinlogPosition.of(ts).text(self.base_name)

    @property
    def spells_offsets(self) -> bool:
        """Return True: there is one log."""
        return True


def read_state(text: str | None) -> SourceState | None:
    """Read a stored state; None: there is none, or a newer program has written it. For commands that only show it."""
    try:
        return None if text is None else SourceState.parse(text)
    except NeedsOperator:
        return None


class BinlogTimeline:
    """Implements ``Timeline``. The source tells it which scan it follows."""

    def __init__(self) -> None:
        self._scan: Scan | None = None
        self._base_names: dict[int, str] = {}

    def name(self, generation: int, base_name: str) -> None:
        """Say what the files are called, before any of them is read."""
        self._base_names[generation] = base_name

    def follow(self, scan: Scan | None, generation: int, base_name: str) -> None:
        """Take times from this scan from now on."""
        self._base_names[generation] = base_name
        self._scan = scan

    def time_ms(self, ts: Ts) -> int | None:
        """Return up to when a replica at ``ts`` is what upstream was: until the first group after it was written.

        At the end of the log it is the time of the server's last answer: a replica that has everything has no lag, and after a quiet
        night it does not lag hours when the first transaction of the morning comes.
        """
        scan = self._scan
        if scan is None:
            return None
        with scan.journal() as journal:
            # + 1: the ts of a DDL is its end - 1.
            group, behind_ms = journal.last_at(ts + 1), journal.time_behind(ts + 1)
            until_ms = scan.quiet_ms if ts + 1 >= journal.last else behind_ms
        known = [time_ms for time_ms in (until_ms, group.time_ms if group else None) if time_ms]
        return max(known, default=None)

    def ts_at_ms(self, time_ms: int) -> None:  # noqa: ARG002 - of the port
        """Return None: a position does not hold its time."""
        return

    def text(self, ts: Ts) -> str:
        """Spell the position as ``FILE:POSITION``."""
        position = BinlogPosition.of(ts)
        return position.text(self._base_names.get(position.generation) or next(reversed(self._base_names.values()), ""))

    @property
    def spells_offsets(self) -> bool:
        """Return True: there is one log."""
        return True
