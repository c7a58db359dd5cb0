"""The replica against the oracle: a database in which upstream's transactions were really executed."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from applier.demo.simulator.compare import DatabaseFacts, differences
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.sqlite_oracle import SqliteOracle, money_total, read_file_facts
from applier.model.events import TableName
from applier.model.position import Ts
from applier.model.segment import is_beyond, is_past
from applier.sinks.ledger_entry import DdlState
from applier.sinks.port import Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class TableVerdict:
    """One table: how many rows upstream has, and what differs in the replica."""

    name: str
    rows: int
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableState:
    """What survives a kill: the checkpoint, the epoch of its run, and how many DDLs at that very ts are settled."""

    checkpoint_ts: Ts
    epoch: int
    window_id: int
    ddls_at_checkpoint: int


def compare(replica: Path, history: Iterable[UpstreamStep], oracle_file: Path) -> list[TableVerdict]:
    """Execute the steps in a new oracle and compare every value of every table with the replica; the last verdict is about views."""
    with closing(new_oracle(oracle_file)) as oracle:
        oracle.apply(history)
        return verdicts_of(replica, oracle)


def new_oracle(file: Path) -> SqliteOracle:
    """Open an empty oracle in ``file``."""
    file.unlink(missing_ok=True)
    return SqliteOracle(file)


def verdicts_of(replica: Path, oracle: SqliteOracle) -> list[TableVerdict]:
    """Compare every value of every table of the replica with the oracle; the last verdict is about views."""
    expected, actual = oracle.facts(), read_file_facts(replica)
    verdicts = [
        TableVerdict(
            name=str(name),
            rows=len(expected.tables[name].rows) if name in expected.tables else 0,
            problems=tuple(differences(_only(expected, name), _only(actual, name), oracle.tables())),
        )
        for name in sorted(expected.tables.keys() | actual.tables.keys())
    ]
    return [
        *verdicts,
        TableVerdict(name="views", rows=len(expected.views), problems=tuple(differences(_views(expected), _views(actual), {}))),
    ]


def money_in(replica: Path) -> int | None:
    """Return the sum of all balances in the replica; None before the accounts exist."""
    with closing(sqlite3.connect(f"file:{replica}?mode=ro", uri=True)) as connection:
        return money_total(connection)


def durable_state(sink: Sink) -> DurableState | None:
    """Read the durable state of the replica; None before its first checkpoint."""
    progress = sink.load()
    if progress is None:
        return None
    settled = [e for e in sink.bookkeeping.ledger() if e.ddl.commit_ts == progress.checkpoint_ts and e.state is not DdlState.INTENT]
    return DurableState(
        checkpoint_ts=progress.checkpoint_ts,
        epoch=progress.fence.epoch,
        window_id=progress.fence.window_id,
        ddls_at_checkpoint=len(settled),
    )


def steps_until(history: Iterable[UpstreamStep], state: DurableState) -> Iterator[UpstreamStep]:
    """Yield the steps that a replica in ``state`` must show: all rows up to its checkpoint, and the DDLs at it that are done."""
    for step in history:
        if is_beyond(step.ts, state.checkpoint_ts):
            return
        # The rows at the checkpoint are applied before its DDLs, so only the DDLs can be incomplete there.
        yield step if is_past(step.ts, state.checkpoint_ts) else step._replace(ddls=step.ddls[: state.ddls_at_checkpoint])


def _only(facts: DatabaseFacts, wanted: TableName) -> DatabaseFacts:
    return DatabaseFacts(tables={name: table for name, table in facts.tables.items() if name == wanted}, views=frozenset())


def _views(facts: DatabaseFacts) -> DatabaseFacts:
    return DatabaseFacts(tables={}, views=facts.views)
