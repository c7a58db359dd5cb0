"""What a MODIFY makes of old rows is the same on each server and in SQLite, or stops on each: ``builders/conversions.py`` has the cases."""

import pytest

from applier.model.errors import NeedsOperator
from tests.builders.conversions import CONVERSIONS, CONVERSIONS_TO_CHARSETS, NARROWED, STOP
from tests.integration.mysql_replica import SHOP, Replica, read, run, states

LOG = (("sql_mode", "TIME_ROUND_FRACTIONAL"), ("timestamp", "1600000000.5"))


def _result(shop: Replica, url: str, query: str, **more: object) -> str:
    try:
        shop.ddl(query, "t", zone="+08:00", **more)
    except NeedsOperator as error:
        return STOP if "servers convert them differently" in error.message else error.message
    return str(read(url, f"SELECT CAST(c AS CHAR) FROM {SHOP}.t WHERE c IS NOT NULL")[0][0])


def _with_value(url: str, old: str, value: str) -> None:
    table = f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, c {old}) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_bin"
    zone = "SET time_zone = '+00:00'"
    run(url, zone, f"DROP TABLE IF EXISTS {SHOP}.t", table, f"INSERT INTO {SHOP}.t VALUES (1, {value})".replace(":", r"\:"))


def test_each_value_becomes_what_it_is_upstream_or_stops_before_an_intent(shop: Replica, url: str) -> None:
    found = {}
    for old, new, value, expected in [*CONVERSIONS, *NARROWED]:
        _with_value(url, old, value)
        seen = _result(shop, url, f"ALTER TABLE t MODIFY COLUMN c {new}")
        if seen != expected:
            found[old, new, value] = (seen, expected)
    assert found == {}
    assert {state.value for state in states(shop)} == {"done"}


def test_texts_are_converted_to_a_character_set_that_holds_them(shop: Replica, url: str) -> None:
    found = {}
    for old, charset, value, expected in CONVERSIONS_TO_CHARSETS:
        _with_value(url, old, value)
        seen = _result(shop, url, f"ALTER TABLE t CONVERT TO CHARACTER SET {charset}")
        if seen != expected:
            found[old, charset, value] = (seen, expected)
    assert found == {}
    assert {state.value for state in states(shop)} == {"done"}


def test_columns_without_values_and_empty_tables_may_become_anything(shop: Replica, url: str) -> None:
    for old, new, value, expected in CONVERSIONS[:12]:
        if expected == STOP:
            _with_value(url, old, value)
            run(url, f"UPDATE {SHOP}.t SET c = NULL")
            shop.ddl(f"ALTER TABLE t MODIFY c {new}", "t")
    run(url, f"DROP TABLE {SHOP}.t", f"CREATE TABLE {SHOP}.t (c FLOAT)")
    shop.ddl("ALTER TABLE t CHANGE c d VARCHAR(30) NOT NULL, ADD at DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)", "t")


def test_the_fraction_of_the_time_of_a_new_column_is_not_known(shop: Replica, url: str) -> None:
    _with_value(url, "INT", "5")
    assert _result(shop, url, "ALTER TABLE t ADD at DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6)") == STOP
    assert _result(shop, url, "ALTER TABLE t ADD at DATETIME DEFAULT CURRENT_TIMESTAMP") == "5"


@pytest.mark.parametrize(("new", "kind", "expected"), [("INT", "same", "converted"), ("INT", "other", STOP), ("INT", "", STOP)])
def test_a_log_of_the_same_kind_of_server_is_converted_by_the_server(shop: Replica, url: str, new: str, kind: str, expected: str) -> None:
    ((version,),) = read(url, "SELECT VERSION()")
    mine, other = ("mariadb", "mysql") if "mariadb" in version.casefold() else ("mysql", "mariadb")
    _with_value(url, "VARCHAR(9)", "'1.5'")
    log = (*LOG, ("server", mine if kind == "same" else other)) if kind else LOG
    seen = _result(shop, url, f"ALTER TABLE t MODIFY c {new}", log=log)
    assert (STOP if seen == STOP else "converted") == expected


def test_a_log_of_another_kind_keeps_what_its_modes_decide(shop: Replica, url: str) -> None:
    _with_value(url, "DATETIME(6)", "'2020-01-02 03:04:01.600000'")
    assert _result(shop, url, "ALTER TABLE t MODIFY c DATETIME", log=LOG) == "2020-01-02 03:04:02"
