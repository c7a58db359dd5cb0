"""One owner of a changefeed, from its start at a checkpoint until it dies, and the order that it keeps.

There is one queue per table, or per half of a table that is split among nodes. A DDL is in every queue that it touches. So it stays in
order with the rows of its tables, while other tables go ahead (open_protocol.md 3.7). tiflow sends a DDL only after every row and DDL below
it, of any table.
"""

import random
from collections import deque
from collections.abc import Iterable, Iterator

from applier.demo.simulator.item import DdlItem, Item, RowItem
from applier.demo.simulator.item_encoder import ItemEncoder, wire_of
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.large_row import LargeRows
from applier.demo.simulator.producer.bootstrap import BootstrapSender
from applier.demo.simulator.producer.options import ProducerOptions
from applier.model.events import TableName
from applier.model.position import Stream, Ts

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
        self.bootstraps = BootstrapSender(options.wire)
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
        """Return what the stream gets now: nothing, one of the checkpoints that it has not got, or all up to that one."""
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
