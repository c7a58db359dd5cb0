"""Upstream while it lives: commits so many rows a second in the oracle, and writes what a changefeed would write.

The embedded broker forgets, so upstream waits for the replica when too much of what it has written is not applied yet.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from applier.demo.directory import TOPIC
from applier.demo.simulator.broker import MOCK_PARTITIONS
from applier.demo.simulator.kafka_log import LogProducer
from applier.demo.simulator.live_log import LiveLog, wall_clock_ts
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.producer import LogRecord
from applier.demo.simulator.sqlite_oracle import SqliteOracle
from applier.demo.simulator.wire_format import WireFormat
from applier.model.position import Ts
from applier.model.segment import is_beyond, is_past

ROWS_LIMIT: Final = 2_000_000
"""Bytes. The broker keeps about 5 MB of each partition; the sum of all partitions must fit into one."""
LIMIT: Final = 2 * ROWS_LIMIT


@dataclass(slots=True)
class Backlog:
    """Counts bytes up to each resolved ts. ``rows_limit`` and ``limit``: bytes that upstream may be ahead with rows, with anything."""

    rows_limit: int = ROWS_LIMIT
    limit: int = LIMIT
    _written: int = 0
    _applied: int = 0
    _promises: deque[tuple[Ts, int]] = field(default_factory=deque)

    def wrote(self, size: int) -> None:
        """Add bytes of records."""
        self._written += size

    def promised(self, ts: Ts) -> None:
        """Remember that everything so far is at or before the resolved ``ts``."""
        self._promises.append((ts, self._written))

    def applied(self, checkpoint_ts: Ts) -> None:
        """Forget what the replica has durably."""
        while self._promises and not is_beyond(self._promises[0][0], checkpoint_ts):
            _, self._applied = self._promises.popleft()

    @property
    def takes_rows(self) -> bool:
        """Whether upstream may commit."""
        return self._written - self._applied < self.rows_limit

    @property
    def takes_promises(self) -> bool:
        """Whether upstream may write a resolved ts: while the replica is paused these add up too."""
        # Rows without a promise above them could never be applied, and upstream would never stop waiting.
        promised = self._promises[-1][1] if self._promises else self._applied
        return self._written - self._applied < self.limit or self._written > promised


RESOLVED_EVERY_S: Final = 1.0
LOG_STEPS: Final = 5000
"""Steps after which the log forgets the definitions of tables that it has written."""
DELIVERY: Final = {"message.timeout.ms": 10_000, "log_level": 0}
"""A broker on this machine that does not answer for so long has ended."""


@dataclass(slots=True)
class Written:
    """What upstream has written since the demo lives."""

    rows: int = 0
    ddls: int = 0


class LiveTopic(NamedTuple):
    """Where upstream writes, and in which format."""

    servers: str
    form: WireFormat = WireFormat.OPEN_PROTOCOL


class LiveFeed:
    """Writes ``steps`` with the time of the wall clock, above ``after_ts``. ``tick`` is called several times a second."""

    def __init__(
        self,
        steps: Iterator[UpstreamStep],
        oracle: SqliteOracle,
        topic: LiveTopic,
        *,
        after_ts: Ts,
        rows_per_s: float,
    ) -> None:
        self._steps = steps
        self._oracle = oracle
        self._producer = LogProducer(topic.servers, dict(DELIVERY))
        self._rows_per_s = rows_per_s
        self._log, self._log_steps = LiveLog(TOPIC, MOCK_PARTITIONS, form=topic.form), 0
        self._owed, self._next_resolved_s = 0.0, 0.0
        self._last_tick_s: float | None = None
        self._ts, self._committed_ts = after_ts, after_ts
        self.backlog = Backlog()
        self.written = Written()

    def tick(self, now_s: float) -> None:
        """Commit what is due since the last tick, at most what is due in a second; promise once a second. SourceError without a broker."""
        passed_s = 0.0 if self._last_tick_s is None else now_s - self._last_tick_s
        self._last_tick_s = now_s
        self._owed = min(self._owed + passed_s * self._rows_per_s, max(self._rows_per_s, 1.0))
        records: list[LogRecord] = []
        while self._owed > 0 and self.backlog.takes_rows:
            records += self._commit(next(self._steps))
        self._send(records)
        if now_s >= self._next_resolved_s and self.backlog.takes_promises:
            self._next_resolved_s = now_s + RESOLVED_EVERY_S
            self.promise()

    def promise(self) -> None:
        """Write a resolved ts above everything so far."""
        self._ts = wall_clock_ts(self._ts)
        self._send([*self._log.resolve(self._ts)])
        self.backlog.promised(self._ts)
        # Here, where no rows wait in a batch.
        if self._log_steps >= LOG_STEPS:
            self._log.forget_definitions()
            self._log_steps = 0

    def is_in(self, checkpoint_ts: Ts) -> bool:
        """Return whether a replica at this checkpoint has everything that was committed."""
        # Above the last commit: a DDL at the checkpoint may be unfinished.
        return is_past(self._committed_ts, checkpoint_ts)

    def _commit(self, step: UpstreamStep) -> list[LogRecord]:
        self._ts = self._committed_ts = wall_clock_ts(self._ts)
        dated = step._replace(ts=self._ts)
        self._oracle.execute(dated)
        self._owed -= max(1, len(step.rows))
        self._log_steps += 1
        self.written.rows += len(step.rows)
        self.written.ddls += len(step.ddls)
        return [*self._log.step(dated)]

    def _send(self, records: list[LogRecord]) -> None:
        if records:
            self._producer.produce(records)
            self.backlog.wrote(sum(len(record.key or b"") + len(record.value) for record in records))
