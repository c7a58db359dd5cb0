"""One run of a producer: a loop that draws what happens next. It sends rows and DDLs, resolves what is sent, and sends again."""

from collections.abc import Iterator

from applier.demo.simulator.encoder import frame
from applier.demo.simulator.history import History
from applier.demo.simulator.item import DdlItem, RowItem
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.open_protocol import OpenProtocolWire
from applier.demo.simulator.producer.bootstrap import BootstrapSender
from applier.demo.simulator.producer.options import LogRecord, ProducerOptions
from applier.demo.simulator.producer.owner import ChangefeedOwner
from applier.demo.simulator.producer.state import ProducerState
from applier.model.position import NO_TS, Stream, Ts
from applier.sources.ticdc.tso import LOGICAL_BITS, physical_ms


def send_some(state: ProducerState) -> None:
    """Send some items, up to the first DDL."""
    for _ in range(state.rng.choice((1, 2, 8))):
        item = state.owner.queues.pick(state.rng)
        if item is None:
            return
        if isinstance(item, DdlItem):
            _send_ddl(state, item)
            return
        _send_row(state, item, state.owner.bootstraps)
        state.owner.queues.remove(item)


def send_moved(state: ProducerState) -> None:
    """Send rows of a moved table again."""
    for _ in range(state.rng.choice((1, 2, 9))):
        if state.moved:
            _send_row(state, state.moved.popleft(), state.moved_bootstraps)


def _send_row(state: ProducerState, item: RowItem, sender: BootstrapSender) -> None:
    if state.owner.items.is_dropped(item):
        state.writer.count("dropped delete")
        return
    topic = state.topics.of_schema(item.name.schema)
    if state.options.form.sends_schemas and sender.is_on and sender.notes(item, topic, state.writer.now_ms):
        _send_schema(state, topic, item)
    stream = Stream(topic, item.hash % state.topics.counts[topic])
    event = state.owner.items.encode(item, state.writer.now_ms)
    if event.is_placeholder:
        state.writer.count("placeholder")
    state.writer.add_row(stream, event)


def _send_schema(state: ProducerState, topic: str, item: RowItem) -> None:
    """Send the schema that a row needs to the partitions of a topic."""
    streams = state.topics.streams(topic) if state.options.wire.bootstrap_everywhere else [Stream(topic, 0)]
    for stream in streams:
        event = state.owner.wire.bootstrap(item, state.writer.now_ms)
        if event is not None:
            state.writer.write_events(stream, [event])
            state.writer.count("schema")


def send_due_schemas(state: ProducerState) -> None:
    """Send the schemas again that are due."""
    if state.options.form.sends_schemas and state.owner.bootstraps.is_on:
        for topic, item in state.owner.bootstraps.due(state.writer.now_ms):
            _send_schema(state, topic, item)


def _send_ddl(state: ProducerState, item: DdlItem) -> None:
    """Send some of the copies of a DDL: other events may come in between."""
    # Rows that were sent before the DDL must not stay behind it in an open batch.
    state.writer.flush_all()
    left = state.owner.copies.get(item)
    if left is None:
        topic = state.topics.of_schema(item.name.schema, schema_level=not item.name.table)
        streams = state.topics.streams(topic) if state.owner.wire.broadcasts_ddls else [Stream(topic, 0)]
        left = state.owner.copies[item] = streams
        state.rng.shuffle(left)
    for _ in range(state.rng.choice((1, 2, 9))):
        if left:
            state.writer.write_events(left.pop(), [state.owner.items.encode(item, state.writer.now_ms)])
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


_EMPTY_BATCH = frame([])


def advance_checkpoint(state: ProducerState) -> None:
    """Choose a new checkpoint. Everything up to it is written on all streams."""
    if state.is_quiet:
        return
    state.writer.flush_all()
    step = state.upstream.next
    # Nothing is waiting: the next commit may come at any moment, so one less is all that can be promised.
    idle = Ts(step.ts - 1) if step is not None else state.upstream.last_ts
    bound = state.owner.queues.bound(idle)
    # A restarted owner has old items again. A checkpoint does not step back while its owner lives.
    if bound < state.checkpoint:
        return
    state.checkpoint = bound if state.rng.random() < 0.7 else Ts(state.rng.randint(state.checkpoint, bound))
    state.promised = max(state.promised, state.checkpoint)
    state.owner.add_checkpoint(state.checkpoint)


def send_resolved(state: ProducerState) -> None:
    """Send checkpoints to some streams: each has its own pace, and some checkpoints are left out."""
    legacy = state.options.legacy_batches and state.options.form.batches
    for stream in [] if state.is_quiet else state.topics.streams():
        times = state.owner.next_resolved(stream, all_of_them=legacy)
        if not times:
            continue
        state.writer.flush(stream)
        state.writer.write_events(stream, [state.owner.wire.watermark(ts, state.writer.now_ms) for ts in times[-3:]])
        state.promised_to[stream] = times[-1]
        state.writer.count("resolved")
        if legacy and state.rng.random() < 0.2:
            state.writer.write(stream, _EMPTY_BATCH)


def begin_open_tail(state: ProducerState) -> None:
    """Send the last resolved ts, which is no DDL's ts, to all streams. What follows is never resolved."""
    state.writer.flush_all()
    bound = state.owner.queues.bound(state.upstream.last_ts)
    # W == T of a DDL would leave it pending for ever: no resolved event follows.
    if bound < state.promised or bound in {ddl.ts for ddl in state.upstream.ddls()}:
        return
    state.is_quiet = True
    for item in state.owner.queues.items():  # topics that the tail will make active need it too
        state.topics.of_schema(item.name.schema, schema_level=not item.name.table)
    state.final_ts = bound
    resolve_everywhere(state, bound)
    state.writer.count("open tail")


def finish(state: ProducerState) -> None:
    """End the log: everything is written, and (without an open tail) resolved on every stream."""
    state.writer.flush_all()
    if not state.is_quiet:
        state.final_ts = Ts(max(state.upstream.last_ts + state.rng.choice((1, 5, 1 << LOGICAL_BITS)), state.promised))
        resolve_everywhere(state, state.final_ts)


def resolve_everywhere(state: ProducerState, ts: Ts) -> None:
    """Send one resolved ts to all streams."""
    streams = state.topics.streams()
    state.rng.shuffle(streams)
    for stream in streams:
        state.writer.write_events(stream, [state.owner.wire.watermark(ts, state.writer.now_ms)])
        state.promised_to[stream] = ts


def replay(state: ProducerState) -> None:
    """Let one of these happen: a restart, a moved table, a repeated record, a new partition."""
    state.replays -= 1
    choice = 0.0 if state.options.announced_restarts else state.rng.random()
    if choice < 0.5:
        _restart(state)
    elif choice < 0.8:
        _move_table(state)
    elif choice < 0.9:
        state.writer.flush_all()
        state.writer.repeat_last()
    else:
        _grow(state)


def _grow(state: ProducerState) -> None:
    """Add a partition to a topic; the founding design announces it on all streams of the topic."""
    topic = state.topics.grow(state.rng)
    if topic is None:
        return
    state.writer.count("growth")
    wire = state.owner.wire
    if state.options.admin_events and isinstance(wire, OpenProtocolWire):
        for stream in state.topics.streams(topic):
            state.writer.flush(stream)
            state.writer.write_events(stream, [wire.admin(state.topics.counts[topic])])
        state.writer.count("admin event")


def _restart(state: ProducerState) -> None:
    """The owner dies; the next one starts at a persisted checkpoint: rows, DDLs and resolved events step back."""
    times = [state.checkpoint, *(ts for _, ts in state.owner.checkpoints), *state.upstream.times()]
    candidates = [ts for ts in times if state.upstream.floor < ts <= state.checkpoint and _is_announced_by(state, ts)]
    if not candidates:
        return
    state.writer.drop_batches()  # what was not acknowledged is sent again
    persisted, was = state.rng.choice(candidates), state.owner.flavour
    state.checkpoint = persisted
    # The node that was sending a moved table died with its owner.
    state.moved.clear()
    if state.options.growth and state.rng.random() < 0.5:
        _grow(state)
    upgrades = state.options.upgrade and was is Flavour.TIFLOW and state.rng.random() < 0.5
    state.owner = ChangefeedOwner(Flavour.TICDC if upgrades else was, state.options, state.rng)
    state.writer.count("upgrade" if upgrades else "restart")
    if state.options.announced_restarts:
        resolve_everywhere(state, persisted)
    # tiflow's checkpoint may be the ts of a DDL that was not sent yet.
    resent = [item for item in state.upstream.items() if item.ts > persisted or (isinstance(item, DdlItem) and item.ts == persisted)]
    for item in resent:
        if isinstance(item, DdlItem):
            item.sent = False
    state.owner.queues.extend(resent)


def _is_announced_by(state: ProducerState, ts: Ts) -> bool:
    """Return whether each stream can see by ``ts`` alone that the producer goes back."""
    return not state.options.announced_restarts or all(ts < state.promised_to.get(stream, NO_TS) for stream in state.topics.streams())


def _move_table(state: ProducerState) -> None:
    """A table moves to another node: some of its rows are sent again, among new ones."""
    state.writer.flush_all()
    # By identity: two equal rows of two commits are two events.
    pending = {id(item) for item in state.owner.queues.items()}
    sent = [item for item in state.upstream.rows() if id(item) not in pending]
    if sent:
        # Another node: none of its rows is in a record of the last one.
        state.moved.clear()
        state.moved_bootstraps = BootstrapSender(state.options.wire)
        name, since = state.rng.choice(sent).name, state.rng.choice(sent).ts
        state.moved.extend([item for item in sent if item.name == name and item.ts > since][: state.rng.choice((1, 5, 99))])
        state.writer.count("table move")


class Producer:
    """Writes one log. ``final_ts`` and ``counts`` (of what happened) are complete when ``log`` is exhausted."""

    def __init__(self, history: History, options: ProducerOptions | None = None) -> None:
        self._history = history
        self._options = options or ProducerOptions()
        self.final_ts = Ts(0)
        self.counts: dict[str, int] = {}

    def log(self) -> Iterator[LogRecord]:
        """Yield the records in the order of real time. Each call starts from the beginning."""
        state = ProducerState(self._history, self._options)
        self.counts = state.writer.counts
        while _has_items_left(state):
            _take_one_action(state)
            yield from state.writer.take()
        finish(state)
        yield from state.writer.take()
        self.final_ts = state.final_ts


def _has_items_left(state: ProducerState) -> bool:
    replays = state.replays and state.upstream
    return bool(state.upstream.next is not None or len(state.owner.queues) or state.moved or replays)


def _take_one_action(state: ProducerState) -> None:
    """Do what the lot says. The shares let every kind of thing happen in a log of some hundred records."""
    ahead = {head.ts for head in state.owner.queues.heads()}
    if state.upstream.next is not None and len(ahead) < state.options.lookahead and state.rng.random() < 0.5:
        _take_step(state)
    send_due_schemas(state)
    choice = state.rng.random()
    if choice < 0.7:
        send_some(state)
    elif choice < 0.8:
        advance_checkpoint(state)
    elif choice < 0.93:
        send_resolved(state)
    elif choice < 0.97:
        send_moved(state)
    elif state.replays and state.upstream.last_ts:
        replay(state)
    if state.options.open_tail and state.upstream.next is None and not state.replays and not state.is_quiet:
        begin_open_tail(state)


def _take_step(state: ProducerState) -> None:
    state.owner.queues.extend(state.upstream.take())
    state.writer.now_ms = max(state.writer.now_ms, physical_ms(state.upstream.last_ts)) + state.rng.randint(1, 40)
    state.upstream.forget(state.owner.queues.heads())
