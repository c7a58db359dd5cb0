"""The upstream that tests read from answers as TiDB does, through the sessions that the applier opens."""

import pymysql
import pytest
from sqlalchemy import text

from applier.mysql.session import discard, read_named
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings
from tests.rig.tidb import GC_ERROR, tidb_server

COLUMNS = {"id": "bigint(20)", "note": "varchar(20)", "state": "enum('a','b')", "bits": "bit(64)"}


@pytest.fixture
def upstream():
    with tidb_server() as server:
        server.create(1, "shop", "orders", COLUMNS, ["id"])
        server.write(10, "shop", "orders", id=1, note="old", state=2, bits=2**64 - 1)
        server.write(20, "shop", "orders", id=1, note="it's", state=1, bits=None)
        server.write(20, "shop", "orders", id=2, note="two", state=0, bits=0)
        server.delete(30, "shop", "orders", 2)
        yield server


@pytest.fixture
def session(upstream):
    connection = open_session(SinkSettings(url=upstream.url), Purpose.CONTROL)
    yield connection
    discard(connection)


def at(session, snapshot, query):
    session.execute(text("SET @@tidb_snapshot = :ts"), {"ts": str(snapshot)})
    cursor = session.connection.driver_connection.cursor()
    cursor.execute(query)
    return list(cursor.fetchall())


def test_a_select_sees_the_rows_of_its_snapshot(session):
    query = "SELECT `id`, `note`, CAST(`state` AS UNSIGNED), CAST(`bits` AS UNSIGNED) FROM `shop`.`orders` WHERE `id` IN (1,2,3)"
    assert at(session, 15, query) == [("1", "old", "2", str(2**64 - 1))]
    assert at(session, 25, query) == [("1", "it's", "1", None), ("2", "two", "0", "0")]
    assert at(session, 30, query) == [("1", "it's", "1", None)]


def test_a_list_of_keys_may_have_several_columns(session):
    query = "SELECT `id` FROM `shop`.`orders` WHERE (`id`,`note`) IN ((1,'it\\'s'),(2,x'74776f'),(-3,'x'))"
    assert at(session, 20, query) == [("1",), ("2",)]


def test_columns_are_those_of_the_snapshot(session, upstream):
    upstream.create(40, "shop", "orders", COLUMNS | {"added": "int(11)"}, ["id"])
    names = [row["FIELD"] for row in read_named(session, "SHOW FULL COLUMNS FROM `shop`.`orders`")]
    assert names == ["id", "note", "state", "bits", "added"]
    at(session, 39, "SELECT `id` FROM `shop`.`orders`")
    assert [row["FIELD"] for row in read_named(session, "SHOW FULL COLUMNS FROM `shop`.`orders`")] == names[:-1]


def test_a_snapshot_below_the_gc_horizon_is_refused(session, upstream):
    upstream.gc_below = 16
    with pytest.raises(pymysql.err.MySQLError) as raised:
        session.connection.driver_connection.cursor().execute("SET @@tidb_snapshot = '15'")
    assert raised.value.args[0] == GC_ERROR


def test_it_says_that_it_is_tidb_and_answers_what_a_test_adds(session, upstream):
    assert "TiDB" in session.scalar(text("SELECT tidb_version()"))
    upstream.answers = lambda sql, snapshot: ([(snapshot,)], ["n"]) if "BIT_XOR" in sql else None
    assert at(session, 17, "SELECT BIT_XOR(CRC32(`note`)) FROM `shop`.`orders`") == [(17,)]


def test_a_connection_may_be_cut(session, upstream):
    upstream.before_each = lambda _sql: upstream.drop_connections()
    with pytest.raises(pymysql.err.OperationalError):
        session.connection.driver_connection.cursor().execute("SELECT tidb_version()")
