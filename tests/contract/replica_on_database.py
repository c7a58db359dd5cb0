"""One replica on one database, for the contract suites of sink and writer: the port, upstream's clock, and a view from outside."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import NullPool, create_engine, make_url, text

from applier.ddl import identity
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.model.position import Offset, Stream, StreamPosition, Ts
from applier.model.rejected_event import EventPosition, RejectedEvent
from applier.planner.port import Phase, Statement, StatementRows
from applier.sinks.port import Sink
from applier.sinks.progress import Fence, ProgressCommit, WriteOutcome, WriteState
from applier.sinks.quarantine import Quarantined
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings

SHOP = "applier_test_shop"
TABLE = TableName(SHOP, "t")
FEED = Stream("feed", 0)
CREATE = "CREATE TABLE `t` (`id` INT PRIMARY KEY, `v` VARCHAR(20) NOT NULL)"


def settings(url: str, **changes: Any) -> SinkSettings:
    """Return settings with short times."""
    return replace(SinkSettings(url=url, lease_s=2.0, lock_timeout_s=0.2, lock_wait_timeout_s=1, retries=2), **changes)


def commit_at(ts: int, **more: Any) -> ProgressCommit:
    """Make a commit that moves the stream ``FEED`` too."""
    positions = {FEED: StreamPosition(next_offset=Offset(ts), resolved_ts=Ts(ts))}
    return ProgressCommit(checkpoint_ts=Ts(ts), positions=positions, topic_ids={"feed": "id-1"}, **more)


@dataclass
class DatabaseReplica:
    """A replica that owns its sink and has begun; ``root_url`` may look at everything."""

    sink: Sink
    url: str
    root_url: str
    fence: Fence = field(default_factory=lambda: Fence(0, 0))
    ddl_session: tuple[tuple[str, str | int], ...] = ()
    """The variables of the session in which upstream ran its DDLs, as far as they are known."""

    @property
    def is_file(self) -> bool:
        return make_url(self.url).get_backend_name() == "sqlite"

    @property
    def table(self) -> str:
        """The name of ``TABLE`` in a statement."""
        return f'"{SHOP}.t"' if self.is_file else f"`{SHOP}`.`t`"

    def another(self, **changes: Any) -> Sink:
        """Return a sink of the same replica, as another run opens it."""
        return open_sink(settings(self.url, **changes))

    def ddl(self, query: str, ts: int, table: str = "t") -> tuple[Any, DdlEvent]:
        session = self.ddl_session
        event = DdlEvent(commit_ts=Ts(ts), schema=SHOP, table=table, query=query, ddl_type=0, session=session)
        return identity(event), event

    def run_ddl(self, query: str, ts: int, table: str = "t", known: frozenset[FoldedName] = frozenset()) -> Fence:
        self.fence = self.sink.run_ddl(
            self.fence, *self.ddl(query, ts, table), before=commit_at(ts, known_tables=known), after=commit_at(ts)
        )
        return self.fence

    def replaces(self, *values: str, ts: int = 9) -> list[Statement]:
        """Render a REPLACE for each row."""
        return [Statement(Phase.REPLACE, str(TABLE), f"REPLACE INTO {self.table} VALUES {row}".encode(), 1, ts, ts) for row in values]

    def delete(self, key: int, ts: int = 9) -> Statement:
        return Statement(Phase.DELETE, str(TABLE), f"DELETE FROM {self.table} WHERE id={key}".encode(), 1, ts, ts)

    def traced(self, *values: str, ts: int = 9) -> Statement:
        """Render one REPLACE that knows its rows: that of the first value has offset 0 in ``FEED``, and so on."""
        description = self.sink.describe([TABLE])[TABLE.fold()]
        events = tuple(RejectedEvent(position=EventPosition(FEED, Offset(n), 0), error="", commit_ts=Ts(ts)) for n in range(len(values)))
        doubled = StatementRows(
            phase=Phase.REPLACE,
            table=description,
            columns=("id", "v"),
            key=("id",),
            dialect=self.sink.dialect,
            texts=(*values, *values),
            rows=events + events,
        )
        return next(doubled.halves())

    def write(
        self, statements: Iterable[Statement], ts: int = 9, quarantined: Quarantined | None = None, fence: Fence | None = None
    ) -> WriteOutcome:
        """Write one segment; the fence moves if it was committed under the present one."""
        outcome = self.sink.writer.write(fence or self.fence, statements, commit_at(ts), quarantined)
        if fence is None and outcome.state is WriteState.COMMITTED:
            self.fence = Fence(self.fence.epoch, self.fence.window_id + 1)
        return outcome

    def rows(self) -> list[tuple[Any, ...]]:
        """Read the table from outside."""
        return self.read(f"SELECT * FROM {self.table} ORDER BY 1")

    def read(self, query: str) -> list[tuple[Any, ...]]:
        engine = create_engine(self.root_url, poolclass=NullPool)
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    @contextmanager
    def locked_progress(self) -> Iterator[None]:
        """Hold the lock that every write needs, as another program does, for the time of the block."""
        if self.is_file:
            with closing(sqlite3.connect(str(make_url(self.url).database), isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                yield
            return
        with create_engine(self.root_url, poolclass=NullPool).begin() as connection:
            connection.execute(text("SELECT * FROM applier.progress FOR UPDATE"))
            yield
