"""One owner of a changefeed: from its start at a checkpoint until it dies."""

import random
from collections import deque

from applier.demo.simulator.encoder import Encoder
from applier.demo.simulator.item import DdlItem
from applier.demo.simulator.item_encoder import ItemEncoder
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.large_row import LargeRows
from applier.demo.simulator.producer.options import ProducerOptions
from applier.demo.simulator.producer.table_queues import TableQueues
from applier.model.position import Stream, Ts

_MAX_CHECKPOINTS = 64
_RESOLVED_DELAYS = (0.2, 0.5, 0.95)


class ChangefeedOwner:
    """What an owner knows and its successor does not: queues, checkpoints, and which stream got which of them."""

    def __init__(self, flavour: Flavour, options: ProducerOptions, rng: random.Random) -> None:
        self._rng = rng
        self.flavour = flavour
        self.queues = TableQueues(flavour, split=flavour is Flavour.TICDC and rng.random() < 0.5)
        self.encoder = Encoder(flavour, options.compression)
        self.large = LargeRows(options.large, rng) if options.large else None
        self.items = ItemEncoder(self.encoder, options.images, self.large)
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
