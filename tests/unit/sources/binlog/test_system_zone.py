"""The zone SYSTEM of upstream's sessions becomes an offset, unless a DDL needs the rules of the zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent
from applier.model.position import Ts
from applier.sources.binlog.server import SYSTEM, in_known_zone


class ZonedServer:
    """Answers like a server whose system has a zone."""

    def __init__(self, zone: str) -> None:
        self._zone = ZoneInfo(zone)

    def rows(self, _what: str, statement: str) -> list[tuple[int]]:
        times = [int(part.split(")")[0]) for part in statement.split("FROM_UNIXTIME(")[1:]]
        return [(offset,) for offset in dict.fromkeys(map(self._offset, times))]

    def _offset(self, time_s: int) -> int:
        return int(datetime.fromtimestamp(time_s, UTC).astimezone(self._zone).utcoffset().total_seconds())


def zone_of(query: str, server: str) -> str:
    ddl = DdlEvent(commit_ts=Ts(1), schema="s", table="t", query=query, ddl_type=5, time_ms=1_593_561_600_000, session=(SYSTEM,))
    return dict(in_known_zone(ddl, ZonedServer(server)).session)["time_zone"]


@pytest.mark.parametrize(
    ("query", "server", "zone"),
    [
        ("ALTER TABLE t ADD c DATETIME DEFAULT CURRENT_TIMESTAMP", "Europe/Berlin", "+02:00"),
        ("ALTER TABLE t MODIFY c DATETIME", "Asia/Kathmandu", "+05:45"),
        ("ALTER TABLE t ADD c TIMESTAMP DEFAULT '2020-01-01'", "UTC", "+00:00"),
        ("ALTER TABLE t ADD c DATETIME DEFAULT '2020-01-01'", "America/St_Johns", "-02:30"),
    ],
)
def test_the_zone_is_the_offset_at_the_time_of_the_ddl(query, server, zone):
    assert zone_of(query, server) == zone


@pytest.mark.parametrize("query", ["ALTER TABLE t MODIFY c DATETIME", "CREATE TABLE t (c TIMESTAMP DEFAULT '2020-01-01')"])
def test_times_that_need_the_rules_of_a_zone_with_several_offsets_are_refused(query):
    with pytest.raises(NeedsOperator, match="several offsets"):
        zone_of(query, "Europe/Berlin")
