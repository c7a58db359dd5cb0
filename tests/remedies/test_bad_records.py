"""Records that cannot be read, and rows that the sink refuses: each way on that the message names leads to the end."""

from uuid import uuid4

import pytest

from applier.demo.simulator.producer.options import LogRecord
from applier.model.position import Stream
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ddl, resolved, row
from tests.builders.wire import column, record, text

PARTITIONS = 4
"""Of the mock cluster's topics."""
CREATE = ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20))")


class Feed:
    """A topic, written event by event. What needs every stream goes to every partition."""

    def __init__(self, newcomer):
        self.topic = f"walk-{uuid4().hex[:8]}"
        self._newcomer = newcomer
        newcomer.configure(source__topics=[self.topic])

    def write(self, *events):
        self._newcomer.produce(self._record(Stream(self.topic, 0), *record(event)) for event in events)

    def write_raw(self, key, value):
        self._newcomer.produce([self._record(Stream(self.topic, 0), key, value)])

    def everywhere(self, *events):
        streams = [Stream(self.topic, number) for number in range(PARTITIONS)]
        self._newcomer.produce(self._record(stream, *record(event)) for event in events for stream in streams)

    @staticmethod
    def _record(stream, key, value):
        return LogRecord(stream, key, value, 1_000)


def order(ts, number, note="new"):
    return row(ts, id=column(3, KEY, number), note=text(note))


@pytest.fixture
def feed(newcomer):
    made = Feed(newcomer)
    made.everywhere(CREATE_SCHEMA, CREATE, resolved(20))
    newcomer.succeeds("catchup")
    return made


@pytest.fixture
def with_garbage(newcomer, feed):
    feed.write(order(21, 1))
    feed.write_raw(b"garbage", b"more garbage")
    feed.write(order(22, 2))
    feed.everywhere(resolved(30))
    return newcomer.fails("catchup", 3)


def test_a_garbage_record_is_skipped_by_the_command_of_its_remedy(newcomer, with_garbage):
    newcomer.follow(with_garbage, only="inspect")
    newcomer.follow(with_garbage, only="skip")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new"), (2, "new")]


def test_garbage_records_are_quarantined_by_the_setting_of_their_remedy(newcomer, feed, with_garbage):
    newcomer.set(with_garbage.settings)
    ended = newcomer.succeeds("catchup")
    assert "1 event in quarantine, not applied: `applier quarantine list` names them" in ended.stdout
    assert f"{feed.topic}/0" in newcomer.succeeds("quarantine list").stdout
    assert newcomer.rows() == [(1, "new"), (2, "new")]
