"""The time zone in which a DDL runs on the sink: that of upstream's session, if the DDL depends on it and the server knows it."""

from typing import Any, Final

from sqlalchemy import Connection, text

from applier.ddl.zone_use import TIME_ZONE, in_zone_of_need
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent
from applier.model.remedy import Remedy
from applier.mysql.session_variables import zone_on_server
from applier.sinks.mysql.ddl.old_rows import OldTable

_KNOWN: Final = text("SELECT CONVERT_TZ('2020-01-01 00:00:00', '+00:00', :zone) IS NOT NULL")
_REMEDY: Final = Remedy(
    "mysql.load-zone-tables-for-ddl",
    "Load the zone tables (mysql_tzinfo_to_sql /usr/share/zoneinfo | mysql mysql), or set source.ddl_time_zone to an offset such as +08:00",
)


def in_its_zone(connection: Connection, ddl: DdlEvent, old: OldTable) -> DdlEvent:
    """Return the DDL with its zone if it depends on it, else without. NeedsOperator: the zone is not known, or not to the server.

    Asked before the intent is written: a zone that is corrected later counts.
    """
    zoned = in_zone_of_need(ddl, lambda: old.types, old.holds)
    zone = "" if ddl.is_of_log else str(dict(zoned.session).get(TIME_ZONE, ""))
    if zone and not connection.execute(_KNOWN, {"zone": zone_on_server(zone)}).scalar_one():
        facts: dict[str, Any] = {"table": str(ddl.name), "commit_ts": ddl.commit_ts, "query": ddl.query}
        message = f"the DDL depends on the time zone of upstream's session, which the sink's server does not know: {zone}"
        raise NeedsOperator(message, remedy=_REMEDY, **facts)
    return zoned
