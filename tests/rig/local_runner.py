"""The in-process runner: the same functions over iterators as on executors, without Spark, so that hundreds of histories take seconds.

Everything that would cross to an executor is pickled here too, so that what does not survive the crossing fails in the fast tier.
"""

import pickle
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from applier.model.chunk import PackedChunk
from applier.model.errors import JobAborted
from applier.model.range_report import RangeId
from applier.sinks.write_outcome import WriteOutcome, WriteState
from applier.sources.port import Decoder, RangeReader
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure, listen
from applier.tasks.plan import ApplyPlan
from applier.tasks.prepare import Planned, render, select
from applier.tasks.write import write


class LocalRunner:
    """Implements ``Runner`` in this process."""

    def __init__(self, reader: RangeReader, decoder: Decoder) -> None:
        self._reader, self._decoder = pickle.dumps(reader), pickle.dumps(decoder)
        self._cached: dict[RangeId, list[bytes]] = {}

    def listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome]:
        outcomes = []
        for task in tasks:
            task_there, reader, decoder = map(pickle.loads, (pickle.dumps(task), self._reader, self._decoder))
            elements = list(listen([task_there], reader, decoder))
            outcome = elements[-1]
            assert not isinstance(outcome, PackedChunk)
            assert all(isinstance(element, PackedChunk) for element in elements[:-1])
            if not isinstance(outcome, RangeFailure):
                self._cached[task.range] = [pickle.dumps(element) for element in elements]
            outcomes.append(pickle.loads(pickle.dumps(outcome)))  # noqa: S301
        return outcomes

    def apply(self, plan: ApplyPlan) -> WriteOutcome:
        if not self._cached.keys() >= plan.ranges.keys():
            return WriteOutcome(state=WriteState.RELOAD, error=JobAborted("a range of the plan is not cached"))
        plan = pickle.loads(pickle.dumps(plan))  # noqa: S301 - our own bytes
        reducers: dict[int, list] = defaultdict(list)
        for range_id in plan.ranges:
            for bucketed in select(plan, self._read(range_id)):
                reducers[bucketed[0]].append(bucketed)
        decoder = pickle.loads(self._decoder)  # noqa: S301
        planned: list[Planned] = [item for reducer in range(plan.reducers) for item in render(plan, reducer, reducers[reducer], decoder)]
        planned = pickle.loads(pickle.dumps(planned))  # noqa: S301
        return write(plan, iter(sorted(planned, key=lambda item: item[0])), pickle.loads(self._reader))  # noqa: S301

    def release(self, ranges: Collection[RangeId]) -> None:
        for range_id in ranges:
            self._cached.pop(range_id, None)

    def release_all(self) -> None:
        self._cached.clear()

    def close(self) -> None:
        self.release_all()

    @property
    def cached_ranges(self) -> frozenset[RangeId]:
        return frozenset(self._cached)

    def _read(self, range_id: RangeId) -> Iterator[PackedChunk]:
        for element in self._cached[range_id]:
            yield pickle.loads(element)  # noqa: S301
