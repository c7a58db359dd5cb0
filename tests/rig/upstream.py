"""An upstream for a test: a history, the log that a changefeed makes of it, and what a sink must look like after it."""

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from applier.demo.comparison import durable_state, steps_until
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.kafka_log import create_topic, produce_log
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.producer import LogRecord, Producer, ProducerOptions
from applier.demo.simulator.wire_format import WireFormat
from applier.model.errors import FatalSinkError
from applier.model.events import TableName
from applier.model.position import Ts
from applier.sinks.ledger_entry import DdlState
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from tests.rig.catalogue_oracle import CatalogueOracle
from tests.rig.clean_server import drop, forget_replicas
from tests.rig.mysql_oracle import DEFAULT_PREFIX, MysqlOracle, connect, read_schemas
from tests.rig.oracle import Oracle, compare, open_oracle, read_facts
from tests.rig.protocol import chosen_form
from tests.rig.verifying import ComparedTables, verify, wrong

NAME = "e2e"


@dataclass(frozen=True, slots=True)
class Upstream:
    """``final_ts``: the last common watermark of the log; ``history``: what a sink must show; ``protocol``: what the log is written in."""

    history: Iterable[UpstreamStep]
    log: tuple[LogRecord, ...]
    final_ts: Ts
    protocol: str = WireFormat.OPEN_PROTOCOL.protocol

    @property
    def topics(self) -> dict[str, int]:
        """The topics with the number of partitions that they have in the end."""
        found: dict[str, int] = {}
        for topic, partition in sorted({record.stream for record in self.log}):
            found[topic] = max(found.get(topic, 0), partition + 1)
        return found

    def create_topics(self, servers: str) -> None:
        """Create the topics on a real broker (a mock cluster makes them itself, with four partitions)."""
        for topic, partitions in self.topics.items():
            create_topic(servers, topic, partitions)

    def produce(self, servers: str) -> None:
        """Produce the whole log."""
        produce_log(self.log, servers)

    def wrong_in(self, url: str) -> list[str]:
        """List what is wrong in a sink that has caught up: what differs from upstream, and DDLs that did not run once."""
        wrong = differences(self.history, url, upto_ts=self.final_ts)
        if settled_ddls(url) != self.ddl_times():
            wrong.append("the ledger does not hold every DDL once, as done")
        return wrong

    def ddl_times(self) -> list[Ts]:
        """Return the ts of every DDL up to the end, as often as there are DDLs."""
        return sorted(step.ts for step in self.history if step.ts <= self.final_ts for _ in step.ddls)


def upstream(history: History, options: ProducerOptions) -> Upstream:
    """Write the log of a history."""
    producer = Producer(history, options)
    log = tuple(producer.log())
    return Upstream(history, log, producer.final_ts, options.form.protocol)


def small_upstream(seed: int, topic: str, transactions: int, *, form: WireFormat = WireFormat.OPEN_PROTOCOL) -> Upstream:
    """Write a history with all kinds of tables and DDLs into one topic, with replays; in ``form``, if no format is chosen for all tests."""
    history = History(seed, HistoryOptions(transactions=transactions))
    return upstream(history, ProducerOptions(seed=seed, topic=topic, partitions=4, replays=3).written_as(chosen_form(form)))


@contextmanager
def fresh_oracle(url: str) -> Iterator[Oracle]:
    """Yield an empty oracle of the same kind as the sink at ``url``, which leaves nothing behind."""
    if url.startswith("sqlite"):
        with closing(open_oracle("sqlite:///:memory:")) as oracle:
            yield oracle
        return
    with MysqlOracle(url) as oracle:
        oracle.clear()
        try:
            yield oracle
        finally:
            oracle.clear()


def differences(steps: Iterable[UpstreamStep], url: str, *, upto_ts: Ts | None = None) -> list[str]:
    """List what differs in the sink: from upstream itself, and from a database of the sink's kind that has executed upstream's steps."""
    steps = list(steps)
    upstream_itself = CatalogueOracle()
    upstream_itself.apply(steps, upto_ts)
    found = [f"not as upstream: {line}" for line in upstream_itself.differences_from(read_facts(url))]
    with fresh_oracle(url) as oracle:
        oracle.apply(steps, upto_ts)
        found += compare(oracle, url)
        if isinstance(oracle, MysqlOracle):
            found += wrong_by_verify(oracle, url)
        return found


def wrong_by_verify(oracle: MysqlOracle, url: str) -> list[str]:
    """List what `applier verify` says about the same databases: where the simulator's own comparison finds nothing, it may not either."""

    def name_of(table: TableName) -> TableName | None:
        return table._replace(schema=table.schema.removeprefix(oracle.prefix)) if table.schema.startswith(oracle.prefix) else None

    report = verify(oracle.url, url, ComparedTables(name_of), replica=SinkSettings(url=url, name=NAME), chunk_rows=100)
    return [f"{table}: applier verify finds {found}" for table, found in wrong(report).items()]


def differences_now(history: History, url: str) -> list[str]:
    """List what differs from upstream as it was at the replica's own checkpoint: of the DDLs at it, those that the ledger calls done."""
    with open_sink(SinkSettings(url=url, name=NAME)) as sink:
        moment = durable_state(sink)
    return [] if moment is None else differences(steps_until(history, moment), url)


def clear_sink(url: str) -> None:
    """Take everything from a shared server: what the bookkeeping holds, replicated schemas, oracles."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        oracles = [DEFAULT_PREFIX + name for name in read_schemas(connection, DEFAULT_PREFIX)]
        drop(cursor, [*read_schemas(connection, ""), *oracles])
        forget_replicas(cursor)
        connection.commit()


def fence_of(url: str) -> tuple[int, int]:
    """Return (epoch, window_id) of the replica; (0, 0) before there is one."""
    with open_sink(SinkSettings(url=url, name=NAME)) as sink:
        try:
            progress = sink.load()
        except FatalSinkError:  # its tables are not there yet
            progress = None
    return (progress.fence.epoch, progress.fence.window_id) if progress else (0, 0)


def settled_ddls(url: str) -> list[Ts]:
    """Return the ts of each DDL that the ledger calls done; none of them may be there twice or in another state."""
    with open_sink(SinkSettings(url=url, name=NAME)) as sink:
        entries = sink.bookkeeping.ledger()
    assert len({entry.identity for entry in entries}) == len(entries)
    assert {entry.state for entry in entries} <= {DdlState.DONE}
    return sorted(entry.ddl.commit_ts for entry in entries)
