"""What the actions of a producer share."""

import random
from collections import deque

from applier.demo.simulator.history import History
from applier.demo.simulator.item import RowItem
from applier.demo.simulator.producer.options import ProducerOptions
from applier.demo.simulator.producer.owner import ChangefeedOwner
from applier.demo.simulator.producer.record_writer import RecordWriter
from applier.demo.simulator.producer.topics import Topics
from applier.demo.simulator.producer.upstream import UpstreamSteps
from applier.model.position import Stream, Ts


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
        self.replays = options.replays
        self.is_quiet = False
        self.final_ts = Ts(0)
        self.owner = ChangefeedOwner(options.flavour, options, self.rng)
