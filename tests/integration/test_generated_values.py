"""What a generated column of SQLite holds is what the servers hold."""

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from applier.mysql.session_variables import SQL_MODE
from tests.unit.sinks.sqlite.test_expression import EXPRESSED, ROW, TABLE

SCHEMA = "applier_test_generated"


@pytest.fixture
def connection(mysql_url):
    with create_engine(mysql_url, poolclass=NullPool, isolation_level="AUTOCOMMIT").connect() as opened:
        opened.execute(text("SET SESSION sql_mode = :mode, time_zone = '+00:00'"), {"mode": SQL_MODE})
        opened.execute(text(f"DROP SCHEMA IF EXISTS {SCHEMA}"))
        opened.execute(text(f"CREATE SCHEMA {SCHEMA} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"))
        opened.execute(text(f"USE {SCHEMA}"))
        yield opened
        opened.execute(text(f"DROP SCHEMA {SCHEMA}"))


def test_the_servers_store_what_sqlite_is_made_to_store(connection):
    for definition, value in EXPRESSED:
        connection.execute(text("DROP TABLE IF EXISTS t"))
        connection.exec_driver_sql(TABLE.format(f"`g` {definition}"))
        names = "id, a, z, u, w, d, e, `day`, at, ts, v, c, k"
        connection.exec_driver_sql(f"INSERT INTO t ({names}) VALUES ({', '.join(['%s'] * len(ROW))})", ROW)
        shown = "g + 0" if definition.startswith("BIT") else "CAST(g AS CHAR)"
        found = connection.exec_driver_sql(f"SELECT {shown} FROM t").scalar_one()
        expected = f"{value:g}" if isinstance(value, float) else str(value)
        assert str(found) == expected, definition
