"""What the integration tests of the MySQL sink share: a replica, an upstream clock, one-line writes and DDLs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import Engine, NullPool, create_engine, text

from applier.ddl import identity
from applier.model.events import DdlEvent
from applier.model.position import Ts
from applier.planner.port import Phase, Statement
from applier.sinks.ledger_entry import DdlState
from applier.sinks.mysql.sink import MysqlSink
from applier.sinks.port import Writer
from applier.sinks.progress import Fence, ProgressCommit, WriteOutcome
from applier.sinks.settings import SinkSettings
from applier.sources.ticdc.tso import physical_ms
from tests.rig.clean_server import clean_server

SHOP = "applier_test_shop"
Session = tuple[tuple[str, str | int], ...]
LEASE_S = 2.0


def settings(url: str, **changes: Any) -> SinkSettings:
    """Return settings with short times."""
    return replace(SinkSettings(url=url, lease_s=LEASE_S, lock_timeout_s=2.0, lock_wait_timeout_s=3, retries=4), **changes)


@cache
def engine(url: str) -> Engine:
    """Return a way to look at the database from outside: each use is a separate session."""
    return create_engine(url, poolclass=NullPool)


def run(url: str, *statements: str) -> None:
    """Run statements from outside."""
    with engine(url).begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def read(url: str, query: str) -> list[tuple[Any, ...]]:
    """Read rows from outside."""
    with engine(url).begin() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def clean(url: str) -> None:
    """Take away what these tests make."""
    clean_server(url, SHOP)


@contextmanager
def replica(url: str, **changes: Any) -> Iterator["Replica"]:
    """Yield an acquired and begun replica."""
    with MysqlSink(settings(url, **changes)) as sink:
        sink.migrate()
        sink.acquire()
        yield Replica(sink, sink.load() or sink.begin(Ts(0)))


class Replica:
    """A sink with the fence that holds and a running clock."""

    def __init__(self, sink: MysqlSink, progress: Any) -> None:
        self.sink = sink
        self.fence: Fence = progress.fence
        self.ts = Ts(max(progress.checkpoint_ts, int(time.time() * 1000) << 18))

    def tick(self) -> Ts:
        """Return the next commit_ts."""
        self.ts = Ts(self.ts + (1 << 18))
        return self.ts

    def write(self, *statements: str, writer: Writer | None = None) -> WriteOutcome:
        """Write one segment; the fence moves if it was committed."""
        ts = self.tick()
        outcome = (writer or self.sink.writer).write(self.fence, [rows(text, ts) for text in statements], commit_at(ts))
        if outcome.state == "committed":
            self.fence = Fence(self.fence.epoch, self.fence.window_id + 1)
        return outcome

    def ddl(self, query: str, table: str = "", ts: int | None = None, *, zone: str = "UTC", log: Session = ()) -> None:
        """Run one DDL. ``zone``: that of upstream's sessions, '' if it is not known; ``log``: the session of a binlog's statement."""
        time_ms = None if ts is None else physical_ms(Ts(ts))
        session: Session = log or ((("time_zone", zone),) if zone else ())
        at = {"commit_ts": Ts(ts or self.tick()), "time_ms": time_ms, "session": session}
        event = DdlEvent(schema=SHOP, table=table, query=query, ddl_type=0, **at)
        self.fence = self.sink.run_ddl(
            self.fence, identity(event), event, before=commit_at(event.commit_ts), after=commit_at(event.commit_ts)
        )


def rows(statement: str, ts: Ts) -> Statement:
    """Make a rendered statement of one row."""
    phase = Phase.DELETE if statement.startswith("DELETE") else Phase.REPLACE
    return Statement(phase, f"{SHOP}.t", statement.encode(), 1, ts, ts)


def commit_at(ts: Ts) -> ProgressCommit:
    """Make a commit of progress without positions."""
    return ProgressCommit(checkpoint_ts=ts, positions={})


def definitions(url: str) -> dict[str, str]:
    """Return the statement that makes each table of the schema."""
    tables = [row[0] for row in read(url, f"SHOW TABLES FROM {SHOP}")]
    return {table: str(read(url, f"SHOW CREATE TABLE {SHOP}.{table}")[0][1]) for table in tables}


def states(shop: Replica) -> list[DdlState]:
    """Return the states of the ledger's entries, in order."""
    return [entry.state for entry in shop.sink.bookkeeping.ledger()]
