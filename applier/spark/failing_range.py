"""Finds the range that crashes its listener, so that the others are read: a job fails whole, with all ranges that it reads.

A range may kill its Python worker or its executor each time (a record that needs more memory than there is, a crash in a library). The
ranges of a failed job are listened to again, in smaller jobs, until the range that fails alone is known. It is remembered: as long as it
is planned again, the others do not share a job with it.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from applier.model.errors import ApplierError, Remedy, SourceError, SparkSessionLost
from applier.model.failure import FailureKind
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.tasks.listen import ListenOutcome, ListenTask, RangeFailure

# --- task packing ----------------------------------------------------------------------------------------------------


TASK_BYTES: Final = 4 << 20
"""Below it one task more costs more than it saves: a few megabytes are read in less than a tenth of a second."""


def pack(tasks: Sequence[ListenTask], most: int) -> list[list[ListenTask]]:
    """Divide ranges into at most ``most`` groups; each keeps the order in which they came."""
    expected = sum(task.expected_bytes for task in tasks)
    number = max(1, min(most, len(tasks), -(-expected // TASK_BYTES)))
    loads = [0] * number
    groups: list[list[int]] = [[] for _ in range(number)]
    # The largest first, each to the group that has least: within a third of the best division, whatever the sizes.
    for index in sorted(range(len(tasks)), key=lambda index: -tasks[index].expected_bytes):
        least = loads.index(min(loads))
        groups[least].append(index)
        loads[least] += max(1, tasks[index].expected_bytes)
    return [[tasks[index] for index in sorted(group)] for group in groups if group]


# --- failing range ---------------------------------------------------------------------------------------------------


MAX_FAILED_JOBS: Final = 16
"""In one search. If more jobs fail, the cause is not one range: the ranges that are left fail with the job's own error."""
MAX_SINGLE_FAILURES: Final = 3
"""An accident kills a listener once (the kernel, an operator). A range that fails so often in a row, alone in its job, is the cause."""

REMEDY: Final = Remedy(
    "spark.look-for-killed-worker",
    "See the logs of the executors and of the system. If the kernel killed that process for lack of memory, give Spark more under "
    "[spark.conf], or fewer cores. `applier inspect --topic … --partition … --from …` shows the records",
)


class FailedJob(NamedTuple):
    """A job that ended without outcomes. ``task``: the number of the task that Spark names, which is that of its group of ranges."""

    error: ApplierError
    task: int | None = None


Job: TypeAlias = Callable[[Sequence[Sequence[ListenTask]]], Sequence[ListenOutcome] | FailedJob]
"""Listens to groups of ranges in one Spark job, one task per group."""


class FailingRanges:
    """Listens through ``job``, with at most ``most_tasks`` tasks at once; remembers the ranges that have crashed their listener."""

    def __init__(self, job: Job, most_tasks: int) -> None:
        self._job, self._most_tasks = job, most_tasks
        self._suspects: set[tuple[Stream, Offset]] = set()

    def listen(self, tasks: Sequence[ListenTask]) -> list[ListenOutcome]:
        """Return one outcome per task, in order."""
        known = [task.range for task in tasks if _start(task.range) in self._suspects]
        search = _RangeSearch(self._job, self._most_tasks, self._divided(tasks), known)
        search.run()
        for outcome in search.found.values():
            (self._suspects.add if outcome.range in search.failing else self._suspects.discard)(_start(outcome.range))
        return [search.found[task.range] for task in tasks]

    def forget(self) -> None:
        """Suspect no range: everything is planned again."""
        self._suspects.clear()

    def _divided(self, tasks: Sequence[ListenTask]) -> list[list[ListenTask]]:
        """Put each suspect after the others, in a job alone."""
        suspects = [task for task in tasks if _start(task.range) in self._suspects]
        others = [task for task in tasks if _start(task.range) not in self._suspects]
        return [ranges for ranges in (others, *([task] for task in suspects)) if ranges]


class _RangeSearch:
    """One search through the ranges of one call."""

    def __init__(self, job: Job, most_tasks: int, queue: Iterable[list[ListenTask]], known: Iterable[RangeId]) -> None:
        """Read the entries of the queue, one job each; of a ``known`` suspect one more failure is enough."""
        self._job, self._most_tasks = job, most_tasks
        self._queue = deque(queue)
        self._failed_jobs = 0
        self._single_failures: Counter[RangeId] = Counter(dict.fromkeys(known, MAX_SINGLE_FAILURES - 1))
        self.found: dict[RangeId, ListenOutcome] = {}
        self.failing: set[RangeId] = set()

    def run(self) -> None:
        while self._queue:
            groups = pack(self._queue.popleft(), self._most_tasks)
            result = self._job(groups)
            if isinstance(result, FailedJob):
                self._take_failure(groups, result)
            else:
                self.found |= {outcome.range: outcome for outcome in result}

    def _take_failure(self, groups: list[list[ListenTask]], failed: FailedJob) -> None:
        tasks = [task for group in groups for task in group]
        self._failed_jobs += 1
        if isinstance(failed.error, SparkSessionLost) or self._failed_jobs > MAX_FAILED_JOBS:
            self._stop(tasks, failed.error)
        elif len(tasks) > 1:
            self._queue.extendleft(reversed(_split(groups, failed.task)))
        else:
            self._take_single_failure(tasks[0], failed.error)

    def _stop(self, tasks: list[ListenTask], error: ApplierError) -> None:
        """Fail the remaining ranges: no job can succeed, or the cause is not one range."""
        for task in (*tasks, *(task for rest in self._queue for task in rest)):
            self.found[task.range] = RangeFailure(task.range, error)
        self._queue.clear()

    def _take_single_failure(self, task: ListenTask, error: ApplierError) -> None:
        self._single_failures[task.range] += 1
        if self._single_failures[task.range] < MAX_SINGLE_FAILURES:
            self._queue.append([task])
        else:
            self.failing.add(task.range)
            self.found[task.range] = RangeFailure(task.range, _listener_died(task.range, error))


def _split(groups: list[list[ListenTask]], suspect: int | None) -> tuple[list[ListenTask], list[ListenTask]]:
    """Separate the group that Spark names from the others; without a name, or if there is one group only, cut in the middle."""
    if suspect is not None and suspect < len(groups) > 1:
        return [task for group in (*groups[:suspect], *groups[suspect + 1 :]) for task in group], groups[suspect]
    tasks = [task for group in groups for task in group]
    middle = len(tasks) // 2
    return tasks[:middle], tasks[middle:]


def _listener_died(range_id: RangeId, error: ApplierError) -> SourceError:
    return SourceError(
        "the process that reads Kafka crashes each time it reads this range",
        remedy=REMEDY,
        kind=FailureKind.LISTENER_DIED,
        topic=range_id.stream.topic,
        partition=range_id.stream.partition,
        offset=range_id.start,
        end=range_id.end,
        cause=error.facts.get("cause", error.message),
    )


def _start(range_id: RangeId) -> tuple[Stream, Offset]:
    """Return what identifies a range when it is planned again: its end may differ then."""
    return range_id.stream, range_id.start
