"""The order that a producer keeps: one queue per table, or per half of a table that is split among nodes.

A DDL is in every queue that it touches. So it stays in order with the rows of its tables, while other tables go ahead
(open_protocol.md 3.7). tiflow sends a DDL only after every row and DDL below it, of any table.
"""

import random
from collections import deque
from collections.abc import Iterable, Iterator

from applier.demo.simulator.item import DdlItem, Item, RowItem
from applier.demo.simulator.json_text import Flavour
from applier.model.events import TableName
from applier.model.position import Ts

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
