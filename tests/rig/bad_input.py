"""A replica in the middle of its history, to which something bad is about to happen: what it holds before must be there after."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.kafka_log import produce_log
from applier.demo.simulator.producer import LogRecord, ProducerOptions
from applier.demo.simulator.session_zone import SESSION_ZONE
from applier.sinks.progress import Progress
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.factory import open_source
from applier.sources.kafka.settings import KafkaSettings
from tests.rig.local_replica import Replica
from tests.rig.program import Ended, run, write_config
from tests.rig.upstream import NAME, Upstream, upstream

RESOLVED = b'"t":3}'
PARTITIONS = 4
"""Of the mock cluster's topics: where a stream never resolves, nothing is ever applied."""


@dataclass(slots=True)
class Stage:
    """A replica of one topic. ``late`` are the records that it has not seen yet."""

    directory: Path
    servers: str
    url: str
    world: Upstream
    topic: str
    late: tuple[LogRecord, ...]

    def catch_up_in_process(self) -> None:
        """Bring the replica to the end of what was played."""
        settings = KafkaSettings(bootstrap_servers=self.servers, topics=(self.topic,), group_id=NAME)
        with open_source(settings, zone_of_sessions=lambda: SESSION_ZONE) as source:
            Replica(self.url, source, name=NAME).catch_up()

    def produce(self, records: Sequence[LogRecord]) -> None:
        """Produce records."""
        produce_log(records, self.servers)

    def run(self, **changes: Any) -> Ended:
        """Run the program."""
        arguments = {"servers": self.servers, "url": self.url, "topics": [self.topic]} | changes
        return run(write_config(self.directory, **arguments))

    def progress(self) -> Progress | None:
        """Read how far the replica is; None if it has not begun."""
        if self.url.startswith("sqlite") and not (self.directory / "replica.db").exists():
            return None
        with open_sink(SinkSettings(url=self.url, name=NAME)) as sink:
            return sink.load()

    def refusal(self, **changes: Any) -> Ended:
        """Run the program, which must fail and leave the progress as it was."""
        before = self.progress()
        ended = self.run(**changes)
        after = self.progress()
        assert ended.code != 0, ended.stdout
        if before is None:
            assert after is None or (after.checkpoint_ts, after.fence.window_id) == (0, 0)
            return ended
        assert after is not None
        for name in ("checkpoint_ts", "start_ts", "positions", "known_tables"):
            assert getattr(after, name) == getattr(before, name), name
        return ended


def half_way(directory: Path, servers: str, url: str, *, create: Callable[[Upstream], None] | None = None, seed: int = 81) -> Stage:
    """Make a topic, play the first part of a history into it, and bring a replica there."""
    topic = f"bad-{uuid4().hex[:8]}"
    # Without DDLs on the way: each table is there by the middle, and stays.
    history = History(seed, HistoryOptions(transactions=60, ddl_share=0.0))
    world = upstream(history, ProducerOptions(seed=seed, topic=topic, partitions=PARTITIONS, replays=0))
    if create is not None:
        create(world)
    middle = _middle(world.log)
    stage = Stage(directory, servers, url, world, topic, world.log[middle:])
    stage.produce(world.log[:middle])
    stage.catch_up_in_process()
    return stage


def _middle(log: Sequence[LogRecord]) -> int:
    """Return how many records to show so that every stream has promised something, and something is left."""
    waiting = {record.stream for record in log}
    for shown, record in enumerate(log, 1):
        if record.key.endswith(RESOLVED):
            waiting.discard(record.stream)
        if not waiting:
            return (shown + len(log)) // 2
    message = "a stream of this log never resolves"
    raise AssertionError(message)


def first_row(records: Sequence[LogRecord]) -> int:
    """Return the place of the first record that holds a row."""
    return next(place for place, record in enumerate(records) if b'"t":1}' in record.key)


def assert_reports(ended: Ended, code: int, *words: str) -> None:
    """Assert the exit code, that each of ``words`` is in the message, with a remedy, and that there is neither result nor traceback."""
    assert ended.code == code, ended.stderr
    for word in ("error: ", "  remedy: ", *words):
        assert word in ended.stderr, (word, ended.stderr)
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
