"""A server whose defaults are others than usual: they do not reach the applier's sessions, or stop it with a word about them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from applier.model.errors import FatalSinkError
from applier.model.events import TableName
from applier.mysql.session import discard
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.progress import WriteState
from tests.integration.mysql_replica import SHOP, clean, read, replica, run, settings
from tests.rig.database import Database, Kind

WANTED = {
    "sql_select_limit": (1, 2**64 - 1),
    "completion_type": ("'CHAIN'", "NO_CHAIN"),
    "unique_checks": ("OFF", 1),
    "lc_messages": ("'de_DE'", "en_US"),
    "sql_mode": ("'STRICT_ALL_TABLES'", "ONLY_FULL_GROUP_BY,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"),
}
ONLY_MYSQL = {"max_execution_time": (5000, 0), "restrict_fk_on_non_standard_key": ("ON", 0), "sql_safe_updates": ("ON", 0)}
FEW_WARNINGS = 64
MISSING_PRIMARY_KEY = 3750

Change = Callable[[str, Any], None]


@pytest.fixture
def change(mysql_url: str) -> Iterator[Change]:
    """Change a default of the server until the test ends."""
    changed = []

    def set_global(name: str, value: Any) -> None:
        changed.append(name)
        run(mysql_url, f"SET GLOBAL {name} = {value}")

    clean(mysql_url)
    yield set_global
    for name in changed:
        run(mysql_url, f"SET GLOBAL {name} = DEFAULT")
    clean(mysql_url)


def test_a_session_is_what_the_applier_needs_whatever_the_servers_defaults_are(
    database: Database, least_privileged_url: str, change: Change
) -> None:
    wanted = WANTED | (ONLY_MYSQL if database.kind is Kind.MYSQL else {})
    for name, (odd, _) in wanted.items():
        change(name, odd)
    connection = open_session(settings(least_privileged_url), Purpose.WRITE)
    found = connection.exec_driver_sql("SELECT " + ",".join(f"@@{name}" for name in wanted)).one()
    discard(connection)
    assert dict(zip(wanted, found, strict=True)) == {name: value for name, (_, value) in wanted.items()}


def test_more_harmless_warnings_than_the_server_shows_do_not_stop_a_write(
    mysql_url: str, least_privileged_url: str, change: Change
) -> None:
    change("max_error_count", FEW_WARNINGS)
    labels = ",".join(f"e{number} ENUM('x')" for number in range(3))
    run(mysql_url, f"CREATE SCHEMA {SHOP}", f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, {labels})")
    with replica(least_privileged_url) as shop:
        name = TableName(SHOP, "t")
        table = shop.sink.describe([name])[name.fold()]
        rows = [f"({row},0,0,0)" for row in range(300)]
        texts = [text for text, _ in shop.sink.dialect.replaces(table, ["id", "e0", "e1", "e2"], rows)]
        assert shop.write(*texts).state is WriteState.COMMITTED
    assert read(mysql_url, f"SELECT COUNT(*), MAX(e0 + e1 + e2) FROM {SHOP}.t") == [(300, 0)]


@pytest.mark.on_one_server("mysql", reason="MariaDB makes no key of its own")
def test_a_server_that_adds_its_own_primary_keys_is_not_written_to(least_privileged_url: str, change: Change) -> None:
    change("sql_generate_invisible_primary_key", "ON")
    with pytest.raises(FatalSinkError) as caught, replica(least_privileged_url):
        pass
    assert caught.value.facts["variable"] == "sql_generate_invisible_primary_key"
    assert "`applier grants sink`" in caught.value.remedy


@pytest.mark.on_one_server("mysql", reason="MariaDB takes tables without a primary key")
def test_a_server_that_wants_primary_keys_is_named_at_the_first_table_without_one(least_privileged_url: str, change: Change) -> None:
    change("sql_require_primary_key", "ON")
    with replica(least_privileged_url) as shop:
        shop.ddl(f"CREATE DATABASE {SHOP}")
        shop.ddl("CREATE TABLE t (id INT PRIMARY KEY)", "t")
        with pytest.raises(FatalSinkError) as caught:
            shop.ddl("CREATE TABLE u (id INT)", "u")
    assert caught.value.facts["code"] == MISSING_PRIMARY_KEY
    assert "sql_require_primary_key" in caught.value.remedy
