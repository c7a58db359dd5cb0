"""What is on the demo's stage: a directory with configuration, replica and oracle, and the history that both must tell."""

import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from applier.config import Config, load_config
from applier.demo.simulator.compare import DatabaseFacts, differences
from applier.demo.simulator.history import History
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.sqlite_facts import money_total, read_file_facts
from applier.demo.simulator.sqlite_oracle import SqliteOracle
from applier.model.errors import ConfigError
from applier.model.events import TableName
from applier.model.position import Ts
from applier.model.segment import is_beyond, is_past
from applier.sinks.ledger_entry import DdlState
from applier.sinks.port import Sink

TOPIC: Final = "changefeed"
MAX_TRANSACTION_ROWS: Final = 1000
"""Small segments, so that the kill falls between two of many."""
MARK: Final = "applier.toml"
"""A directory that holds it was made by an earlier demo."""

CONFIG: Final = """\
# Written by `applier demo`. The embedded broker is gone when the demo ends: put your own here.
name = "demo"

[source]
bootstrap_servers = "{servers}"
topics = ["{topic}"]

[sink]
url = "sqlite:///{replica}"
max_transaction_rows = {rows}

[spark]
master = "local[2]"

[spark.conf]
"spark.local.dir" = "{spark}"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """How much happened upstream."""

    transactions: int
    rows: int
    ddls: int
    middle_ts: Ts
    last_ts: Ts


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One table of both databases: how many rows upstream has, and what differs in the replica."""

    name: str
    rows: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableState:
    """The durable state of the replica: up to where, whose run, how many DDLs at that very ts."""

    checkpoint_ts: Ts
    epoch: int
    window_id: int
    ddls_at_checkpoint: int


@dataclass(frozen=True, slots=True)
class Stage:
    """One demo in one directory."""

    directory: Path
    history: History

    @property
    def replica(self) -> Path:
        """The file that the applier writes."""
        return self.directory / "replica.db"

    @property
    def config(self) -> Path:
        """The configuration of the demo's runs."""
        return self.directory / MARK

    @property
    def log(self) -> Path:
        """Standard error of the demo's runs."""
        return self.directory / "catchup.log"

    @property
    def spark(self) -> Path:
        """Spark's scratch space: a killed run cannot clear it."""
        return self.directory / "spark"

    def clear(self) -> None:
        """Remove what an earlier demo left; ConfigError if the directory holds anything else."""
        if self.directory.exists() and not self.config.exists() and any(self.directory.iterdir()):
            raise ConfigError("the directory of the demo is not empty", remedy="Give another one with --dir", directory=self.directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        for name in ("replica.db*", "oracle*.db*", self.log.name):
            for path in self.directory.glob(name):
                path.unlink()
        shutil.rmtree(self.spark, ignore_errors=True)

    def write_config(self, servers: str) -> Config:
        """Write the configuration of the demo's runs and read it back as they do."""
        replica, spark = (path.resolve() for path in (self.replica, self.spark))
        text = CONFIG.format(servers=servers, topic=TOPIC, replica=replica, rows=MAX_TRANSACTION_ROWS, spark=spark)
        self.config.write_text(text, encoding="utf-8")
        return load_config(self.config, environment={})

    def volume(self) -> Volume:
        """Count what happens upstream; the middle is where half of the steps are done."""
        steps = [(step.ts, len(step.rows), len(step.ddls)) for step in self.history]
        return Volume(
            transactions=sum(rows > 0 for _, rows, _ in steps),
            rows=sum(rows for _, rows, _ in steps),
            ddls=sum(ddls for _, _, ddls in steps),
            middle_ts=steps[len(steps) // 2][0],
            last_ts=steps[-1][0],
        )

    def verdicts(self, moment: DurableState | None = None) -> list[Verdict]:
        """Compare the replica with upstream as it was at ``moment`` (None: at the end), table by table, value by value."""
        path = self.directory / ("oracle.db" if moment is None else "oracle_at_kill.db")
        path.unlink(missing_ok=True)
        with closing(SqliteOracle(path)) as oracle:
            oracle.apply(self.history if moment is None else steps_until(self.history, moment))
            expected, actual = oracle.facts(), read_file_facts(self.replica)
            verdicts = [
                Verdict(
                    name=str(name),
                    rows=len(expected.tables[name].rows) if name in expected.tables else 0,
                    problems=tuple(differences(_only(expected, name), _only(actual, name), oracle.tables())),
                )
                for name in sorted(expected.tables.keys() | actual.tables.keys())
            ]
        return [
            *verdicts,
            Verdict(name="views", rows=len(expected.views), problems=tuple(differences(_views(expected), _views(actual), {}))),
        ]

    def money(self) -> int | None:
        """Return the sum of all balances in the replica; None before the accounts exist."""
        with closing(sqlite3.connect(f"file:{self.replica}?mode=ro", uri=True)) as connection:
            return money_total(connection)


def moment_of_replica(sink: Sink) -> DurableState | None:
    """Read where the replica is; None before its beginning."""
    progress = sink.load()
    if progress is None:
        return None
    settled = [e for e in sink.ledger() if e.ddl.commit_ts == progress.checkpoint_ts and e.state is not DdlState.INTENT]
    return DurableState(
        checkpoint_ts=progress.checkpoint_ts,
        epoch=progress.fence.epoch,
        window_id=progress.fence.window_id,
        ddls_at_checkpoint=len(settled),
    )


def steps_until(history: Iterable[UpstreamStep], moment: DurableState) -> Iterator[UpstreamStep]:
    """Yield the upstream as the replica must show it at ``moment``: all rows up to it, and at its very ts only the DDLs that are done."""
    for step in history:
        if is_beyond(step.ts, moment.checkpoint_ts):
            return
        yield step if is_past(step.ts, moment.checkpoint_ts) else step._replace(ddls=step.ddls[: moment.ddls_at_checkpoint])


def _only(facts: DatabaseFacts, wanted: TableName) -> DatabaseFacts:
    return DatabaseFacts(tables={name: table for name, table in facts.tables.items() if name == wanted}, views=frozenset())


def _views(facts: DatabaseFacts) -> DatabaseFacts:
    return DatabaseFacts(tables={}, views=facts.views)
