"""Checks without a name: each kind of server names them otherwise, and a later statement drops one by upstream's name."""

import re

import pytest

from applier.model.errors import NeedsOperator
from applier.sources.binlog.settings import BinlogSettings
from tests.integration.mysql_replica import read
from tests.rig.binlog_replica import BinlogReplica
from tests.rig.database import Kind
from tests.rig.upstream import clear_sink

pytestmark = pytest.mark.timeout(120)


def checks(text):
    """Return the expressions of the checks of SHOW CREATE TABLE, without quotes and parentheses."""
    return {re.sub(r"[`()\s]", "", found) for found in re.findall(r"CHECK (\(.*\))", text)}


def test_a_check_is_dropped_under_the_name_that_the_other_server_gave_it(primary, databases):
    is_mysql = primary.kind is Kind.MYSQL
    other = databases.plain(Kind.MARIADB if is_mysql else Kind.MYSQL).url
    clear_sink(other)
    primary.clear()
    replica = BinlogReplica(other, BinlogSettings(url=primary.url, start=primary.place()))
    columns = "a INT PRIMARY KEY, CHECK (a > 0), b INT CHECK (b < 100), c INT, CHECK (c > 1 AND c < 9), CONSTRAINT own CHECK (a < 7)"
    primary.run("CREATE DATABASE shop", f"CREATE TABLE shop.s ({columns})", "RENAME TABLE shop.s TO shop.t")
    ((_, made),) = primary.ask("SHOW CREATE TABLE shop.t")
    names = ["t_chk_1", "t_chk_3"] if is_mysql else ["CONSTRAINT_1", "CONSTRAINT_2"]
    assert all(name in made for name in names)
    word = "CHECK" if is_mysql else "CONSTRAINT"
    primary.run(f"ALTER TABLE shop.t DROP {word} {names[1]}, DROP {word} own", f"ALTER TABLE shop.t DROP CONSTRAINT {names[0]}")
    primary.run("INSERT INTO shop.t VALUES (-1, 1, 100)")
    replica.catch_up()
    ((_, there),) = read(other, "SHOW CREATE TABLE shop.t")
    assert checks(there) == {"b<100"}
    assert read(other, "SELECT a, c FROM shop.t") == [(-1, 100)]
    # Which number a check gets that is added later is not certain.
    primary.run("ALTER TABLE shop.t ADD CHECK (a < 50)")
    ((_, made),) = primary.ask("SHOW CREATE TABLE shop.t")
    (name,) = re.findall(r"CONSTRAINT `(\w+)` CHECK \(+`a` < 50", made)
    primary.run(f"ALTER TABLE shop.t DROP CONSTRAINT {name}")
    with pytest.raises(NeedsOperator, match="has under another name"):
        replica.catch_up()
