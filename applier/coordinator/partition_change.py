"""Whether the versions of one row may lie in two streams: after a change of the partition set, until W has passed it.

A greater number of partitions sends rows to other partitions from some moment on. The old partition may still hold versions that were not
applied, so nothing may be written ahead of W. Which rows were written before the change no timestamp says, but their place does: they lie
below the ends that were listed with the new partition. When all of it is read, the greatest timestamp in it is known, and W must pass it. A
producer with several nodes takes note of new partitions within ten minutes, node by node: so much later W must be.

An admin event announces a change, also one among partitions that are there already. Until it is over, no ``applied_ts`` is stored: the next
run may not read that event again, and writes everything since the checkpoint in order of W.

A new replica sees no change, but the topic may hold one. A resolved event goes to all partitions that there are, so partitions that begin
with the same one were always there together; unless the producer was at this one before and after a change. Then each of the older
partitions has it twice, or an older one after it: such an event counts as a change. It may be read after rows were written ahead, but
before W passes any row that the older partition lacks, since the promise that lets W pass comes behind it. Of rows before the first
promise nothing says this, so W must pass them first. And until W is beyond all that the topic held when it was first read, rows are
written ahead, but the next run does not rely on it (``is_proven``).

Where partitions do not begin so, what was listed counts as written before a change: a promise that is merely late looks like a growth.
"""

from collections.abc import Iterable

from applier.coordinator.policy import RowPolicy
from applier.coordinator.stream_state import StreamState
from applier.model.position import NO_TS, Offset, Stream, Ts
from applier.model.segment import is_beyond


class PartitionChange:
    """The last change. ``members``: streams that were there before it, or that W has passed since."""

    __slots__ = (
        "_checks_beginning",
        "_ends",
        "_is_announced",
        "_is_new",
        "_is_watched",
        "_joining",
        "_members",
        "_settle_span",
        "_top",
        "_until_ts",
    )

    def __init__(self, members: Iterable[Stream], policy: RowPolicy, *, is_new: bool) -> None:
        """``is_new``: the replica has no position yet, so everything since the beginning is read."""
        self._members, self._is_new = set(members), is_new
        self._settle_span, self._checks_beginning = policy.settle_span, policy.checks_beginning
        self._joining: set[Stream] = set()
        self._is_announced = self._is_watched = False
        self._ends: dict[Stream, Offset] | None = None
        self._until_ts: Ts | None = None
        self._top = NO_TS

    @property
    def is_over(self) -> bool:
        """Whether each row has one stream."""
        return not self._joining and not self._is_announced and bool(self._members)

    @property
    def is_proven(self) -> bool:
        """Whether nothing that is still to come can show that a key had two streams."""
        return self.is_over and not self._is_watched

    def saw(self, ts: Ts) -> None:
        """Record the timestamp of a row or of a promise that was read."""
        self._top = max(self._top, ts)

    def announced(self) -> None:
        """Record an admin event: after it, keys may have other streams. Its copies in partitions that lag count as well."""
        self._is_announced, self._is_watched = True, False
        self._ends = self._until_ts = None

    def looked(self, states: Iterable[StreamState]) -> bool:
        """Record the streams that are read now. Return whether one of them is new, or shows a change."""
        states = tuple(states)
        new = {state.stream for state in states} - self._members - self._joining
        if new:
            self._joining |= new
            self._is_watched, self._ends, self._until_ts = False, None, None
        if self._is_watched and any(state.repeats_beginning for state in states):
            self.announced()
            return True
        return bool(new)

    def settle(self, states: Iterable[StreamState], checkpoint_ts: Ts) -> bool:
        """Look whether the change is over. Return True when it has just ended."""
        states = tuple(states)
        if self._is_watched:
            self._is_watched = not self._is_past(states, checkpoint_ts)
            return False
        if not (self._joining or self._is_announced) or not self._has_ended(states, checkpoint_ts):
            return False
        self._members |= self._joining
        self._joining.clear()
        self._is_announced = False
        return True

    def _has_ended(self, states: tuple[StreamState, ...], checkpoint_ts: Ts) -> bool:
        if self._members or self._is_announced or self._ends is not None:
            return self._is_past(states, checkpoint_ts)
        if self._is_new and not self._checks_beginning:
            return True
        born = _born_together(states) if self._is_new else False
        if born is None or (born and not all(_has_passed_unpromised(state, checkpoint_ts) for state in states)):
            return False
        self._is_watched = born
        # Also where the partitions begin together: from here on their ends are known.
        return self._is_past(states, checkpoint_ts) or born

    def _is_past(self, states: tuple[StreamState, ...], checkpoint_ts: Ts) -> bool:
        if self._ends is None:
            self._ends = {state.stream: state.end for state in states}
        if self._until_ts is None:
            if any(state.prefix < self._ends.get(state.stream, state.prefix) for state in states):
                return False
            # Also where no change was seen: it may have happened a minute before this run.
            self._until_ts = Ts(self._top + self._settle_span)
        # Beyond it: rows at exactly A may be applied again, also those that were sent before the change.
        return is_beyond(checkpoint_ts, self._until_ts)


def _has_passed_unpromised(state: StreamState, checkpoint_ts: Ts) -> bool:
    """Whether W has passed the rows that came before the first promise: a producer that began again at it may have sent them before."""
    return not state.unpromised_ts or is_beyond(checkpoint_ts, state.unpromised_ts)


def _born_together(states: tuple[StreamState, ...]) -> bool | None:
    """Whether the partitions of each topic begin with the same resolved event; None: not all of them were read so far."""
    if any(not state.is_from_beginning for state in states):
        return False
    if any(not state.born_ts for state in states):
        return None
    if any(state.repeats_beginning for state in states):
        return False
    topics: dict[str, Ts] = {}
    return all(topics.setdefault(state.stream.topic, state.born_ts) == state.born_ts for state in states)
