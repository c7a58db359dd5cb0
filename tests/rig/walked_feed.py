"""A topic of the mock cluster for a newcomer's replica, written event by event."""

from uuid import uuid4

from applier.demo.simulator.producer.options import LogRecord
from applier.model.position import Stream
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ddl, resolved, row
from tests.builders.wire import column, record, text
from tests.rig.newcomer import Newcomer

PARTITIONS = 4
"""Of the mock cluster's topics."""
CREATE = ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20))")


class WalkedFeed:
    """A topic, written event by event. What needs every stream goes to every partition."""

    def __init__(self, newcomer: Newcomer) -> None:
        self.topic = f"walk-{uuid4().hex[:8]}"
        self._newcomer = newcomer
        newcomer.configure(source__topics=[self.topic])

    def begin(self):
        """Write a schema and a table, and promise that nothing more comes below 20."""
        self.everywhere(CREATE_SCHEMA, CREATE, resolved(20))

    def write(self, *events, partition=0):
        self._newcomer.produce(self._record(Stream(self.topic, partition), *record(event)) for event in events)

    def write_raw(self, key, value):
        self._newcomer.produce([self._record(Stream(self.topic, 0), key, value)])

    def everywhere(self, *events, partitions=PARTITIONS):
        streams = [Stream(self.topic, number) for number in range(partitions)]
        self._newcomer.produce(self._record(stream, *record(event)) for event in events for stream in streams)

    @staticmethod
    def _record(stream, key, value):
        return LogRecord(stream, key, value, 1_000)


def order(ts, number, note="new"):
    return row(ts, id=column(3, KEY, number), note=text(note))


def begun(newcomer: Newcomer) -> WalkedFeed:
    """Make a topic with a table, and a replica that has it."""
    made = WalkedFeed(newcomer)
    made.begin()
    newcomer.succeeds("catchup")
    return made
