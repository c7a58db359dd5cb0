"""TiDB's timestamps (TSO): physical milliseconds << 18 | logical counter."""

from dataclasses import dataclass
from typing import Final

from applier.model.position import Ts, physical_ms


@dataclass(frozen=True, slots=True)
class TsoTimeline:
    """A TSO holds its time."""

    def time_ms(self, ts: Ts) -> int | None:
        """Return the wall-clock part in milliseconds since the epoch; None for 0."""
        return physical_ms(ts) if ts else None

    def text(self, ts: Ts) -> str:
        """Return the digits."""
        return str(ts)


TSO_TIMELINE: Final = TsoTimeline()
