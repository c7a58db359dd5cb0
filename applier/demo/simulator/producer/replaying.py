"""Replays: what a changefeed sends twice."""

from applier.demo.simulator.encoder import frame
from applier.demo.simulator.item import DdlItem
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.producer.owner import ChangefeedOwner
from applier.demo.simulator.producer.resolving import resolve_everywhere
from applier.demo.simulator.producer.state import ProducerState
from applier.model.position import NO_TS, Ts


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
    if state.options.admin_events:
        for stream in state.topics.streams(topic):
            state.writer.flush(stream)
            state.writer.write(stream, frame([state.owner.encoder.admin(state.topics.counts[topic])]))
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
        name, since = state.rng.choice(sent).name, state.rng.choice(sent).ts
        state.moved.extend([item for item in sent if item.name == name and item.ts > since][: state.rng.choice((1, 5, 99))])
        state.writer.count("table move")
