"""A DDL in the zone of upstream's session: the cases that the servers' test has too (``integration/test_ddl_time_zone.py``)."""

from datetime import UTC, datetime

import pytest

from applier.model.errors import NeedsOperator
from applier.model.position import Ts
from applier.sources.ticdc.tso import ts_at
from tests.rig.sqlite_file import SqliteFile

MOMENT = datetime(2021, 3, 4, 20, 6, 7, tzinfo=UTC)
TABLE = "(id INT PRIMARY KEY, ts TIMESTAMP NULL, dt DATETIME NULL, v VARCHAR(30))"
ROW = "(1, '2020-01-01 20:00:00', '2020-01-02 04:00:00', '2020-01-02 04:00:00')"
CASES = [
    ("MODIFY ts DATETIME", "ts", "2020-01-02 04:00:00"),
    ("MODIFY ts DATETIME(3)", "ts", "2020-01-02 04:00:00.000"),
    ("CHANGE ts seen VARCHAR(30)", "seen", "2020-01-02 04:00:00"),
    ("MODIFY dt TIMESTAMP NULL", "dt", "2020-01-01 20:00:00"),
    ("ADD COLUMN c DATETIME DEFAULT CURRENT_TIMESTAMP", "c", "2021-03-05 04:06:07"),
    ("ADD COLUMN c DATETIME NOT NULL DEFAULT NOW() ON UPDATE NOW()", "c", "2021-03-05 04:06:07"),
    ("ADD COLUMN c TIMESTAMP NOT NULL DEFAULT '2020-01-02 04:00:00'", "c", "2020-01-01 20:00:00"),
]
"""A clause, a column of the row after it, and its value as a session in UTC sees it. Upstream's session is at +08:00."""
VALUES = (1, "2020-01-01 20:00:00", "2020-01-02 04:00:00", "2020-01-02 04:00:00")


@pytest.fixture
def table(file: SqliteFile) -> SqliteFile:
    file.ddl_zone = "+08:00"
    file.ddl(f"CREATE TABLE t {TABLE}")
    file.insert("shop.t", VALUES)
    return file


def value(file: SqliteFile, column: str) -> str:
    return file.connection.execute(f'SELECT "{column}" FROM "shop.t"').fetchone()[0]


@pytest.mark.parametrize(("clause", "column", "expected"), CASES)
def test_old_rows_get_the_times_that_upstreams_session_has_seen(table: SqliteFile, clause: str, column: str, expected: str) -> None:
    table.ddl(f"ALTER TABLE t {clause}", ts=Ts(ts_at(MOMENT)))
    assert value(table, column) == expected


@pytest.mark.parametrize("clause", [clause for clause, _, _ in CASES])
def test_without_the_zone_it_stops_and_nothing_has_changed(table: SqliteFile, clause: str) -> None:
    table.ddl_zone = ""
    with pytest.raises(NeedsOperator, match="time zone of upstream's session, which is not known"):
        table.ddl(f"ALTER TABLE t {clause}")
    assert table.rows() == [VALUES]


def test_a_time_that_comes_twice_in_the_zone_of_the_session_stops(table: SqliteFile) -> None:
    table.connection.execute("UPDATE \"shop.t\" SET dt = '2020-10-25 02:30:00'")
    table.ddl_zone = "Europe/Berlin"
    with pytest.raises(NeedsOperator) as raised:
        table.ddl("ALTER TABLE t MODIFY dt TIMESTAMP NULL")
    assert "twice" in raised.value.facts["reason"]
    table.ddl("ALTER TABLE t MODIFY ts DATETIME")
    assert value(table, "ts") == "2020-01-01 21:00:00"


def test_a_wire_in_another_zone_than_utc_is_counted_in(tmp_path) -> None:
    file = SqliteFile(tmp_path / "replica.db", zone="+02:00", ddl_zone="+08:00")
    file.ddl(f"CREATE TABLE t {TABLE}")
    file.insert("shop.t", VALUES)
    file.ddl("ALTER TABLE t MODIFY ts DATETIME, MODIFY dt TIMESTAMP NULL")
    assert (value(file, "ts"), value(file, "dt")) == ("2020-01-02 02:00:00", "2020-01-01 22:00:00")
    file.close()


@pytest.mark.parametrize(
    "clauses",
    [
        ["ADD COLUMN c TIMESTAMP NULL DEFAULT '2020-01-02 04:00:00'"],
        ["ADD COLUMN c TIMESTAMP NOT NULL DEFAULT '2020-01-02 04:00:00'"],
        ["ADD COLUMN c TIMESTAMP NULL", "ALTER COLUMN c SET DEFAULT '2020-01-02 04:00:00'"],
        ["ADD COLUMN b TIMESTAMP NULL", "CHANGE b c TIMESTAMP NULL DEFAULT '2020-01-02 04:00:00'"],
        ["ADD COLUMN b TIMESTAMP NULL DEFAULT '2020-01-02 04:00:00'", "ADD COLUMN d INT", "RENAME COLUMN b TO c", "DROP COLUMN d"],
    ],
)
def test_a_later_row_without_the_column_gets_the_default_that_upstream_means(table: SqliteFile, clauses: list[str]) -> None:
    for clause in clauses:
        table.ddl(f"ALTER TABLE t {clause}")
    assert "DEFAULT '2020-01-01 20:00:00'" in definition(table)
    assert "04:00:00" not in definition(table)


def test_a_table_is_made_with_the_defaults_that_upstream_means_and_again_is_the_same_table(table: SqliteFile) -> None:
    query = "CREATE TABLE u (id INT PRIMARY KEY, c TIMESTAMP NULL DEFAULT '2020-01-02 04:00:00')"
    table.ddl(query)
    table.ddl(query)
    assert "DEFAULT '2020-01-01 20:00:00'" in definition(table, "u")


def definition(file: SqliteFile, table: str = "t") -> str:
    return file.connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (f"shop.{table}",)).fetchone()[0]
