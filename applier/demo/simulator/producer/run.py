"""One run of a producer: a loop that draws what happens next. It sends rows and DDLs, resolves what is sent, and sends again.

An owner of a changefeed lives from its start at a checkpoint until it dies. It has one queue per table, or per half of a table that is
split among nodes. A DDL is in every queue that it touches. So it stays in order with the rows of its tables, while other tables go ahead
(open_protocol.md 3.7). tiflow sends a DDL only after every row and DDL below it, of any table.

``ProducerState`` is what the actions of a producer share: the steps of upstream that it may send, and the steps that a restart sends again.
"""

import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from applier.demo.simulator.dispatch import topic_of
from applier.demo.simulator.encoder import frame, record_length
from applier.demo.simulator.history import History
from applier.demo.simulator.item import DdlItem, Item, ItemMaker, LargeRows, RowItem
from applier.demo.simulator.item_encoder import ItemEncoder, wire_of
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.open_protocol import OpenProtocolWire
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.producer.bootstrap import BootstrapSender
from applier.demo.simulator.producer.options import LogRecord, ProducerOptions
from applier.demo.simulator.schema_versions import VersionedTable
from applier.demo.simulator.wire_format import RecordBytes, WireEvent, only_event
from applier.model.events import TableName
from applier.model.position import NO_TS, Stream, Ts
from applier.sources.ticdc.tso import LOGICAL_BITS, physical_ms

_QueueKey = tuple[TableName, int]


class TableQueues:
    """Items that are not sent yet."""

    def __init__(self, flavour: Flavour, *, split: bool) -> None:
        self._ordered = flavour is Flavour.TIFLOW
        self._halves = (0, 1) if split else (0,)
        self._queues: dict[_QueueKey, deque[Item]] = {}
        self._pending = 0

    def __len__(self) -> int:
        """Return the number of items."""
        return self._pending

    def extend(self, items: Iterable[Item]) -> None:
        """Queue items, given in their upstream order."""
        for item in items:
            self._pending += 1
            for key in self._keys_of(item):
                self._queues.setdefault(key, deque()).append(item)

    def _keys_of(self, item: Item) -> list[_QueueKey]:
        if isinstance(item, RowItem):
            return [(item.name, item.half % len(self._halves))]
        names = set(item.touched)
        for schema in {name.schema for name in item.touched}:
            whole = TableName(schema, "")
            if whole in names:  # a schema DDL touches all tables of its schema
                names |= {name for name, _ in self._queues if name.schema == schema}
            elif any(self._queues.get((whole, half)) for half in self._halves):
                names.add(whole)
        return [(name, half) for name in sorted(names) for half in self._halves]

    def heads(self) -> Iterator[Item]:
        """Yield the first item of each queue."""
        return (queue[0] for queue in self._queues.values() if queue)

    def items(self) -> Iterator[Item]:
        """Yield everything that is queued (a DDL once for each of its queues)."""
        return (item for queue in self._queues.values() for item in queue)

    def pick(self, rng: random.Random) -> Item | None:
        """Choose an item that may be sent now, mostly one of the oldest; None if there is none."""
        ready = sorted({id(item): item for item in self.heads() if self._is_ready(item)}.values(), key=lambda item: item.ts)
        if not ready:
            return None
        return ready[0] if rng.random() < 0.5 else rng.choice(ready)

    def _is_ready(self, item: Item) -> bool:
        if isinstance(item, RowItem):
            return True
        if item.previous is not None and not item.previous.sent:
            return False
        # At the head of all its queues: whatever comes before it in any of its tables is sent first.
        if any(queue[0] is not item for queue in self._queues.values() if queue and item in queue):
            return False
        return not self._ordered or all(head.ts > item.ts or (isinstance(head, DdlItem) and head.ts == item.ts) for head in self.heads())

    def remove(self, item: Item) -> None:
        """Take a sent item from the head of its queues."""
        self._pending -= 1
        for key in [key for key, queue in self._queues.items() if queue and queue[0] is item]:
            queue = self._queues[key]
            queue.popleft()
            if not queue:
                del self._queues[key]

    def bound(self, idle: Ts) -> Ts:
        """Return the greatest resolved ts that may be promised now; ``idle`` if nothing is pending.

        tiflow may promise the ts of a DDL that it has not sent yet, but no row at it; ticdc promises less than everything unsent.
        """
        bounds = [head.ts if self._ordered and isinstance(head, DdlItem) else Ts(head.ts - 1) for head in self.heads()]
        return min(bounds, default=idle)


_MAX_CHECKPOINTS = 64
_RESOLVED_DELAYS = (0.2, 0.5, 0.95)


class ChangefeedOwner:
    """What an owner knows and its successor does not: queues, checkpoints, and which stream got which of them."""

    def __init__(self, flavour: Flavour, options: ProducerOptions, rng: random.Random) -> None:
        self._rng = rng
        self.flavour = flavour
        self.queues = TableQueues(flavour, split=flavour is Flavour.TICDC and rng.random() < 0.5)
        self.wire = wire_of(options.form, flavour, options.compression, options.images, options.wire)
        self.large = LargeRows(options.large, rng) if options.large else None
        self.items = ItemEncoder(self.wire, options.sent_images, self.large)
        self.bootstraps = BootstrapSender(options.wire, flavour)
        self.first_schemas: Sequence[VersionedTable] = ()
        """Of all tables, which it sends before its first watermark."""
        self.copies: dict[DdlItem, list[Stream]] = {}
        self.checkpoints: deque[tuple[int, Ts]] = deque(maxlen=_MAX_CHECKPOINTS)
        self._number = 0
        self._resolved: dict[Stream, int] = {}
        self._delay: dict[Stream, float] = {}

    def add_checkpoint(self, ts: Ts) -> None:
        """Note a checkpoint that the streams have to get as a resolved ts."""
        self._number += 1
        self.checkpoints.append((self._number, ts))

    def next_resolved(self, stream: Stream, *, all_of_them: bool) -> list[Ts]:
        """Return what the stream gets now: nothing, one of the checkpoints that it does not have, or all up to that one."""
        # Drawn once per stream. At 0.95 a stream gets one checkpoint in twenty, and holds back the watermark.
        delay = self._delay.setdefault(stream, self._rng.choice(_RESOLVED_DELAYS))
        last = self._resolved.get(stream, 0)
        waiting = [(number, ts) for number, ts in self.checkpoints if number > last]
        if not waiting or self._rng.random() < delay:
            return []
        place = self._rng.randrange(len(waiting))
        self._resolved[stream] = waiting[place][0]
        sent = waiting[: place + 1] if all_of_them else waiting[place : place + 1]
        return [ts for _, ts in sent]


_MAX_PARTITIONS = 8


@dataclass(slots=True)
class Topics:
    """A topic is active once something was sent to it."""

    options: ProducerOptions
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.counts[self.options.topic] = self.options.partitions

    def of_schema(self, schema: str, *, schema_level: bool = False) -> str:
        """Return the topic of a table, or of a schema DDL (the default topic), and make it active."""
        split = self.options.topic_per_schema and not schema_level
        topic = topic_of(schema, self.options.topic, per_schema=split)
        self.counts.setdefault(topic, self.options.partitions)
        return topic

    def streams(self, topic: str | None = None) -> list[Stream]:
        """Return all streams of one topic, or of all active ones."""
        return [Stream(name, p) for name, count in self.counts.items() if topic in (None, name) for p in range(count)]

    def grow(self, rng: random.Random) -> str | None:
        """Add a partition to a topic, up to the allowed number, and return the topic; None if it has as many as are allowed."""
        topic = rng.choice(sorted(self.counts))
        if self.counts[topic] >= min(self.options.partitions + self.options.growth, _MAX_PARTITIONS):
            return None
        self.counts[topic] += 1
        return topic


class RecordWriter:
    """Collects row events per stream and writes records. ``counts``: how often what happened; ``now_ms``: the producer's clock."""

    def __init__(self, options: ProducerOptions, rng: random.Random, now_ms: int) -> None:
        self._options = options
        self._rng = rng
        self._batches: dict[Stream, list[WireEvent]] = {}
        self._written: list[LogRecord] = []
        self.now_ms = now_ms
        self.counts: dict[str, int] = {}

    def count(self, what: str) -> None:
        """Note that something happened."""
        self.counts[what] = self.counts.get(what, 0) + 1

    def take(self) -> list[LogRecord]:
        """Return the records written since the last call."""
        written, self._written = self._written, []
        return written

    def add_row(self, stream: Stream, event: WireEvent) -> None:
        """Put a row event into its stream's batch; a full batch is written."""
        batch = self._batches.setdefault(stream, [])
        if batch and record_length([*batch, event]) > self._options.max_message_bytes:
            self.flush(stream)
            batch = self._batches.setdefault(stream, [])
        batch.append(event)
        self.count("row")
        if len(batch) >= self._options.batch_size or not self._options.form.batches:
            self.flush(stream)

    def flush(self, stream: Stream) -> None:
        """Write the batch of one stream."""
        batch = self._batches.pop(stream, None)
        if batch:
            self.write_events(stream, batch)
            if len(batch) > 1:
                self.count("batch")

    def flush_all(self) -> None:
        """Write the batches of all streams."""
        for stream in list(self._batches):
            self.flush(stream)

    def drop_batches(self) -> None:
        """Forget what is not written: the owner that held it died."""
        self._batches.clear()

    def write_events(self, stream: Stream, events: Sequence[WireEvent]) -> None:
        """Write events as one record, or as one each in a format without batches."""
        for record in [frame(events)] if self._options.form.batches else [only_event([event]) for event in events]:
            self.write(stream, record)

    def write(self, stream: Stream, record: RecordBytes) -> None:
        """Write one record, some milliseconds after the last one."""
        # Record times never step back within a stream; commit timestamps do.
        self.now_ms += self._rng.randint(0, 3)
        self._written.append(LogRecord(stream, record.key, record.value, self.now_ms))

    def repeat_last(self) -> None:
        """Write the last record a second time, as a client does that got no acknowledgement."""
        if self._written:
            self._written.append(self._written[-1])
            self.count("retry")


class UpstreamSteps:
    """Takes steps of the history, and keeps the last ``options.horizon`` of them. ``floor``: the last step that it has forgotten."""

    def __init__(self, history: History, options: ProducerOptions, rng: random.Random) -> None:
        self._steps = iter(history)
        self._maker = ItemMaker(rng, options.dispatcher, options.images)
        self._horizon = options.horizon
        self._kept: deque[tuple[Ts, list[Item], Sequence[VersionedTable]]] = deque()
        self._floor_tables: Sequence[VersionedTable] = ()
        self.next: UpstreamStep | None = next(self._steps, None)
        self.floor = Ts(0)
        self.last_ts = Ts(0)
        self.start_ms = physical_ms(self.next.ts) if self.next else 0

    def __bool__(self) -> bool:
        """Whether a step is kept that can be sent again."""
        return bool(self._kept)

    def take(self) -> list[Item]:
        """Take the next step and return its items."""
        step = self.next
        if step is None:
            return []
        items = self._maker.items(step)
        self._kept.append((step.ts, items, self._maker.schemas.tables()))
        self.last_ts = step.ts
        self.next = next(self._steps, None)
        return items

    def forget(self, pending: Iterable[Item]) -> None:
        """Forget steps beyond the horizon, but none at or above the oldest pending item."""
        oldest = min((item.ts for item in pending), default=self.last_ts)
        while len(self._kept) > self._horizon and self._kept[0][0] < oldest:
            self.floor, _, self._floor_tables = self._kept.popleft()

    def tables_at(self, checkpoint: Ts) -> Sequence[VersionedTable]:
        """Return the tables as an owner finds them that starts from a checkpoint: DDLs at it may come again."""
        before = (tables for ts, _, tables in reversed(self._kept) if ts < checkpoint)
        return next(before, self._floor_tables)

    def times(self) -> Iterator[Ts]:
        """Yield the timestamps of the kept steps."""
        return (ts for ts, _, _ in self._kept)

    def items(self) -> Iterator[Item]:
        """Yield the items of the kept steps."""
        return (item for _, items, _ in self._kept for item in items)

    def ddls(self) -> Iterator[DdlItem]:
        """Yield the DDLs of the kept steps."""
        return (item for item in self.items() if isinstance(item, DdlItem))

    def rows(self) -> Iterator[RowItem]:
        """Yield the rows of the kept steps."""
        return (item for item in self.items() if isinstance(item, RowItem))


class ProducerState:
    """A changefeed between two records.

    ``checkpoint``: of the present owner; ``promised``: the greatest resolved ts so far, ``promised_to``: the last one of each stream.
    ``moved``: rows of a moved table that are sent again. ``is_quiet``: the log's open tail has begun, without resolved events.
    """

    def __init__(self, history: History, options: ProducerOptions) -> None:
        self.options = options
        self.rng = random.Random(f"producer {options.seed}")
        self.upstream = UpstreamSteps(history, options, self.rng)
        self.topics = Topics(options)
        self.writer = RecordWriter(options, self.rng, self.upstream.start_ms)
        self.checkpoint = Ts(0)
        self.promised = Ts(0)
        self.promised_to: dict[Stream, Ts] = {}
        self.moved: deque[RowItem] = deque()
        self.moved_bootstraps = BootstrapSender(options.wire, options.flavour)
        self.replays = options.replays
        self.is_quiet = False
        self.final_ts = Ts(0)
        self.owner = ChangefeedOwner(options.flavour, options, self.rng)


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
        _send_schema(state, topic, item.schema)
    stream = Stream(topic, item.hash % state.topics.counts[topic])
    event = state.owner.items.encode(item, state.writer.now_ms)
    if event.is_placeholder:
        state.writer.count("placeholder")
    state.writer.add_row(stream, event)


def _send_schema(state: ProducerState, topic: str, schema: VersionedTable) -> None:
    """Send the schema that a row needs to the partitions of a topic."""
    _write_schema(state, state.topics.streams(topic) if state.options.wire.bootstrap_everywhere else [Stream(topic, 0)], schema)


def _write_schema(state: ProducerState, streams: Iterable[Stream], schema: VersionedTable) -> None:
    for stream in streams:
        event = state.owner.wire.bootstrap(schema, state.writer.now_ms)
        if event is not None:
            state.writer.write_events(stream, [event])
            state.writer.count("schema")


def send_due_schemas(state: ProducerState) -> None:
    """Send the schemas again that are due."""
    if state.options.form.sends_schemas and state.owner.bootstraps.is_on:
        for topic, item in state.owner.bootstraps.due(state.writer.now_ms):
            _send_schema(state, topic, item.schema)


def send_first_schemas(state: ProducerState) -> None:
    """Send the schemas of all tables to all partitions, whatever the senders of rows do (canal_json_and_simple.md 6).

    tiflow sends each to its table's topic. ticdc gives the router no name, so all go to the default topic.
    """
    schemas, state.owner.first_schemas = state.owner.first_schemas, ()
    for schema in schemas:
        by_name = state.owner.flavour is Flavour.TIFLOW
        topic = state.topics.of_schema(schema.table.name.schema) if by_name else state.options.topic
        _write_schema(state, state.topics.streams(topic), schema)
        state.writer.count("schema at start")


def _send_ddl(state: ProducerState, item: DdlItem) -> None:
    """Send some of the copies of a DDL: other events may come in between."""
    # Rows that were sent before the DDL must not stay after it in an open batch.
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
    # Nothing is waiting: the next commit may come at any point in time, so one less is all that can be promised.
    idle = Ts(step.ts - 1) if step is not None else state.upstream.last_ts
    bound = state.owner.queues.bound(idle)
    # A restarted owner has old items again. A checkpoint does not step back while its owner lives.
    if bound < state.checkpoint:
        return
    state.checkpoint = bound if state.rng.random() < 0.7 else Ts(state.rng.randint(state.checkpoint, bound))
    state.promised = max(state.promised, state.checkpoint)
    state.owner.add_checkpoint(state.checkpoint)


def send_resolved(state: ProducerState) -> None:
    """Send checkpoints to some streams: each has its own pace, and some checkpoints are not sent."""
    legacy = state.options.legacy_batches and state.options.form.batches
    if not state.is_quiet:
        send_first_schemas(state)
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
    # W == T of a DDL would leave it pending permanently: no resolved event follows.
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
    send_first_schemas(state)
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
    if state.options.form.sends_schemas and state.options.wire.sends_all_at_start(by_tiflow=state.owner.flavour is Flavour.TIFLOW):
        state.owner.first_schemas = state.upstream.tables_at(persisted)
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
        state.moved_bootstraps = BootstrapSender(state.options.wire, state.owner.flavour)
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
    """Do what the lot says. The shares let every kind of thing happen in a log of a few hundred records."""
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
