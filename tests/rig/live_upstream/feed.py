"""The feed: executes the history in upstream's database, so many rows a second, and writes what a changefeed writes of it.

Each start begins a new history. What an earlier feed has left is dropped first, by DDLs that the replica gets too: so it makes no
difference how that feed ended, and between which of its steps.
"""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Final

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.kafka_log import LogProducer
from applier.demo.simulator.live_log import LiveLog, wall_clock_ts
from applier.demo.simulator.operation import DropSchema, UpstreamStep
from applier.demo.simulator.producer import LogRecord
from applier.model.errors import SourceError
from applier.model.position import NO_TS, Ts
from tests.rig.live_upstream.upstream_copy import FeedState, UpstreamCopy

LOG: Final = logging.getLogger(__name__)
TICK_S: Final = 0.2
ENDLESS: Final = 10**12
DDL_SHARE: Final = 0.004
"""Some DDLs a minute at the usual pace."""
NO_EXPIRY: Final = {"message.timeout.ms": 0, "log_level": 0}
"""A broker that is away is waited for: a record that is dropped would be missing in the replica for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedPace:
    """How much happens upstream, and how often the changefeed says how far it is."""

    rows_per_s: float = 50.0
    resolved_every_s: float = 1.0


def history_of(seed: int) -> History:
    """Return the history of a seed: without an end."""
    return History(seed, HistoryOptions(transactions=ENDLESS, ddl_share=DDL_SHARE))


class UpstreamFeed:
    """One feed, from its start until it is stopped."""

    def __init__(self, copy: UpstreamCopy, log: LiveLog, bootstrap_servers: str, pace: FeedPace) -> None:
        self._copy = copy
        self._log = log
        self._producer = LogProducer(bootstrap_servers, dict(NO_EXPIRY))
        self._pace = pace
        self._state = FeedState()

    def start_over(self) -> None:
        """Drop what an earlier feed has left, upstream and in the feed, and begin a new history."""
        self._copy.prepare()
        before = self._copy.state()
        self._state = FeedState(before.seed + 1, 0, before.last_ts)
        for schema in self._copy.schemas():
            self._copy.drop(schema)
            self._send(self._log.step(UpstreamStep(self._next_ts(), (), (DropSchema(schema),))))
        self._copy.save(self._state)
        self._resolve()

    def run(self, stopped: Event) -> None:
        """Feed until ``stopped``; the last thing that it writes is a resolved ts above all rows."""
        steps = iter(history_of(self._state.seed))
        owed, then, next_resolved = 0.0, time.monotonic(), 0.0
        while not stopped.wait(TICK_S):
            now = time.monotonic()
            owed, then = min(owed + (now - then) * self._pace.rows_per_s, self._pace.rows_per_s), now
            # A comparison may hold the lock: then nothing happens upstream, and its promises go on.
            if self._copy.hold(0):
                while owed > 0:
                    owed -= self._commit(next(steps))
                self._copy.save(self._state)
                self._copy.release()
            if now >= next_resolved:
                next_resolved = now + self._pace.resolved_every_s
                self._resolve()
        self._resolve()

    def _commit(self, step: UpstreamStep) -> int:
        """Execute and send one step; return its weight in rows."""
        dated = step._replace(ts=self._next_ts())
        self._copy.execute(dated)
        self._send(self._log.step(dated))
        self._state = FeedState(self._state.seed, self._state.steps + 1, dated.ts)
        return max(1, len(step.rows))

    def _resolve(self) -> None:
        self._send(self._log.resolve(self._next_ts()))

    def _next_ts(self) -> Ts:
        """Return the next TSO: the wall clock, and always above the last one."""
        last = max(self._state.last_ts, self._log.promised, NO_TS)
        now = wall_clock_ts(last)
        self._state = FeedState(self._state.seed, self._state.steps, now)
        return now

    def _send(self, records: Iterable[LogRecord]) -> None:
        """Deliver the records; while the broker is away, wait. SourceError if it refuses one."""
        deliver: Callable[[], object] = partial(self._producer.produce, records)
        while True:
            try:
                deliver()
            except SourceError as error:
                if not error.facts["waiting"]:
                    raise
                LOG.warning("the broker does not take the feed: %s", error)
                deliver = self._producer.flush
            else:
                return
