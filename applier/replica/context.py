"""The ports and settings that every part of the engine uses, fixed when the run is assembled; and its lanes.

A lane is a thread that does one piece of work at a time, while the engine's thread decides what comes next.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Final, Generic, TypeVar

from applier.coordinator import Policy
from applier.model.errors import InvariantViolation
from applier.model.position import Ts
from applier.planner import STOP, QuarantinePolicy
from applier.planner.keyless import EqualRowsRule
from applier.planner.table_check import Acceptance, TableLister
from applier.replica.shutdown import Shutdown
from applier.sinks.port import Sink
from applier.sources.port import Source
from applier.tasks.plan import SLICED_SEGMENT_ROWS, SMALL_SEGMENT_ROWS
from applier.tasks.port import Runner
from applier.telemetry.observer import Watcher


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """How the engine runs. ``ddl_policy``: DDL type name -> apply, skip or stop; types not named are applied."""

    policy: Policy
    buckets: int
    ddl_policy: Mapping[str, str] = field(default_factory=dict)
    quarantined: QuarantinePolicy = STOP
    """What is quarantined instead of stopping the run."""
    writes_keyless: bool = False
    """Whether tables without a key are written (``sink.keyless``), if their rows can be told apart."""
    settle_ms: int = 0
    """How long after a change of the number of partitions a node of the producer may still send such rows as before it."""
    equal_rows: EqualRowsRule = field(default_factory=EqualRowsRule)
    """What happens to equal rows of such tables that may be one row, which was sent again (``sink.equal_rows``)."""
    accept: Acceptance = field(default_factory=Acceptance)
    """Differences between the sink's tables and upstream's that the operator accepts."""
    apply_attempts: int = 8
    idle_s: float = 0.2
    """Between two listings of the topics, while there is nothing to read and another lane works."""
    pace_s: float = 0.0
    """Between the starts of two listening jobs, unless there is a backlog: a job with three records costs as much as one with a hundred."""
    ahead_rows: int = SMALL_SEGMENT_ROWS + 1
    """From so many closed rows on, they are prepared ahead; fewer could still grow until then, and one task does everything."""
    sliced_rows: int = SLICED_SEGMENT_ROWS + 1
    """The same before a DDL that another one follows: one task reads the slice of fewer rows."""
    until_ts: Ts | None = None
    until_time_ms: int | None = None
    """When the last applied transaction was written; the source says which one that is."""
    selects: bool = False
    """Whether a filter or routes are configured: then the sink stores where each table of upstream is."""
    writers: int = 1
    """How many tasks write rows ahead of W at once (``consistency = "row"``)."""


@dataclass(frozen=True, slots=True)
class Components:
    """The ports of one run, opened by ``run.assembly``."""

    source: Source
    sink: Sink
    runner: Runner
    lister: TableLister | None = None
    """What lists upstream's tables, where the source itself does not."""

    @property
    def upstream_lister(self) -> TableLister | None:
        """What lists upstream's tables; None: nothing can."""
        return self.lister or self.source.upstream_tables

    def state_at(self, ts: Ts) -> str | None:
        """Return what the source must be told to resume at this checkpoint; None: only the stored offsets."""
        return None if self.source.position is None else self.source.position.state_at(ts)

    def check_topics(self) -> None:
        """Raise NeedsOperator if a topic of the source can lose rows unnoticed."""
        if self.source.topics is not None:
            self.source.topics.check()


@dataclass(frozen=True, slots=True)
class RunContext:
    """One run: its ports, its settings, its monitor, and its shutdown request."""

    components: Components
    settings: EngineSettings
    watcher: Watcher
    shutdown: Shutdown


T = TypeVar("T")

LOOK_S: Final = 0.2
"""How often a wait checks whether it must end early."""


class Lane(Generic[T]):
    """Everything but the work itself happens in the caller's thread."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, name)
        self._work: Future[T] | None = None
        self._began_s = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether work was started whose result was not taken."""
        return self._work is not None

    @property
    def busy_since_s(self) -> float:
        """When its work began, by the monotonic clock; infinite without work."""
        return self._began_s if self.is_busy else math.inf

    @property
    def is_done(self) -> bool:
        """Whether there is a result to take."""
        return self._work is not None and self._work.done()

    def start(self, work: Callable[[], T]) -> None:
        """Begin work. The result of the work before must have been taken."""
        self._began_s = time.monotonic()
        self._work = self._pool.submit(work)

    def result(self) -> T:
        """Wait for the work, and return or raise what it has given."""
        work, self._work = self._work, None
        if work is None:
            raise InvariantViolation("a lane without work was asked for its result")
        return work.result()

    def discard(self, end: Event) -> None:
        """Wait for the work, if there is any, and ignore its result: the sink says what it has done.

        Once ``end`` is set it is not waited for: a job without executors never ends.
        """
        work, self._work = self._work, None
        while work is not None and not end.is_set() and not wait([work], LOOK_S).done:
            pass

    def close(self) -> None:
        """Begin no more work; what runs is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    @property
    def pending(self) -> tuple[Future[T], ...]:
        """The work whose result was not taken, for ``wait_for_any``."""
        return () if self._work is None else (self._work,)


def wait_for_any(lanes: Iterable[Lane[Any]], timeout_s: float) -> None:
    """Wait until one of the lanes has a result, or the time is over."""
    wait([work for lane in lanes for work in lane.pending], timeout_s, FIRST_COMPLETED)
