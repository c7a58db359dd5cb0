"""What a replica's stored state tells of places in the log, for commands that read no log."""

from dataclasses import dataclass

from applier.model.errors import NeedsOperator
from applier.model.position import Ts
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.state import SourceState


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTimeline:
    """Knows the files' name and, of one place, its time: ``known_at`` and what lies behind it was at ``time_ms`` or later."""

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

    def text(self, ts: Ts) -> str:
        """Spell the place as ``FILE:POSITION``."""
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
