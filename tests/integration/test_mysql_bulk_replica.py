"""A whole replica that loads in bulk: the same rows, and where a load is refused, what REPLACE says."""

from collections.abc import Iterator

import pytest

from applier.coordinator import Policy
from applier.model.errors import RowRefused
from applier.telemetry.log_event import LogEvent
from tests.builders.handwritten import KEY, ONE, TWO, everywhere, log_of, resolved, row
from tests.builders.wire import column
from tests.integration.mysql_replica import read, run
from tests.rig.clean_server import clean_server
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import Replica

TEXT, NULLABLE = 15, 64
ROWS = 900
"""Enough that the table is loaded, in one segment, by one task: each of several buckets would have too few."""


class NoteBook:
    """An observer that remembers the events."""

    def __init__(self):
        self.events = []

    def update(self, state):
        pass

    def note(self, event, /, **facts):
        self.events.append((event, facts))

    def facts_of(self, event):
        return [facts for noted, facts in self.events if noted == event]


@pytest.fixture
def url(mysql_url: str) -> Iterator[str]:
    clean_server(mysql_url, "shop")
    [(_, before)] = read(mysql_url, "SHOW GLOBAL VARIABLES LIKE 'local_infile'")
    run(mysql_url, "SET GLOBAL local_infile = ON")
    yield mysql_url
    run(mysql_url, f"SET GLOBAL local_infile = {before}")
    clean_server(mysql_url, "shop")


def replica_of(url, *, ending=(), **more):
    """A replica of a table that was loaded from a dump, whose rows come in one segment, and ``ending`` after them."""
    run(url, "CREATE SCHEMA shop DEFAULT CHARACTER SET utf8mb4", "CREATE TABLE shop.orders (id INT PRIMARY KEY, c VARCHAR(3))")
    placed = [(stream, row(20, id=column(3, KEY, number), c=column(TEXT, NULLABLE, str(number)))) for number, stream in numbered()]
    source = FakeSource(log_of(*everywhere(resolved(6)), *placed, *ending, *everywhere(resolved(30))))
    return Replica(url, source, policy=Policy(), observer=NoteBook(), ahead_rows=10 * ROWS, **more)


def numbered():
    return [(number, (ONE, TWO)[number % 2]) for number in range(ROWS)]


def commands(url, name):
    [(_, count)] = read(url, f"SHOW GLOBAL STATUS LIKE 'Com_{name}'")
    return int(count)


def long_row(number):
    return (ONE, row(21, id=column(3, KEY, number), c=column(TEXT, NULLABLE, "long")))


def test_many_rows_of_a_table_are_loaded(url):
    replica, before = replica_of(url), commands(url, "load")
    assert replica.catch_up(start_ts=5, accept_gap=True).rows == ROWS
    assert commands(url, "load") > before
    assert read(url, "SELECT id, c FROM shop.orders ORDER BY id") == [(number, str(number)) for number in range(ROWS)]
    assert replica.observer.facts_of(LogEvent.BULK_LOAD_REFUSED) == []


def test_a_row_that_the_sink_would_cut_is_named_by_replace(url):
    replica = replica_of(url, ending=[long_row(7)])
    with pytest.raises(RowRefused) as caught:
        replica.catch_up(start_ts=5, accept_gap=True)
    assert {"column": "c", "table": "shop.orders", "commit_ts": 21, "topic": "feed"}.items() <= caught.value.facts.items()
    assert read(url, "SELECT * FROM shop.orders") == []
    [facts] = replica.observer.facts_of(LogEvent.BULK_LOAD_REFUSED)
    assert facts["table"] == "shop.orders"
    assert replica.observer.facts_of(LogEvent.BULK_LOADS_ENDED) == []


def test_a_row_that_the_sink_would_cut_is_quarantined_and_all_others_are_written(url):
    replica = replica_of(url, ending=[long_row(7)], quarantines=frozenset({"rejected"}))
    replica.catch_up(start_ts=5, accept_gap=True)
    assert len(replica.quarantine()) == 1
    assert read(url, "SELECT COUNT(*) FROM shop.orders") == [(ROWS - 1,)]


def test_a_server_that_stops_to_take_loads_gets_replaces(url):
    class Closing:
        """A sink whose server is told to take no more loads after it has said that it does."""

        def __init__(self, sink):
            self._sink = sink

        def __getattr__(self, name):
            found = getattr(self._sink, name)
            if name == "bulk":
                run(url, "SET GLOBAL local_infile = OFF")
            return found

    replica = replica_of(url, wrap=Closing)
    assert replica.catch_up(start_ts=5, accept_gap=True).rows == ROWS
    assert read(url, "SELECT COUNT(*) FROM shop.orders") == [(ROWS,)]
    assert len(replica.observer.facts_of(LogEvent.BULK_LOAD_REFUSED)) == 1
    assert len(replica.observer.facts_of(LogEvent.BULK_LOADS_ENDED)) == 1
