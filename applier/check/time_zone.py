"""Examines the zone of TIMESTAMP texts (``source.time_zone``), which rows show that hold the time of their commit, and that of DDLs."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Final
from zoneinfo import ZoneInfo

from applier.config import Config
from applier.ddl.zone_use import ZONE_REMEDY
from applier.model.errors import ApplierError, Remedy
from applier.model.finding import CheckFinding, of_error, ok, warning
from applier.upstream.snapshot_session import SessionZone

CHECK: Final = "time zone"
DDL_CHECK: Final = "time zone of DDLs"
STEP_S: Final = 900
"""All zones differ from UTC by a multiple of a quarter of an hour."""
NEAR_S: Final = 120
FARTHEST_S: Final = 14 * 3600
ENOUGH: Final = 3
"""Number of rows that must show the same offset: a single one may be a coincidence."""


def zone_findings(config: Config, ahead_s: Sequence[float]) -> list[CheckFinding]:
    """Compare TIMESTAMP texts, read as UTC, with the commits of their rows. ``ahead_s``: by how many seconds they are later."""
    found = []
    if (facts := config.source.time_zone_warning()) is not None:
        found.append(warning(CHECK, f"an hour comes twice a year in {facts['time_zone']}", facts["remedy"]))
    seen = Counter(round(ahead / STEP_S) * STEP_S for ahead in ahead_s if _is_near(ahead))
    if not seen or seen.most_common(1)[0][1] < ENOUGH:
        return [*found, ok(CHECK, f"{config.source.time_zone}; no row shows whether that is right")]
    offset, rows = seen.most_common(1)[0]
    expected = _offset_s(config.source.time_zone)
    if seen.get(expected):
        return [*found, ok(CHECK, f"{config.source.time_zone}, as TIMESTAMP values show")]
    detail = f"source.time_zone is {config.source.time_zone}, but {rows} TIMESTAMP values are near their commit in {_text(offset)}"
    remedy = Remedy(
        "check.set-source-time-zone", "Set source.time_zone to the zone of the TiCDC server (--tz). Such values may also be upstream's own"
    )
    return [*found, warning(CHECK, detail, remedy)]


def _is_near(ahead_s: float) -> bool:
    return abs(ahead_s) <= FARTHEST_S + NEAR_S and abs(ahead_s - round(ahead_s / STEP_S) * STEP_S) <= NEAR_S


def _offset_s(zone: str) -> int:
    """Return the zone's present offset from UTC: what was committed lately has it."""
    now = datetime.now(UTC)
    if zone[:1] in "+-":
        hours, minutes = zone[1:].split(":")
        sign = -1 if zone[0] == "-" else 1
        return sign * (int(hours) * 3600 + int(minutes) * 60)
    offset = now.astimezone(ZoneInfo(zone)).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())


def _text(offset_s: int) -> str:
    return str(timezone(timedelta(seconds=offset_s)))


def session_zone_finding(config: Config) -> CheckFinding:
    """Tell which zone DDLs have that depend on it, and who decided it. It may ask upstream."""
    upstream = config.source.upstream_settings()
    try:
        zone = SessionZone(config.source.ddl_time_zone, upstream)()
    except ApplierError as error:
        return of_error(DDL_CHECK, error)
    if not zone:
        return warning(DDL_CHECK, "upstream's is not known: a DDL that depends on it will stop the run", ZONE_REMEDY)
    return ok(DDL_CHECK, f"{zone}, as {'source.ddl_time_zone' if config.source.ddl_time_zone else 'upstream'} says")
