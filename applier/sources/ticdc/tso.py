"""TiDB's timestamps (TSO): physical milliseconds << 18 | logical counter."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from applier.model.position import AHEAD_MS, EPOCH, MILLISECOND, Ts, moment_of

LOGICAL_BITS: Final = 18
FIRST_MS: Final = 1_420_070_400_000
"""2015-01-01: no cluster has an older TSO."""
_UNIX_TIMES: Final = (("seconds", range(10**9, 10**11)), ("milliseconds", range(10**12, 10**14)), ("microseconds", range(10**15, 10**17)))


def physical_ms(ts: Ts) -> int:
    """Return the wall-clock part of a TSO in milliseconds since the Unix epoch."""
    return ts >> LOGICAL_BITS


def later_by(ts: Ts, milliseconds: int) -> Ts:
    """Return the TSO that is so much later."""
    return Ts(ts + (milliseconds << LOGICAL_BITS))


def ts_at(moment: datetime) -> Ts:
    """Return the smallest TSO in the millisecond of ``moment`` (an aware datetime, not before 1970)."""
    return Ts((moment - EPOCH) // MILLISECOND << LOGICAL_BITS)


def datetime_of(ts: Ts) -> datetime:
    """Return the wall-clock part of a TSO as an aware datetime in UTC, exact to the millisecond (a float would not be)."""
    return moment_of(physical_ms(ts))


def implausible(ts: int, now_ms: int) -> str | None:
    """Say why an operator cannot mean ``ts`` as a TSO at the time ``now_ms`` (milliseconds since the Unix epoch); None: it is plausible.

    A wrong one silently loses rows: every row up to it counts as part of a dump that the sink was loaded from.
    """
    time_ms = physical_ms(Ts(ts))
    if time_ms > now_ms + AHEAD_MS:
        return f"is in the future ({datetime_of(Ts(ts)):%Y-%m-%d %H:%M:%S} UTC)"
    if time_ms >= FIRST_MS:
        return None
    for unit, values in _UNIX_TIMES:
        if ts in values:
            return f"is a Unix time in {unit}"
    return "is before 2015, when there was no TiDB"


@dataclass(frozen=True, slots=True)
class TsoTimeline:
    """A TSO holds its time."""

    def time_ms(self, ts: Ts) -> int | None:
        """Return the wall-clock part in milliseconds since the epoch; None for 0."""
        return physical_ms(ts) if ts else None

    def ts_at_ms(self, time_ms: int) -> Ts:
        """Return the least TSO of a millisecond."""
        return Ts(time_ms << LOGICAL_BITS)

    def text(self, ts: Ts) -> str:
        """Return the digits."""
        return str(ts)

    @property
    def spells_offsets(self) -> bool:
        """Return False: an offset is a number of its partition."""
        return False


TSO_TIMELINE: Final = TsoTimeline()
