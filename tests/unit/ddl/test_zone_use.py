"""Which DDLs depend on the time zone of the session in which they ran upstream."""

from dataclasses import replace

import pytest

from applier.ddl.column_type import ColumnType
from applier.ddl.table_draft import parse_type
from applier.ddl.tokens import Cursor
from applier.ddl.zone_use import in_zone_of_need, zone_uses
from applier.model.errors import NeedsOperator
from applier.model.events import DdlEvent
from applier.model.position import Ts


def types(**columns: str) -> dict[str, ColumnType]:
    return {name: parse_type(Cursor(text)) for name, text in columns.items()}


TABLE = types(id="bigint", ts="timestamp", dt="datetime(3)", v="varchar(20)")
ALWAYS = [
    "CREATE TABLE t (id INT, ts TIMESTAMP DEFAULT '2020-01-01 00:00:00')",
    "CREATE TABLE t (id INT, d DATETIME DEFAULT '2020-01-01 00:00:00+08:00')",
    "CREATE TABLE t (ts TIMESTAMP) PARTITION BY RANGE (UNIX_TIMESTAMP(ts)) (PARTITION p VALUES LESS THAN (UNIX_TIMESTAMP('2024-01-01')))",
    "ALTER TABLE t ADD COLUMN c TIMESTAMP NOT NULL DEFAULT '2020-01-01'",
    "ALTER TABLE t ADD COLUMN (a INT, c TIMESTAMP DEFAULT 20200101000000)",
    "ALTER TABLE t ALTER COLUMN ts SET DEFAULT '2020-01-01 00:00:00'",
    "ALTER TABLE t MODIFY ts TIMESTAMP DEFAULT '2020-01-01 00:00:00'",
    "ALTER TABLE t ADD PARTITION (PARTITION p2 VALUES LESS THAN (UNIX_TIMESTAMP('2025-01-01 00:00:00')))",
    "ALTER TABLE t REORGANIZE PARTITION p1 INTO (PARTITION a VALUES LESS THAN (unix_timestamp('2025-01-01')))",
    "ALTER TABLE t ADD COLUMN c TIMESTAMP UNKNOWN_OPTION 5",
    "ALTER SOMETHING t SET TIMESTAMP = 5",
]
OF_ROWS = [
    "ALTER TABLE t ADD COLUMN c DATETIME DEFAULT CURRENT_TIMESTAMP",
    "ALTER TABLE t ADD c DATETIME(6) NOT NULL DEFAULT NOW(6) ON UPDATE NOW(6)",
    "ALTER TABLE t ADD c DATETIME DEFAULT LOCALTIME, ADD d INT",
    "ALTER TABLE t ADD c DATE DEFAULT (CURRENT_DATE)",
    "ALTER TABLE t ADD c VARCHAR(20) DEFAULT (DATE_FORMAT(NOW(), '%Y-%m-%d'))",
    "ALTER TABLE t ADD c VARCHAR(20) DEFAULT (MY_OWN(1))",
    "ALTER TABLE t ADD c TIMESTAMP DEFAULT (STR_TO_DATE('2020', '%Y'))",
    "ALTER TABLE t ADD c DATE AS (DATE(ts)) STORED",
    "ALTER TABLE t ADD c DATETIME GENERATED ALWAYS AS (FROM_UNIXTIME(id)) STORED",
    "ALTER TABLE t MODIFY ts DATETIME",
    "ALTER TABLE t CHANGE ts x VARCHAR(30)",
    "ALTER TABLE t MODIFY dt TIMESTAMP",
    "ALTER TABLE t MODIFY COLUMN v TIMESTAMP(3) NULL",
]
NEVER = [
    "CREATE TABLE t (id INT, ts TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, d DATETIME DEFAULT NOW())",
    "CREATE TABLE t (id INT, ts TIMESTAMP NOT NULL DEFAULT '0000-00-00 00:00:00', d DATETIME DEFAULT '2020-01-01')",
    "CREATE TABLE t (ts TIMESTAMP) PARTITION BY RANGE (UNIX_TIMESTAMP(ts)) (PARTITION p0 VALUES LESS THAN (1704067200))",
    "CREATE TABLE t (d DATE) PARTITION BY RANGE (TO_DAYS(d)) (PARTITION p VALUES LESS THAN (TO_DAYS('2024-01-01')))",
    "CREATE TABLE t (d DATETIME) PARTITION BY RANGE COLUMNS(d) (PARTITION p VALUES LESS THAN ('2024-01-01'))",
    "CREATE TABLE u LIKE t",
    "ALTER TABLE t ADD c TIMESTAMP NULL",
    "ALTER TABLE t ADD c TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP",
    "ALTER TABLE t ADD c DATETIME DEFAULT '2020-01-01 00:00:00', ADD INDEX (dt), DROP COLUMN v",
    "ALTER TABLE t ADD c VARCHAR(40) DEFAULT (UUID())",
    "ALTER TABLE t ADD c DATE AS (DATE(dt)) STORED, ADD d DATE AS (DATE(ts)) VIRTUAL",
    "ALTER TABLE t MODIFY ts TIMESTAMP(6) NOT NULL",
    "ALTER TABLE t MODIFY dt DATETIME DEFAULT CURRENT_TIMESTAMP",
    "ALTER TABLE t MODIFY v VARCHAR(90), CHANGE id number DECIMAL(30)",
    "ALTER TABLE t MODIFY nothing DATETIME",
    "ALTER TABLE t ALTER COLUMN v SET DEFAULT '2020-01-01'",
    "ALTER TABLE t ALTER COLUMN ts DROP DEFAULT",
    "ALTER TABLE t DROP PARTITION p0",
    "CREATE INDEX i ON t (ts)",
    "CREATE VIEW w AS SELECT NOW() FROM t",
    "DROP TABLE t",
    "ALTER PLACEMENT POLICY p FOLLOWERS = 4",
]  # fmt: skip


@pytest.mark.parametrize("query", ALWAYS)
def test_some_statements_depend_on_the_zone_whatever_rows_there_are(query: str) -> None:
    assert None in [use.rows for use in zone_uses(query, TABLE)]


@pytest.mark.parametrize("query", OF_ROWS)
def test_others_do_where_there_are_rows(query: str) -> None:
    uses = zone_uses(query, TABLE)
    assert uses
    assert None not in [use.rows for use in uses]


@pytest.mark.parametrize("query", NEVER)
def test_what_is_known_to_be_independent_is_left_alone(query: str) -> None:
    assert zone_uses(query, TABLE) == []


@pytest.mark.parametrize("query", [*ALWAYS, *OF_ROWS])
def test_without_the_tables_types_whatever_may_depend_is_found(query: str) -> None:
    assert zone_uses(query)
    assert zone_uses("ALTER TABLE t MODIFY dt DATETIME")


def event(query: str, **more: object) -> DdlEvent:
    return replace(DdlEvent(commit_ts=Ts(7), schema="s", table="t", query=query, ddl_type=5), **more)


KNOWN = (("time_zone", "+08:00"),)


def test_a_ddl_keeps_its_zone_only_if_it_depends_on_it() -> None:
    changed, widened = event("ALTER TABLE t MODIFY ts DATETIME", session=KNOWN), event("ALTER TABLE t MODIFY dt DATETIME(6)", session=KNOWN)
    assert in_zone_of_need(changed, lambda: TABLE, lambda _: True) == changed
    assert in_zone_of_need(widened, lambda: TABLE, lambda _: True).session == ()


def test_an_unknown_zone_stops_only_where_rows_have_such_values() -> None:
    ddl = event("ALTER TABLE t MODIFY ts DATETIME")
    assert in_zone_of_need(ddl, lambda: TABLE, lambda column: column != "ts") == ddl
    with pytest.raises(NeedsOperator, match="the times of ts in old rows") as raised:
        in_zone_of_need(ddl, lambda: TABLE, lambda column: column == "ts")
    assert "source.ddl_time_zone" in raised.value.remedy


def test_a_log_says_the_zone_itself() -> None:
    ddl = event("ALTER TABLE t MODIFY ts DATETIME", session=(("sql_mode", ""), ("timestamp", "5.0")))
    assert in_zone_of_need(ddl, lambda: TABLE, lambda _: True) == ddl
