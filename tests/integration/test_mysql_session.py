"""Sessions on real servers: their settings are ours whatever the server's are, and what cannot be connected says why."""

from typing import Any

import pytest
from sqlalchemy import make_url

from applier.database.session import Tls, TlsMode
from applier.model.errors import (
    ConfigError,
    FatalSinkError,
    RetryableSinkError,
)
from applier.mysql.session import discard
from applier.mysql.session_variables import SQL_MODE
from applier.sinks.mysql.session import Purpose, open_session
from tests.integration.mysql_replica import run, settings


def test_a_session_has_the_fixed_settings_whatever_the_servers_are(least_privileged_url: str) -> None:
    connection = open_session(settings(least_privileged_url, time_zone="+05:30"), Purpose.WRITE)
    row = connection.exec_driver_sql(
        "SELECT @@sql_mode, @@time_zone, @@foreign_key_checks, @@collation_server, @@innodb_lock_wait_timeout, @@wait_timeout, @@autocommit"
    ).one()
    assert tuple(row) == (SQL_MODE, "+05:30", 0, "utf8mb4_bin", 3, 600, 0)
    discard(connection)


def test_no_option_of_the_url_makes_a_session_commit_implicitly(least_privileged_url: str) -> None:
    for text in ("true", "false"):
        with pytest.raises(ConfigError, match="autocommit"):
            open_session(settings(f"{least_privileged_url}?autocommit={text}"), Purpose.WRITE)


def test_what_the_server_sets_for_every_session_is_undone(mysql_url: str, least_privileged_url: str) -> None:
    names = ("autocommit", "character_set_client", "character_set_connection", "character_set_results", "foreign_key_checks")
    run(mysql_url, "SET GLOBAL init_connect = 'SET autocommit = 1, foreign_key_checks = 1, NAMES latin1'")
    try:
        connection = open_session(settings(least_privileged_url), Purpose.WRITE)
        row = connection.exec_driver_sql("SELECT " + ",".join(f"@@{name}" for name in names)).one()
        discard(connection)
    finally:
        run(mysql_url, "SET GLOBAL init_connect = ''")
    assert tuple(row) == (0, "utf8mb4", "utf8mb4", "utf8mb4", 0)


def test_a_setting_that_the_server_does_not_keep_ends_the_session(least_privileged_url: str) -> None:
    beyond = 400_000_000  # servers cut it to their maximum, with a warning
    with pytest.raises(FatalSinkError, match="changed a setting") as caught:
        open_session(settings(least_privileged_url, lock_wait_timeout_s=beyond), Purpose.CONTROL)
    assert caught.value.facts["variable"] in {"lock_wait_timeout", "innodb_lock_wait_timeout"}
    assert caught.value.facts["wanted"] == beyond


def test_a_file_of_tls_that_is_not_there_is_named_as_tls(least_privileged_url: str) -> None:
    with pytest.raises(FatalSinkError, match="tls_ca"):
        open_session(settings(least_privileged_url, tls=Tls(mode=TlsMode.VERIFY_CA, ca="/nowhere/ca.pem")), Purpose.WRITE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"username": "nobody", "password": "secret"}, "Access denied"),
        ({"host": "127.0.0.1", "port": 1}, "Can't connect"),
    ],
)
def test_a_connection_that_cannot_be_had_says_what_to_check_without_the_password(
    mysql_url: str, change: dict[str, Any], words: str
) -> None:
    url = make_url(mysql_url).set(**change).render_as_string(hide_password=False)
    with pytest.raises((FatalSinkError, RetryableSinkError)) as caught:
        open_session(settings(url), Purpose.WRITE)
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.remedy


def test_an_unknown_time_zone_is_fatal_with_a_remedy(least_privileged_url: str) -> None:
    with pytest.raises(FatalSinkError, match="zone tables"):
        open_session(settings(least_privileged_url, time_zone="Mars/Olympus"), Purpose.WRITE)
