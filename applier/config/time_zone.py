"""The zone of TIMESTAMP text: which names are known, and in which zones an hour comes twice."""

import re
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from applier.config.value import refuse
from applier.model.remedy import Remedy

TIMESTAMP_END: Final = 2038
"""The year in which TIMESTAMP ends."""
ZONE_OFFSET: Final = re.compile(r"[+-](0\d|1[0-4]):[0-5]\d")
"""What MySQL accepts as ``time_zone`` besides names."""


def check_session_zone(value: str) -> str:
    """Accept what ``check_time_zone`` accepts, and '': not known."""
    return value and _checked(value, "upstream's sessions")


def check_time_zone(value: str) -> str:
    """Accept ``UTC``, an offset such as ``+08:00``, or a name of the zone database."""
    return _checked(value, "the TiCDC server")


def _checked(value: str, which: str) -> str:
    if value.upper() == "UTC":
        return "UTC"
    if ZONE_OFFSET.fullmatch(value):
        return value
    try:
        ZoneInfo(value)
    except (KeyError, OSError, ValueError):
        near = get_close_matches(value, available_timezones(), n=1)
        hint = f"Did you mean {near[0]!r}?" if near else 'Give "UTC", an offset such as "+08:00", or a name such as "Asia/Shanghai".'
        raise refuse(f"is not a time zone: {value!r}", Remedy("config.give-time-zone", f"{hint} It is the zone of {which}")) from None
    return value


def ambiguous_years(zone: str) -> tuple[int, int] | None:
    """Return the first and last year, as far as TIMESTAMP reaches, in which an hour comes twice in the zone; None if there is none."""
    if zone == "UTC" or ZONE_OFFSET.fullmatch(zone):
        return None
    info, day = ZoneInfo(zone), datetime(1970, 1, 1, tzinfo=UTC)
    before, years = day.astimezone(info).utcoffset(), []
    # Day by day, about 25,000 steps and 0.05 s: zoneinfo does not show its transitions.
    while day.year < TIMESTAMP_END:
        day += timedelta(days=1)
        after = day.astimezone(info).utcoffset()
        if after is not None and before is not None and after < before:
            years.append(day.year)
        before = after
    return (years[0], years[-1]) if years else None
