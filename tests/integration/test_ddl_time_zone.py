"""A DDL runs in the zone of upstream's session, with the results of ``unit/sinks/sqlite/test_ddl_time_zone.py``."""

import pytest

from applier.model.errors import NeedsOperator
from applier.sources.ticdc.tso import ts_at
from tests.integration.mysql_replica import SHOP, Replica, read, run, states
from tests.unit.sinks.sqlite.test_ddl_time_zone import CASES, MOMENT, ROW, TABLE

NAMED = "Asia/Nowhere"


@pytest.fixture
def table(shop: Replica, url: str) -> Replica:
    """A table with a row, whose times are in UTC."""
    run(url, "SET time_zone = '+00:00'", f"CREATE TABLE {SHOP}.t {TABLE}", f"INSERT INTO {SHOP}.t VALUES {ROW}")
    return shop


def shown(url: str, column: str) -> str:
    """Return a value as a session in UTC sees it, which is the zone of the wire."""
    ((value,),) = read(url, f"SELECT CAST(CONVERT_TZ(`{column}`, @@time_zone, '+00:00') AS CHAR) FROM {SHOP}.t")
    return str(value)


@pytest.mark.parametrize(("clause", "column", "expected"), CASES)
def test_old_rows_get_the_times_that_upstreams_session_has_seen(table: Replica, url: str, clause: str, column: str, expected: str) -> None:
    table.ddl(f"ALTER TABLE t {clause}", "t", ts=ts_at(MOMENT), zone="+08:00")
    ((value,),) = read(url, f"SELECT CAST(`{column}` AS CHAR) FROM {SHOP}.t")
    assert value == expected


@pytest.mark.parametrize("clause", [clause for clause, _, _ in CASES])
def test_without_the_zone_it_stops_before_an_intent(table: Replica, url: str, clause: str) -> None:
    with pytest.raises(NeedsOperator, match="time zone of upstream's session, which is not known"):
        table.ddl(f"ALTER TABLE t {clause}", "t", zone="")
    assert states(table) == []
    assert shown(url, "ts") == "2020-01-01 20:00:00"


def test_bounds_of_partitions_are_in_the_zone_of_upstreams_session(shop: Replica, url: str) -> None:
    bounds = "PARTITION p0 VALUES LESS THAN (UNIX_TIMESTAMP('2024-01-01 00:00:00')), PARTITION p1 VALUES LESS THAN MAXVALUE"
    query = f"CREATE TABLE t (ts TIMESTAMP NOT NULL) PARTITION BY RANGE (UNIX_TIMESTAMP(ts)) ({bounds})"
    shop.ddl(query, "t", zone="+08:00")
    found = read(
        url, f"SELECT partition_description FROM information_schema.partitions WHERE table_schema = '{SHOP}' AND partition_name = 'p0'"
    )
    assert [int(text) for (text,) in found] == [1704067200 - 8 * 3600]


def test_a_zone_that_the_server_does_not_know_stops_before_an_intent(table: Replica) -> None:
    with pytest.raises(NeedsOperator, match="does not know: Asia/Nowhere") as raised:
        table.ddl("ALTER TABLE t MODIFY ts DATETIME", "t", zone=NAMED)
    assert "source.ddl_time_zone" in raised.value.remedy
    table.ddl("ALTER TABLE t MODIFY dt DATETIME(3)", "t", zone=NAMED)
    table.ddl("ALTER TABLE t MODIFY ts DATETIME", "t", zone="+08:00")
