"""The time zone of upstream's sessions: what the operator says, else what upstream's server gives to sessions that set none."""

from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import text

from applier.ddl.zone_use import ZONE_REMEDY
from applier.model.errors import NeedsOperator
from applier.mysql.session import discard, open_reader
from applier.upstream.settings import UpstreamSettings
from applier.upstream.snapshot_session import STATEMENT_TIMEOUT_S, failures_explained

_ABBREVIATIONS: Final = frozenset({"CET", "EET", "EST", "GMT", "HST", "MET", "MST", "WET"})
"""Names of the IANA database that clocks in other zones show too."""
_ZONE: Final = text("SELECT @@GLOBAL.time_zone, @@GLOBAL.system_time_zone")


class SessionZone:
    """Asked by the driver when a DDL may depend on the zone; the first answer counts for the run."""

    def __init__(self, configured: str, upstream: UpstreamSettings | None) -> None:
        self._zone, self._upstream = configured, upstream

    def __call__(self) -> str:
        """Return a name or an offset; '' if nothing says it. ApplierError: upstream does not answer. NeedsOperator: no such zone."""
        if not self._zone and self._upstream is not None:
            self._zone = _asked(self._upstream)
        return self._zone


def _asked(upstream: UpstreamSettings) -> str:
    with failures_explained("asking for its time zone"):
        connection = open_reader(upstream.server, upstream.time_zone, STATEMENT_TIMEOUT_S)
        try:
            of_sessions, of_system = connection.execute(_ZONE).one()
        finally:
            discard(connection)
    is_system = str(of_sessions).upper() == "SYSTEM"
    zone = str(of_system if is_system else of_sessions)
    if not _is_known(zone) or (is_system and _is_abbreviation(zone)):
        raise NeedsOperator("upstream names a time zone that is not known here", remedy=ZONE_REMEDY, time_zone=zone)
    return zone


def _is_abbreviation(zone: str) -> bool:
    """Return whether the name of a server's own zone may be what its clock shows at the time (%Z), which has no rules.

    EST is what New York shows in winter, and a zone of its own without summer time; +03 has been Moscow, with and without. UTC is one.
    """
    return zone in _ABBREVIATIONS or zone[:1] in {"+", "-"}


def _is_known(zone: str) -> bool:
    if zone[:1] in {"+", "-"}:
        return True
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
