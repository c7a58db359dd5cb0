"""A live upstream: plays a history onto Kafka as it happens, so many rows a second, and keeps what happened for the oracle.

Commits bear the time of the wall clock. The thread outlives a broker that is killed: what it could not deliver it sends again.
"""

import random
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Thread
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from applier.demo.simulator.live_log import LiveLog
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.wire_format import WireFormat
from applier.model.position import NO_TS, Ts
from applier.sources.ticdc.tso import LOGICAL_BITS

TICK_S = 0.01
DELIVERY_S = 120
WATERMARK = re.compile(rb'"ts":(\d+),"t":3}|"watermarkTs":(\d+)|"type":"WATERMARK","commitTs":(\d+)')
"""A promise in each format, but for Avro's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedOptions:
    """``replay_share``: how often a resolved ts is followed by a replay of what came before it."""

    rows_per_s: float = 200
    resolved_every_s: float = 0.5
    partitions: int = 4
    replay_share: float = 0.0
    seed: int = 0
    form: WireFormat = WireFormat.OPEN_PROTOCOL


class LiveFeed:
    """``steps`` are what happened so far; ``appended`` maps each resolved ts to the time (ms) of its last copy's record.

    That is when the broker appended it if the topic's ``message.timestamp.type`` is ``LogAppendTime``. ``rows_per_s`` may be changed.
    """

    def __init__(self, servers: str, topic: str, history: Iterable[UpstreamStep], options: FeedOptions) -> None:
        self._options, self._history = options, iter(history)
        self._log = LiveLog(topic, options.partitions, seed=options.seed, form=options.form)
        self._rng = random.Random(options.seed)
        # One request in flight keeps the order of a partition through retries, as TiCDC's producer does.
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "acks": "all",
                "max.in.flight.requests.per.connection": 1,
                "linger.ms": 2,
                "retry.backoff.max.ms": 200,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="feed", daemon=True)
        self._errors: list[str] = []
        self._last_ts = NO_TS
        self.rows_per_s = options.rows_per_s
        self.steps: list[UpstreamStep] = []
        self.rows = 0
        self.appended: dict[Ts, int] = {}

    @property
    def promised(self) -> Ts:
        """The last resolved ts that was sent."""
        return self._log.promised

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> Ts:
        """Commit no more; promise everything on all partitions, wait for the delivery, and return that last resolved ts."""
        self._stopped.set()
        self._thread.join()
        # Above the last commit: a DDL at it runs only when W has passed it.
        self._resolve(self._now())
        assert self._producer.flush(DELIVERY_S) == 0, "the feed's last records were not delivered"
        assert self._errors == []
        return self._log.promised

    def _run(self) -> None:
        options, then = self._options, time.monotonic()
        next_resolved, owed = then, 0.0
        self._commit()
        while not self._stopped.wait(TICK_S):
            now = time.monotonic()
            owed, then = owed + (now - then) * self.rows_per_s, now
            while owed > 0:
                owed -= self._commit()
            if now >= next_resolved:
                next_resolved = max(next_resolved + options.resolved_every_s, now)
                self._resolve(self._now())
                if self._rng.random() < options.replay_share:
                    self._send(self._log.replay(self._rng))
            self._producer.poll(0)

    def _now(self) -> Ts:
        self._last_ts = max(Ts(time.time_ns() // 1_000_000 << LOGICAL_BITS), Ts(self._last_ts + 1))
        return self._last_ts

    def _commit(self) -> int:
        """Commit one step; return its weight in rows."""
        step = next(self._history)._replace(ts=self._now())
        self.steps.append(step)
        self.rows += len(step.rows)
        self._send(self._log.step(step))
        return max(1, len(step.rows))

    def _resolve(self, ts: Ts | None = None) -> None:
        self._send(self._log.resolve(ts), self._appended)

    def _send(self, records: Iterable[Any], on_delivery: Any = None) -> None:
        for record in records:
            topic, partition = record.stream
            self._producer.produce(
                topic, record.value, record.key, partition=partition, timestamp=record.time_ms, on_delivery=on_delivery or self._delivered
            )

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._errors.append(f"{message.topic()}/{message.partition()}: {error}")

    def _appended(self, error: KafkaError | None, message: Message) -> None:
        self._delivered(error, message)
        found = WATERMARK.search(message.key() or message.value() or b"") if error is None else None
        if found is not None:
            ts = Ts(int(found[1] or found[2] or found[3]))
            self.appended[ts] = max(self.appended.get(ts, 0), int(message.timestamp()[1]))


@contextmanager
def feeding(feed: LiveFeed) -> Iterator[LiveFeed]:
    """Let the feed live for the block; it ends with it in any case."""
    feed.start()
    try:
        yield feed
    finally:
        feed._stopped.set()
        feed._thread.join()
