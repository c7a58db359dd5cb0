"""What the actions of a producer share, with the steps of upstream that it may send, and those that a restart may send again."""

import random
from collections import deque
from collections.abc import Iterable, Iterator

from applier.demo.simulator.history import History
from applier.demo.simulator.item import DdlItem, Item, ItemMaker, RowItem
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.producer.bootstrap import BootstrapSender
from applier.demo.simulator.producer.options import ProducerOptions
from applier.demo.simulator.producer.owner import ChangefeedOwner
from applier.demo.simulator.producer.record_writer import RecordWriter, Topics
from applier.model.position import Stream, Ts
from applier.sources.ticdc.tso import physical_ms


class UpstreamSteps:
    """Takes steps of the history, and keeps the last ``options.horizon`` of them. ``floor``: the last step that it has forgotten."""

    def __init__(self, history: History, options: ProducerOptions, rng: random.Random) -> None:
        self._steps = iter(history)
        self._maker = ItemMaker(rng, options.dispatcher, options.images)
        self._horizon = options.horizon
        self._kept: deque[tuple[Ts, list[Item]]] = deque()
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
        self._kept.append((step.ts, items))
        self.last_ts = step.ts
        self.next = next(self._steps, None)
        return items

    def forget(self, pending: Iterable[Item]) -> None:
        """Forget steps beyond the horizon, but none at or above the oldest pending item."""
        oldest = min((item.ts for item in pending), default=self.last_ts)
        while len(self._kept) > self._horizon and self._kept[0][0] < oldest:
            self.floor = self._kept.popleft()[0]

    def times(self) -> Iterator[Ts]:
        """Yield the timestamps of the kept steps."""
        return (ts for ts, _ in self._kept)

    def items(self) -> Iterator[Item]:
        """Yield the items of the kept steps."""
        return (item for _, items in self._kept for item in items)

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
        self.moved_bootstraps = BootstrapSender(options.wire)
        self.replays = options.replays
        self.is_quiet = False
        self.final_ts = Ts(0)
        self.owner = ChangefeedOwner(options.flavour, options, self.rng)
