"""The in-process runner: the same functions over iterators as on executors, without Spark, so that hundreds of histories take seconds.

Everything that would cross to an executor is pickled here too, so that what does not survive the crossing fails in the fast tier.
"""

import pickle
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from applier.model.errors import ApplierError, JobAborted
from applier.model.position import Ts
from applier.model.range_report import RangeId
from applier.model.segment import slice_holding
from applier.sinks.progress import WriteOutcome
from applier.sources.port import Decoder, RangeReader
from applier.spark.job import by_part
from applier.tasks.handover import routed_chunks
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure
from applier.tasks.plan import REPORTS, PreparePlan, WritePlan, deal, divide, partition_of
from applier.tasks.port import Prepared
from applier.tasks.prepare import ANNOUNCED, render, reroute, selected_chunks
from applier.tasks.write import apply_small, joined, not_written, write, write_part

Partitions = Mapping[int, Sequence[bytes]]


class LocalRunner:
    """Implements ``Runner`` in this process. One task listens to all ranges of a call; one batch per call, as on Spark."""

    def __init__(self, reader_of: Callable[[], RangeReader], decoder: Decoder) -> None:
        self._reader_of, self._decoder = reader_of, pickle.dumps(decoder)
        self._cached: dict[RangeId, Partitions] = {}
        self._prepared: list[Partitions] = []
        self._bounds: tuple[Ts, ...] = ()
        self._divided: dict[int, tuple[Partitions, Partitions]] = {}
        """Each batch with its slices."""
        self.sliced = 0
        """How many segments were applied from slices."""

    @property
    def _reader(self) -> bytes:
        return pickle.dumps(self._reader_of())

    def listen(self, tasks: Sequence[ListenTask]) -> Sequence[ListenOutcome]:
        if not tasks:
            return []
        there, reader, decoder = map(pickle.loads, (pickle.dumps(tasks), self._reader, self._decoder))
        batch = _shuffled(deal(there, reader, decoder))
        outcomes = [outcome for reported in _read(batch, REPORTS) for outcome in reported]
        self._cached |= {outcome.range: batch for outcome in outcomes if not isinstance(outcome, RangeFailure)}
        return outcomes

    def prepare(self, plan: PreparePlan) -> Prepared | ApplierError:
        if not self._cached.keys() >= plan.ranges.keys():
            return JobAborted("a range of the plan is not cached")
        plan = pickle.loads(pickle.dumps(plan))  # noqa: S301 - our own bytes
        decoder = pickle.loads(self._decoder)  # noqa: S301
        batches = self._batches(plan)
        buckets = [
            (bucket, [element for batch in batches for element in _read(batch, partition_of(bucket))]) for bucket in range(plan.buckets)
        ]
        if plan.is_rerouted:
            routed = _shuffled(routed for bucket, elements in buckets for routed in reroute(plan, bucket, elements))
            chunks = [(reducer, routed_chunks(_read(routed, reducer), plan.buckets)) for reducer in range(plan.reducers)]
        else:
            chunks = [(bucket, selected_chunks(plan, elements, 1)) for bucket, elements in buckets]
        prepared = _shuffled(item for reducer, mine in chunks for item in render(plan, reducer, mine, decoder))
        parts = by_part(_read(prepared, ANNOUNCED), plan)
        assert parts is not None
        self._prepared.append(prepared)
        return Prepared(parts, prepared)

    def write(self, prepared: Prepared, segment: int, plan: WritePlan) -> WriteOutcome:
        if all(prepared.handle is not kept for kept in self._prepared):
            return not_written(JobAborted("the prepared segments are gone"))
        there = pickle.loads(pickle.dumps((plan, prepared.parts[segment])))  # noqa: S301
        return write(*there, _read(prepared.handle, segment + 1), pickle.loads(self._reader))  # noqa: S301

    def apply(self, plan: PreparePlan, write_plan: WritePlan) -> WriteOutcome:
        if not plan.is_small and not (plan.is_small_slice and self._slice_of(plan) is not None):
            prepared = self.prepare(plan)
            if isinstance(prepared, ApplierError):
                return not_written(prepared)
            try:
                return self.write(prepared, 0, write_plan)
            finally:
                self.drop(prepared)
        if not self._cached.keys() >= plan.ranges.keys():
            return not_written(JobAborted("a range of the plan is not cached"))
        there, writing, reader, decoder = map(pickle.loads, (*map(pickle.dumps, (plan, write_plan)), self._reader, self._decoder))
        elements = (element for partitions, number in self._small_input(plan) for element in _read(partitions, number))
        return apply_small(there, writing, elements, reader, decoder)

    def _small_input(self, plan: PreparePlan) -> list[tuple[Partitions, int]]:
        """The partitions that a small segment reads."""
        batches, number = self._batches(plan), self._slice_of(plan)
        if number is None:
            return [(batch, partition_of(bucket)) for batch in batches for bucket in range(plan.buckets)]
        self.sliced += 1
        return [(self._slices_of(batch, plan.buckets), number) for batch in batches]

    def _slice_of(self, plan: PreparePlan) -> int | None:
        """Divide at the next DDLs whenever there is one, however little that saves, and return the number of the segment's slice."""
        window = plan.windows[0]
        if plan.writers:
            return None
        if slice_holding(self._bounds, window) is None:
            self._bounds, self._divided = (window.after_ts, window.upto_ts, *plan.later) if plan.later else (), {}
        return slice_holding(self._bounds, window)

    def _slices_of(self, batch: Partitions, buckets: int) -> Partitions:
        if id(batch) not in self._divided:
            bounds = pickle.loads(pickle.dumps(self._bounds))  # noqa: S301
            elements = (element for bucket in range(buckets) for element in _read(batch, partition_of(bucket)))
            self._divided[id(batch)] = batch, _shuffled(divide(bounds, elements))
        return self._divided[id(batch)][1]

    def write_rows(self, prepared: Prepared, parts: Sequence[int], plan: WritePlan) -> WriteOutcome:
        """Write the parts one after the other, in any order."""
        if all(prepared.handle is not kept for kept in self._prepared):
            return not_written(JobAborted("the prepared rows are gone"))
        there, announced = pickle.loads(pickle.dumps((plan, prepared.parts)))  # noqa: S301
        return joined([write_part(there, announced[number], _read(prepared.handle, number + 1)) for number in reversed(parts)])

    def drop(self, prepared: Prepared) -> None:
        self._prepared = [kept for kept in self._prepared if kept is not prepared.handle]

    def release(self, ranges: Collection[RangeId]) -> None:
        for range_id in ranges:
            self._cached.pop(range_id, None)

    def release_all(self) -> None:
        self._cached.clear()
        self._prepared.clear()
        self._divided.clear()

    def close(self) -> None:
        self.release_all()

    @property
    def kept_jobs(self) -> int:
        """How many preparing jobs there were whose segments are kept."""
        return len(self._prepared)

    @property
    def cached_ranges(self) -> frozenset[RangeId]:
        return frozenset(self._cached)

    def _batches(self, plan: PreparePlan) -> list[Partitions]:
        return list({id(batch): batch for batch in (self._cached[range_id] for range_id in plan.ranges)}.values())


def _shuffled(addressed: Iterable[tuple[int, Any]]) -> Partitions:
    partitions: dict[int, list[bytes]] = defaultdict(list)
    for partition, element in addressed:
        partitions[partition].append(pickle.dumps(element))
    return partitions


def _read(partitions: Partitions, number: int) -> Iterator[Any]:
    for element in partitions.get(number, ()):
        yield pickle.loads(element)  # noqa: S301
