"""DDLs of a MySQL or MariaDB binlog in a SQLite file: they carry their time and session, and may have changed nothing upstream."""

import pytest

from applier.ddl.old_values import OLD_TIMESTAMPS
from applier.model.errors import FatalSinkError, NeedsOperator
from tests.rig.sqlite_file import SqliteFile

SESSION = (("sql_mode", ""), ("timestamp", "1600000000.123456"))


@pytest.fixture(autouse=True)
def _table(file: SqliteFile) -> None:
    file.ddl("CREATE TABLE t (id INT PRIMARY KEY, u INT, CONSTRAINT k UNIQUE (u))", session=SESSION)
    file.insert("shop.t", (1, 2))


def test_the_current_time_in_old_rows_is_upstreams_to_the_microsecond(file: SqliteFile) -> None:
    file.ddl("ALTER TABLE t ADD c DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6), ADD d DATETIME DEFAULT NOW()", session=SESSION)
    assert file.rows() == [(1, 2, "2020-09-13 12:26:40.123456", "2020-09-13 12:26:40")]


def test_a_timestamps_literal_is_in_the_zone_of_upstreams_session(file: SqliteFile) -> None:
    file.ddl("ALTER TABLE t ADD c TIMESTAMP NOT NULL DEFAULT '2020-01-02 03:04:05'", session=(*SESSION, ("time_zone", "+05:30")))
    assert file.rows() == [(1, 2, "2020-01-01 21:34:05")]


def test_the_current_time_of_a_datetime_is_that_of_upstreams_session(file: SqliteFile) -> None:
    session = (*SESSION, ("time_zone", "+05:30"))
    file.ddl("ALTER TABLE t ADD c TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP, ADD d DATETIME DEFAULT NOW()", session=session)
    assert file.rows() == [(1, 2, "2020-09-13 12:26:40", "2020-09-13 17:56:40")]


def test_a_statement_that_found_what_it_asks_about_changes_nothing(file: SqliteFile) -> None:
    file.ddl("CREATE TABLE IF NOT EXISTS t (other INT)", session=SESSION)
    file.ddl("ALTER TABLE t ADD COLUMN IF NOT EXISTS u INT", session=SESSION)
    file.ddl("ALTER TABLE IF EXISTS nothing ADD COLUMN u INT", session=SESSION)
    file.ddl("RENAME TABLE IF EXISTS nothing TO something", session=SESSION)
    assert file.rows() == [(1, 2)]


def test_create_or_replace_begins_with_an_empty_table(file: SqliteFile) -> None:
    file.ddl("CREATE OR REPLACE TABLE t (a INT PRIMARY KEY)", session=SESSION)
    assert file.rows() == []


def test_drop_constraint_drops_a_unique_key(file: SqliteFile) -> None:
    file.ddl("ALTER TABLE t DROP CONSTRAINT k", session=SESSION)
    assert file.indexes() == {}


@pytest.mark.parametrize(
    ("query", "session"),
    [
        ("ALTER TABLE t ADD n INT NOT NULL AUTO_INCREMENT UNIQUE", SESSION),
        ("ALTER TABLE t ADD c TIMESTAMP", (*SESSION, OLD_TIMESTAMPS)),
    ],
)
def test_values_that_only_upstream_knows_stop_the_applier(file: SqliteFile, query: str, session: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(NeedsOperator):
        file.ddl(query, session=session)


def test_types_that_a_log_has_as_bytes_are_blobs_without_a_default(file: SqliteFile) -> None:
    file.ddl("CREATE TABLE u (id UUID PRIMARY KEY, a INET6 DEFAULT NULL, p POINT, c BLOB COMPRESSED=zlib)", table="u", session=SESSION)
    assert [kind for _, kind, *_ in file.columns("shop.u")] == ["BLOB"] * 4
    with pytest.raises(NeedsOperator, match="INET4"):
        file.ddl("ALTER TABLE u ADD b INET4 DEFAULT '1.2.3.4'", table="u", session=SESSION)


@pytest.mark.parametrize("change", ["RENAME TABLE q TO r", "ALTER TABLE q RENAME TO r", "ALTER TABLE q COMMENT 'x'"])
def test_a_table_that_may_be_a_sequence_upstream_is_named_with_the_skip_of_its_ddl(file: SqliteFile, change: str) -> None:
    with pytest.raises(FatalSinkError, match="does not exist in the sink") as refused:
        file.ddl(change, session=SESSION)
    assert "If this is a SEQUENCE upstream" in refused.value.remedy
