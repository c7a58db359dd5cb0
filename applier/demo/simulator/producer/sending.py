"""Sending: rows into batches, DDLs to every partition of their topic."""

from applier.demo.simulator.encoder import frame
from applier.demo.simulator.item import DdlItem, RowItem
from applier.demo.simulator.producer.state import ProducerState
from applier.model.position import Stream


def send_some(state: ProducerState) -> None:
    """Send some items, up to the first DDL."""
    for _ in range(state.rng.choice((1, 2, 8))):
        item = state.owner.queues.pick(state.rng)
        if item is None:
            return
        if isinstance(item, DdlItem):
            _send_ddl(state, item)
            return
        _send_row(state, item)
        state.owner.queues.remove(item)


def send_moved(state: ProducerState) -> None:
    """Send rows of a moved table again."""
    for _ in range(state.rng.choice((1, 2, 9))):
        if state.moved:
            _send_row(state, state.moved.popleft())


def _send_row(state: ProducerState, item: RowItem) -> None:
    if state.owner.items.is_dropped(item):
        state.writer.count("dropped delete")
        return
    topic = state.topics.of_schema(item.name.schema)
    stream = Stream(topic, item.hash % state.topics.counts[topic])
    event = state.owner.items.encode(item)
    if b'"ohk":true' in event.key or b'"ccl":' in event.key:
        state.writer.count("placeholder")
    state.writer.add_row(stream, event)


def _send_ddl(state: ProducerState, item: DdlItem) -> None:
    """Send some of the copies of a DDL: other events may come in between."""
    # Rows that were sent before the DDL must not stay behind it in an open batch.
    state.writer.flush_all()
    left = state.owner.copies.get(item)
    if left is None:
        topic = state.topics.of_schema(item.name.schema, schema_level=not item.name.table)
        left = state.owner.copies[item] = state.topics.streams(topic)
        state.rng.shuffle(left)
    event = state.owner.items.encode(item)
    for _ in range(state.rng.choice((1, 2, 9))):
        if left:
            state.writer.write(left.pop(), frame([event]))
            state.writer.count("ddl copy")
    if not left:
        _finish_ddl(state, item)


def _finish_ddl(state: ProducerState, item: DdlItem) -> None:
    del state.owner.copies[item]
    item.sent = True
    state.owner.queues.remove(item)
    state.writer.count("ddl")
    if item.ts < max((other.ts for other in state.upstream.ddls() if other.sent), default=0):
        state.writer.count("ddl out of order")
    if item.ts == state.checkpoint:
        state.writer.count("ddl at resolved ts")
