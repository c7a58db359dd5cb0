"""What upstream calls its checks, and how a statement that drops one is written for another server."""

import pytest

from applier.ddl.generated_name import checks_after, dropped_checks, with_dropped_checks
from applier.model.events import DdlEvent
from applier.model.position import Ts

MADE = (
    "CREATE TABLE t (a INT CHECK (a > 0), b INT CONSTRAINT mine CHECK ((b) < 9), c INT, CHECK (c > (1)), "
    "CONSTRAINT CHECK (a <> 'x)'), KEY (a))"
)


def after(queries, server):
    checks = {}
    for query in queries:
        session = (("sql_mode", ""), ("server", server))
        checks = checks_after(checks, DdlEvent(commit_ts=Ts(1), schema="shop", table="t", query=query, ddl_type=3, session=session))
    return checks


def test_mysql_counts_the_checks_of_columns_too():
    assert after([MADE], "mysql") == {"t_chk_1": "a > 0", "mine": "(b) < 9", "t_chk_2": "c > (1)", "t_chk_3": "a <> 'x)'"}


def test_mariadb_counts_those_of_the_table():
    assert after([MADE], "mariadb") == {"constraint_1": "c > (1)", "constraint_2": "a <> 'x)'"}


def test_a_table_of_mysql_takes_the_names_with_it():
    moved = ["RENAME TABLE t TO `u`", "ALTER TABLE u RENAME TO v"]
    assert after([MADE, *moved], "mysql").keys() == {"v_chk_1", "mine", "v_chk_2", "v_chk_3"}
    assert after([MADE, *moved], "mariadb").keys() == {"constraint_1", "constraint_2"}


@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_what_an_alter_adds_without_a_name_is_not_certain(server):
    first, *_ = after(["CREATE TABLE t (a INT, CHECK (a > 0))"], server)
    altered = ["CREATE TABLE t (a INT, CHECK (a > 0))", "ALTER TABLE t ADD CHECK (a > 1), ADD CONSTRAINT n CHECK (a > 2)"]
    assert after(altered, server) == {first: "a > 0", "n": "a > 2"}
    assert after([*altered, f"ALTER TABLE t DROP CONSTRAINT {first}"], server) == {"n": "a > 2"}
    assert after([*altered, "CREATE TABLE t LIKE s"], server) == {}
    assert after(altered, "") == {}


def test_a_check_is_dropped_under_another_name():
    query = "ALTER TABLE t DROP CHECK `t_chk_1`, DROP CONSTRAINT IF EXISTS b, ADD x INT, DROP CHECK c"
    one, two, three = dropped_checks(query)
    assert (one.name, two.name, three.name) == ("t_chk_1", "b", "c")
    written = with_dropped_checks(query, [(one, "CONSTRAINT_1"), (two, "B`2"), (three, "c")], says_constraint=True)
    assert written == "ALTER TABLE t DROP CONSTRAINT `CONSTRAINT_1`, DROP CONSTRAINT  `B``2`, ADD x INT, DROP CONSTRAINT c"
    assert with_dropped_checks(query, [(one, "t_chk_1"), (two, "b")], says_constraint=False) == query
    assert dropped_checks("DROP TABLE t") == []
