"""One run of a producer: a loop that draws what happens next."""

from collections.abc import Iterator

from applier.demo.simulator.history import History
from applier.demo.simulator.producer.options import LogRecord, ProducerOptions
from applier.demo.simulator.producer.replaying import replay
from applier.demo.simulator.producer.resolving import advance_checkpoint, begin_open_tail, finish, send_resolved
from applier.demo.simulator.producer.sending import send_moved, send_some
from applier.demo.simulator.producer.state import ProducerState
from applier.model.position import Ts
from applier.sources.ticdc.tso import physical_ms


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
