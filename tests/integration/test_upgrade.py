"""A replica that the first version has left half-way on MariaDB is continued, and ends as upstream."""

from contextlib import closing

import pytest

from applier.demo.simulator.mysql_text import quote_name
from tests.builders.first_version import END_TS, changefeed, text
from tests.integration.mysql_replica import read
from tests.rig.clean_server import drop_bookkeeping
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import Replica
from tests.rig.mysql_oracle import connect, read_schemas
from tests.rig.upstream import clear_sink


@pytest.fixture
def url(mysql_url):
    clear_sink(mysql_url)
    drop_bookkeeping(mysql_url)
    yield mysql_url
    clear_sink(mysql_url)
    drop_bookkeeping(mysql_url)


def load(url, script):
    """Run a script of mariadb-dump: a statement ends with a semicolon at the end of a line."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        for statement in text(script).split(";\n"):
            if statement.strip():
                cursor.execute(statement)
        connection.commit()


def rows(url):
    """All rows of all replicated tables."""
    with closing(connect(url)) as connection:
        schemas = list(read_schemas(connection, ""))
    places = [(schema, table) for schema in schemas for (table,) in read(url, f"SHOW TABLES FROM {quote_name(schema)}")]
    return {place: sorted(map(repr, read(url, f"SELECT * FROM {'.'.join(map(quote_name, place))}"))) for place in places}


@pytest.mark.on_one_server("mariadb", reason="the first version's replica was dumped from MariaDB")
def test_a_replica_of_the_first_version_is_continued_and_ends_as_upstream(url):
    load(url, "mariadb_end.sql")
    upstream = rows(url)
    clear_sink(url)
    load(url, "mariadb.sql")
    assert rows(url) != upstream
    result = Replica(url, FakeSource(changefeed())).catch_up()
    assert result.checkpoint_ts == END_TS
    assert rows(url) == upstream
