"""The pause of a replica does the same in SQLite and in MariaDB: the first operator's stays until the replica is resumed."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Connection

from applier.sinks.bookkeeping.bookkeeping import Bookkeeping
from applier.sinks.bookkeeping.owner_table import PauseStore


class Within:
    """Transactions inside that of the test."""

    def __init__(self, connection: Connection) -> None:
        self.read = self.change = lambda work, _: work(connection)


def test_a_pause_stays_that_of_the_first_operator_and_ends_once(books: Bookkeeping, connection: Connection) -> None:
    store = PauseStore(books, Within(connection))
    assert store.read() is None
    assert store.begin("me@here") is None
    pause = store.begin("you@there")
    assert pause is not None
    assert (pause, pause.said_by) == (store.read(), "me@here")
    assert abs(datetime.now(UTC) - pause.said_at) < timedelta(minutes=1)
    assert store.end() == pause
    assert store.end() is None
