"""The zones that TIMESTAMP values name (canal_json_and_simple.md 4.3): each must be the one that the configuration names.

The sink reads all of them in ``source.time_zone``, so a value of another zone would be hours off. It is not converted: an hour of the other
zone may be ambiguous, and values of one column would come from TiCDC servers that are not set up alike.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from applier.model.errors import ProtocolError, Remedy
from applier.model.failure import OTHER_ZONE

NO_ZONE: Final = frozenset({"", "Local"})
"""``Local`` names no zone: the values are of the zone of the TiCDC server, as in the other protocols. The applier itself writes ''."""
_LAST_YEAR: Final = 2038
"""The year in which TIMESTAMP ends."""
_STEP: Final = timedelta(days=1)


class NamedZones:
    """The zones that may be named. ``configured``: '' if it is not known; then each may be."""

    __slots__ = ("_accepted", "_configured")

    def __init__(self, configured: str) -> None:
        self._configured, self._accepted = configured, set(NO_ZONE)

    def check(self, zones: Iterable[str]) -> None:
        """ProtocolError (time_zone), without a position: one of them is another zone."""
        for zone in zones:
            if not self.accepts(zone):
                raise _refuse(zone, self._configured)

    def accepts(self, zone: str) -> bool:
        """Return whether values of this zone are read rightly."""
        if zone in self._accepted:
            return True
        if self._configured and not is_same_zone(zone, self._configured):
            return False
        self._accepted.add(zone)
        return True


@lru_cache(maxsize=64)
def is_same_zone(named: str, configured: str) -> bool:
    """Return whether both have the same time on each day that a TIMESTAMP can have. Some 0.05 s."""
    if named == configured:
        return True
    one, other = _zone(named), _zone(configured)
    if one is None or other is None:
        return False
    day = datetime(1970, 1, 1, tzinfo=UTC)
    while day.year <= _LAST_YEAR:
        if day.astimezone(one).utcoffset() != day.astimezone(other).utcoffset():
            return False
        day += _STEP
    return True


def _zone(name: str) -> tzinfo | None:
    try:
        # An offset such as +08:00, as the configuration may have it.
        return datetime.strptime(name, "%z").tzinfo if name[:1] in {"+", "-"} else ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return None


def _refuse(named: str, configured: str) -> ProtocolError:
    error = ProtocolError.at(None, OTHER_ZONE, f"a TIMESTAMP is in the zone {named}, and source.time_zone is {configured}")
    error.remedy = Remedy(
        "simple.set-source-time-zone",
        f'Set time_zone = "{named}" under [source]. If TiCDC servers of one changefeed have different zones, start them with one --tz',
    )
    return error
