"""A producer: writes a history as the log of records that tiflow or ticdc may legally write (open_protocol.md section 3).

Everything here is a choice that a real changefeed can make: which table goes ahead, which partition hears of a resolved ts late or
not at all, when an owner dies and begins again at its persisted checkpoint, when partitions are added. Same seed, same bytes.
"""

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from applier.demo.simulator.dispatch import topic_of
from applier.demo.simulator.encoder import Encoder, RecordBytes, WireEvent, frame, record_length
from applier.demo.simulator.history import History
from applier.demo.simulator.item import DdlItem, Item, ItemEncoder, ItemMaker, RowItem
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.lanes import Lanes
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.producer_options import LogRecord, ProducerOptions
from applier.model.position import LOGICAL_BITS, Stream, Ts, physical_ms

__all__ = ["LogRecord", "Producer", "ProducerOptions"]

_MAX_TICKS = 64
_EMPTY_BATCH = frame([])


class Producer:
    """Writes one log. ``final_ts`` and ``counts`` (of what happened) are complete when ``log`` is exhausted."""

    def __init__(self, history: History, options: ProducerOptions | None = None) -> None:
        self._history = history
        self._options = options or ProducerOptions()
        self.final_ts = Ts(0)
        self.counts: dict[str, int] = {}

    def log(self) -> Iterator[LogRecord]:
        """Yield the records in the order of real time. Each call begins anew."""
        run = _Run(self._history, self._options)
        self.counts = run.counts
        yield from run.records()
        self.final_ts = run.final_ts


@dataclass(slots=True)
class _Topics:
    """The topics with their partition counts; a topic is active once something was sent to it."""

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

    def grow(self, rng: random.Random) -> bool:
        """Add a partition to a topic, up to the allowed number."""
        topic = rng.choice(sorted(self.counts))
        if self.counts[topic] >= min(self.options.partitions + self.options.growth, 8):
            return False
        self.counts[topic] += 1
        return True


class _Run:
    """One run of a producer: its state between two records."""

    def __init__(self, history: History, options: ProducerOptions) -> None:
        self._options = options
        self._rng = random.Random(f"producer {options.seed}")  # noqa: S311 - a seeded simulation
        self._steps = iter(history)
        self._next: UpstreamStep | None = next(self._steps, None)
        self._maker = ItemMaker(self._rng, options.dispatcher, options.images)
        self._topics = _Topics(options)
        self._past: deque[tuple[Ts, list[Item]]] = deque()
        self._floor = Ts(0)
        self._last_ts = Ts(0)
        self._checkpoint = Ts(0)
        self._promised = Ts(0)
        self._now_ms = physical_ms(self._next.ts) if self._next else 0
        self._open: dict[Stream, list[WireEvent]] = {}
        self._out: list[LogRecord] = []
        self._copies: dict[DdlItem, list[Stream]] = {}
        self._moves: deque[RowItem] = deque()
        self._replays = options.replays
        self._quiet = False
        self.final_ts = Ts(0)
        self.counts: dict[str, int] = {}
        self._begin(options.flavour)

    def _begin(self, flavour: Flavour) -> None:
        """Start an owner: lanes, ticks and paces are its own."""
        self._flavour = flavour
        self._split = flavour is Flavour.TICDC and self._rng.random() < 0.5
        self._encoder = Encoder(flavour, self._options.compression)
        self._items = ItemEncoder(self._encoder, self._options.images)
        self._lanes = Lanes(flavour, split=self._split)
        self._ticks: deque[tuple[int, Ts]] = deque(maxlen=_MAX_TICKS)
        self._tick_number = 0
        self._heard: dict[Stream, int] = {}
        self._deafness: dict[Stream, float] = {}

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def records(self) -> Iterator[LogRecord]:
        """Run until everything was sent, and end with a resolved ts on every stream."""
        while self._next is not None or len(self._lanes) or self._moves or (self._replays and self._past):
            self._act()
            yield from self._taken()
        self._flush_all()
        if not self._quiet:
            self.final_ts = Ts(max(self._last_ts + self._rng.choice((1, 5, 1 << LOGICAL_BITS)), self._promised))
            self._resolve_everywhere(self.final_ts)
        yield from self._taken()

    def _taken(self) -> list[LogRecord]:
        out, self._out = self._out, []
        return out

    def _act(self) -> None:
        """Do one thing, drawn by lot."""
        if self._next is not None and len(self._past_pending()) < self._options.lookahead and self._rng.random() < 0.5:
            self._pull()
        choice = self._rng.random()
        if choice < 0.7:
            self._send_some()
        elif choice < 0.8:
            self._tick()
        elif choice < 0.93:
            self._tell()
        elif choice < 0.97:
            self._send_moved()
        elif self._replays and self._last_ts:
            self._replay()
        if self._options.open_tail and self._next is None and not self._replays and not self._quiet:
            self._close()

    def _past_pending(self) -> set[Ts]:
        return {head.ts for head in self._lanes.heads()}

    def _pull(self) -> None:
        """Take the next step of the history."""
        step = self._next
        if step is None:
            return
        items = self._maker.items(step)
        self._lanes.extend(items)
        self._past.append((step.ts, items))
        self._last_ts = step.ts
        self._now_ms = max(self._now_ms, physical_ms(step.ts)) + self._rng.randint(1, 40)
        self._next = next(self._steps, None)
        while len(self._past) > self._options.horizon and self._past[0][0] < min(
            (head.ts for head in self._lanes.heads()), default=step.ts
        ):
            self._floor = self._past.popleft()[0]

    # Sending

    def _send_some(self) -> None:
        for _ in range(self._rng.choice((1, 2, 8))):
            item = self._lanes.pick(self._rng)
            if item is None:
                return
            if isinstance(item, DdlItem):
                self._send_ddl(item)
                return
            self._send_row(item)
            self._lanes.remove(item)

    def _send_row(self, item: RowItem) -> None:
        topic = self._topics.of_schema(item.name.schema)
        stream = Stream(topic, item.hash % self._topics.counts[topic])
        batch = self._open.setdefault(stream, [])
        event = self._items.encode(item)
        if batch and record_length([*batch, event]) > self._options.max_message_bytes:
            self._flush(stream)
            batch = self._open.setdefault(stream, [])
        batch.append(event)
        self._count("row")
        if len(batch) >= self._options.batch_size:
            self._flush(stream)

    def _send_ddl(self, item: DdlItem) -> None:
        """Send some of the copies of a DDL: other events may come in between."""
        self._flush_all()
        left = self._copies.get(item)
        if left is None:
            topic = self._topics.of_schema(item.name.schema, schema_level=not item.name.table)
            left = self._copies[item] = self._topics.streams(topic)
            self._rng.shuffle(left)
        event = self._items.encode(item)
        for _ in range(self._rng.choice((1, 2, 9))):
            if left:
                self._write(left.pop(), frame([event]))
                self._count("ddl copy")
        if not left:
            del self._copies[item]
            item.sent = True
            self._lanes.remove(item)
            self._count("ddl")
            if item.ts < max(
                (other.ts for _, items in self._past for other in items if isinstance(other, DdlItem) and other.sent), default=0
            ):
                self._count("ddl out of order")
            if item.ts == self._checkpoint:
                self._count("ddl at resolved ts")

    def _flush(self, stream: Stream) -> None:
        batch = self._open.pop(stream, None)
        if batch:
            self._write(stream, frame(batch))
            if len(batch) > 1:
                self._count("batch")

    def _flush_all(self) -> None:
        for stream in list(self._open):
            self._flush(stream)

    def _write(self, stream: Stream, record: RecordBytes) -> None:
        self._now_ms += self._rng.randint(0, 3)
        self._out.append(LogRecord(stream, record.key, record.value, self._now_ms))

    # Resolved events

    def _tick(self) -> None:
        """Decide on a new checkpoint: everything up to it is acknowledged on all streams."""
        if self._quiet:
            return
        self._flush_all()
        idle = Ts(self._next.ts - 1) if self._next is not None else self._last_ts
        bound = self._lanes.bound(idle)
        if bound < self._checkpoint:
            return
        self._checkpoint = bound if self._rng.random() < 0.7 else Ts(self._rng.randint(self._checkpoint, bound))
        self._promised = max(self._promised, self._checkpoint)
        self._tick_number += 1
        self._ticks.append((self._tick_number, self._checkpoint))

    def _tell(self) -> None:
        """Let some streams hear of a tick: each at its own pace, and some ticks are dropped."""
        for stream in [] if self._quiet else self._topics.streams():
            deaf = self._deafness.setdefault(stream, self._rng.choice((0.2, 0.5, 0.95)))
            heard = self._heard.get(stream, 0)
            waiting = [(number, ts) for number, ts in self._ticks if number > heard]
            if not waiting or self._rng.random() < deaf:
                continue
            place = self._rng.randrange(len(waiting))
            self._heard[stream] = waiting[place][0]
            told = waiting[: place + 1] if self._options.legacy_batches else waiting[place : place + 1]
            self._flush(stream)
            self._write(stream, frame([self._encoder.resolved(ts) for _, ts in told[-3:]]))
            self._count("resolved")
            if self._options.legacy_batches and self._rng.random() < 0.2:
                self._write(stream, _EMPTY_BATCH)

    def _resolve_everywhere(self, ts: Ts) -> None:
        streams = self._topics.streams()
        self._rng.shuffle(streams)
        for stream in streams:
            self._write(stream, frame([self._encoder.resolved(ts)]))

    def _close(self) -> None:
        """Begin the open tail: the last resolved ts, which is no DDL's ts, on all streams; the rest follows without any."""
        self._flush_all()
        bound = self._lanes.bound(self._last_ts)
        if bound < self._promised or bound in {item.ts for _, items in self._past for item in items if isinstance(item, DdlItem)}:
            return
        self._quiet = True
        for item in self._lanes.items():  # topics that the tail will make active hear of it too
            self._topics.of_schema(item.name.schema, schema_level=not item.name.table)
        self.final_ts = bound
        self._resolve_everywhere(bound)
        self._count("open tail")

    # Replays

    def _replay(self) -> None:
        self._replays -= 1
        choice = self._rng.random()
        if choice < 0.5:
            self._restart()
        elif choice < 0.8:
            self._move_table()
        elif choice < 0.9:
            self._flush_all()
            if self._out:
                self._out.append(self._out[-1])
                self._count("retry")
        elif self._topics.grow(self._rng):
            self._count("growth")

    def _restart(self) -> None:
        """The owner dies; the next one begins at a persisted checkpoint: rows, DDLs and resolved events step back."""
        candidates = [ts for ts in [self._checkpoint, *(ts for _, ts in self._ticks), *(ts for ts, _ in self._past)] if ts > self._floor]
        candidates = [ts for ts in candidates if ts <= self._checkpoint]
        if not candidates:
            return
        self._open.clear()  # what was not acknowledged is sent again
        persisted, was = self._rng.choice(candidates), self._flavour
        self._checkpoint = persisted
        self._copies = {}
        self._moves.clear()
        if self._options.growth and self._rng.random() < 0.5 and self._topics.grow(self._rng):
            self._count("growth")
        upgrades = self._options.upgrade and was is Flavour.TIFLOW and self._rng.random() < 0.5
        self._begin(Flavour.TICDC if upgrades else was)
        self._count("upgrade" if upgrades else "restart")
        # tiflow's checkpoint may be the ts of a DDL that was not sent yet.
        resent = [
            item for _, items in self._past for item in items if item.ts > persisted or (isinstance(item, DdlItem) and item.ts == persisted)
        ]
        for item in resent:
            if isinstance(item, DdlItem):
                item.sent = False
        self._lanes.extend(resent)

    def _move_table(self) -> None:
        """A table moves to another node: some of its rows come again, among what goes on."""
        self._flush_all()
        pending = {id(item) for item in self._lanes.items()}
        sent = [item for _, items in self._past for item in items if isinstance(item, RowItem) and id(item) not in pending]
        if sent:
            name, since = self._rng.choice(sent).name, self._rng.choice(sent).ts
            self._moves.extend([item for item in sent if item.name == name and item.ts > since][: self._rng.choice((1, 5, 99))])
            self._count("table move")

    def _send_moved(self) -> None:
        for _ in range(self._rng.choice((1, 2, 9))):
            if self._moves:
                self._send_row(self._moves.popleft())
