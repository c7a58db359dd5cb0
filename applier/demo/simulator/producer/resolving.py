"""Resolved events: the owner's checkpoint, and how each stream gets it."""

from applier.demo.simulator.encoder import frame
from applier.demo.simulator.producer.state import ProducerState
from applier.model.position import Ts
from applier.sources.ticdc.tso import LOGICAL_BITS

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
    for stream in [] if state.is_quiet else state.topics.streams():
        times = state.owner.next_resolved(stream, all_of_them=state.options.legacy_batches)
        if not times:
            continue
        state.writer.flush(stream)
        state.writer.write(stream, frame([state.owner.encoder.resolved(ts) for ts in times[-3:]]))
        state.promised_to[stream] = times[-1]
        state.writer.count("resolved")
        if state.options.legacy_batches and state.rng.random() < 0.2:
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
        state.writer.write(stream, frame([state.owner.encoder.resolved(ts)]))
        state.promised_to[stream] = ts
