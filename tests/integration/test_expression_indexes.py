"""A unique index of an expression that the sink computes otherwise than upstream removes no row. Upstream's sessions are at +08:00."""

from collections.abc import Iterator

import pytest

from applier.model.errors import NeedsOperator
from tests.builders.handwritten import CREATE_SCHEMA, ONE, ddl, everywhere, log_of, resolved, row
from tests.builders.wire import column
from tests.integration.mysql_replica import read, run
from tests.rig.clean_server import clean_server
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import Replica

pytestmark = pytest.mark.on_one_server("mysql", reason="MariaDB has no indexes of expressions")

INT, FLOAT, TIMESTAMP, TEXT = 3, 4, 7, 15
KEY, PLAIN = 11, 64

MADE = [
    *everywhere(CREATE_SCHEMA),
    *everywhere(ddl(10, "CREATE TABLE d (id INT PRIMARY KEY, at TIMESTAMP NULL, f FLOAT, v VARCHAR(9), UNIQUE ((DATE(at))))", "d")),
    *everywhere(ddl(11, "ALTER TABLE d ADD CONSTRAINT text UNIQUE KEY ((CONCAT(f))), ADD UNIQUE twice ((id * 2))", "d", t=5)),
    *everywhere(ddl(12, "CREATE UNIQUE INDEX low ON d ((LOWER(v)))", "d", t=7)),
    *everywhere(ddl(13, "ALTER TABLE d ADD UNIQUE five ((IF(id <=> 5, 0, -id))), ADD UNIQUE six ((id + COALESCE(id AND 1, 6)))", "d", t=5)),
    *everywhere(resolved(15)),
]


def days(ts, number, at, f, v):
    columns = {"at": column(TIMESTAMP, PLAIN, at), "f": column(FLOAT, PLAIN, f), "v": column(TEXT, PLAIN, v)}
    return ONE, row(ts, "d", id=column(INT, KEY, number), **columns)


ROWS = [
    # One day in UTC, two at +08:00. MySQL prints six digits of a FLOAT, TiDB all of them.
    days(20, 1, "2024-05-01 15:00:00", 33554.44, "a"),
    days(21, 2, "2024-05-01 17:00:00", 33554.438, "b"),
    *everywhere(resolved(30)),
]
CHANGED = [
    *everywhere(ddl(31, "ALTER TABLE d RENAME INDEX expression_index TO day, DROP INDEX text, DROP INDEX twice", "d", t=18)),
    *everywhere(ddl(32, "ALTER TABLE d DROP INDEX low, DROP INDEX five", "d", t=8)),
    *everywhere(resolved(40)),
]


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean_server(mysql_url, "shop")
    yield mysql_url
    clean_server(mysql_url, "shop")


def fed(url, *parts):
    source = FakeSource(log_of(*(place for part in parts for place in part)), hidden=True)
    return Replica(url, source), source


def indexes(url):
    query = "SELECT INDEX_NAME, NON_UNIQUE = 0 FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'shop' AND TABLE_NAME = 'd'"
    return {name: bool(unique) for name, unique in read(url, query)}


def test_upstreams_rows_stay_and_its_later_ddls_find_the_index(url):
    replica, source = fed(url, MADE, ROWS, CHANGED)
    source.advance(len(MADE) + len(ROWS))
    replica.catch_up()
    assert read(url, "SELECT id FROM shop.d ORDER BY id") == [(1,), (2,)]
    plain = {"expression_index": False, "text": False, "low": False}
    assert indexes(url) == {"PRIMARY": True, "twice": True, "five": True, "six": True} | plain
    source.advance(len(CHANGED))
    replica.catch_up()
    assert indexes(url) == {"PRIMARY": True, "day": False, "six": True}


def test_one_that_an_older_version_has_made_stops_until_it_is_not_unique(url):
    replica, source = fed(url, MADE, ROWS)
    source.advance(len(MADE))
    replica.catch_up()
    run(url, "ALTER TABLE shop.d DROP INDEX expression_index, ADD UNIQUE INDEX expression_index ((DATE(at)))")
    source.advance(len(ROWS))
    with pytest.raises(NeedsOperator, match="unique index expression_index of an expression") as stopped:
        replica.catch_up()
    assert stopped.value.facts["difference"] == "generated"
    # The remedy.
    run(url, "ALTER TABLE shop.d DROP INDEX expression_index, ADD INDEX expression_index ((DATE(at)))")
    replica.catch_up()
    assert read(url, "SELECT id FROM shop.d ORDER BY id") == [(1,), (2,)]
