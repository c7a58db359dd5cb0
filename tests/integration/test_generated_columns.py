"""Generated columns in a server: a STORED value that the sink would compute otherwise is the one that came, and what nobody knows stops."""

from collections.abc import Iterator

import pytest

from applier.model.errors import NeedsOperator
from applier.planner.table_check import DifferenceKind
from tests.builders.generated import CHANGES, EXPECTED, ROWS, SELECTED, beginning
from tests.builders.handwritten import log_of
from tests.integration.mysql_replica import read, run
from tests.rig.clean_server import clean_server
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import Replica


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean_server(mysql_url, "shop")
    yield mysql_url
    clean_server(mysql_url, "shop")


def fed(url, *parts, **more):
    """A replica of the parts of a log, with the source that has not shown them yet."""
    source = FakeSource(log_of(*(place for part in parts for place in part)), hidden=True)
    return Replica(url, source, **more), source


def test_stored_columns_have_the_values_that_came_on_the_wire(url):
    replica, source = fed(url, beginning(), ROWS, CHANGES)
    for part in (beginning(), ROWS, CHANGES):
        source.advance(len(part))
        replica.catch_up()
    assert set(read(url, SELECTED)) == EXPECTED
    assert read(url, "SELECT a, b FROM shop.portable") == [(1, 2)]


MADE_BY_HAND = {
    "stored": (
        "ALTER TABLE shop.days DROP COLUMN day, ADD COLUMN day DATE AS (DATE(at)) STORED",
        "generated column day",
        "ALTER TABLE shop.days MODIFY COLUMN day DATE COMMENT '/*: GENERATED ALWAYS AS (DATE(at)) STORED */'",
    ),
    "virtual": (
        "ALTER TABLE shop.portable ADD COLUMN v VARCHAR(9) AS (UPPER(a)) VIRTUAL, ADD UNIQUE KEY by_hand (v)",
        "virtual column v",
        "ALTER TABLE shop.portable DROP INDEX by_hand",
    ),
}


@pytest.mark.parametrize("name", MADE_BY_HAND)
def test_a_column_that_somebody_made_otherwise_stops_until_the_remedy_is_done(url, name):
    statement, what, repair = MADE_BY_HAND[name]
    replica, source = fed(url, beginning(), ROWS)
    source.advance(len(beginning()))
    replica.catch_up()
    run(url, statement)
    source.advance(len(ROWS))
    with pytest.raises(NeedsOperator, match=what) as caught:
        replica.catch_up()
    assert caught.value.facts["difference"] == "generated"
    run(url, repair)
    replica.catch_up()
    assert read(url, "SELECT id, CAST(day AS CHAR) FROM shop.days ORDER BY id") == [(1, "2024-05-01"), (2, "2024-05-02")]


def test_a_difference_of_that_kind_can_be_accepted(url):
    replica, source = fed(url, beginning(), ROWS, accept={"shop.days": (DifferenceKind.GENERATED,)})
    source.advance(len(beginning()))
    replica.catch_up()
    run(url, MADE_BY_HAND["stored"][0], "ALTER TABLE shop.days DROP INDEX day")
    source.advance(len(ROWS))
    replica.catch_up()
    assert read(url, "SELECT id, CAST(day AS CHAR) FROM shop.days ORDER BY id") == [(1, "2024-05-01"), (2, "2024-05-01")]


def test_a_virtual_column_in_the_place_of_a_stored_one_stops_when_its_values_come(url):
    replica, source = fed(url, beginning(), ROWS)
    source.advance(len(beginning()))
    replica.catch_up()
    run(url, "ALTER TABLE shop.days DROP INDEX day", MADE_BY_HAND["stored"][0].replace("STORED", "VIRTUAL"))
    source.advance(len(ROWS))
    with pytest.raises(NeedsOperator, match="generated column day"):
        replica.catch_up()
    run(url, "ALTER TABLE shop.days RENAME COLUMN day TO computed, ADD COLUMN day DATE")
    replica.catch_up()
    assert read(url, "SELECT id, CAST(day AS CHAR) FROM shop.days ORDER BY id") == [(1, "2024-05-01"), (2, "2024-05-02")]
