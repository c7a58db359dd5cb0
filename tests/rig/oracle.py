"""The oracle of each kind of database: open it, compare it with a sink, load a sink with upstream's state, sum up the money.

URLs are SQLAlchemy's, as in the applier's configuration: ``sqlite:///oracle.db``, ``mysql+pymysql://user@host/``.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Protocol

from sqlalchemy import make_url

from applier.demo.simulator import sqlite_oracle
from applier.demo.simulator.compare import DatabaseFacts, differences
from applier.demo.simulator.history import History
from applier.demo.simulator.mysql_text import DdlWriter
from applier.demo.simulator.operation import CreateTable, CreateView, Ddl, UpstreamStep, action_type, event_name
from applier.demo.simulator.schema import Table
from applier.demo.simulator.session_zone import SESSION_ZONE
from applier.demo.simulator.sqlite_oracle import SqliteOracle, bound_row
from applier.model.events import DdlEvent, TableName
from applier.model.position import Ts
from applier.sinks.sqlite.schema_change import apply_ddl
from tests.rig import mysql_oracle
from tests.rig.mysql_oracle import DEFAULT_PREFIX, MysqlOracle

__all__ = [
    "MysqlOracle",
    "Oracle",
    "SqliteOracle",
    "compare",
    "load_dump",
    "open_oracle",
    "read_facts",
    "read_money_total",
    "run_translated",
]


class Oracle(Protocol):
    """A database in which the upstream's transactions are really executed."""

    def execute(self, step: UpstreamStep) -> None:
        """Execute one step."""
        ...

    def apply(self, history: Iterable[UpstreamStep], upto_ts: Ts | None = None) -> None:
        """Execute all steps with ts <= ``upto_ts`` (None: all)."""
        ...

    def tables(self) -> dict[TableName, Table]:
        """Return the present definitions."""
        ...

    def facts(self) -> DatabaseFacts:
        """Describe the oracle for comparison."""
        ...

    def money_total(self) -> int | None:
        """Return the sum of all balances; None before the accounts exist."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


def _sqlite_path(url: str) -> Path | None:
    """Return the file of an SQLite URL; None for another database."""
    where = make_url(url)
    return Path(where.database or "") if where.get_backend_name() == "sqlite" else None


def open_oracle(url: str, prefix: str = DEFAULT_PREFIX) -> Oracle:
    """Open an oracle in the database at ``url``."""
    path = _sqlite_path(url)
    return SqliteOracle(path) if path else MysqlOracle(url, prefix)


def read_facts(url: str, prefix: str = "") -> DatabaseFacts:
    """Describe a sink for comparison, without the bookkeeping. ``prefix``: of the schemas of a server."""
    path = _sqlite_path(url)
    if path:
        return sqlite_oracle.read_file_facts(path)
    with closing(mysql_oracle.connect(url)) as connection:
        return mysql_oracle.read_facts(connection, prefix)


def compare(oracle: Oracle, sink_url: str) -> list[str]:
    """List the differences between an oracle and a sink of the same kind of database; [] if there are none."""
    return differences(oracle.facts(), read_facts(sink_url), oracle.tables())


def read_money_total(url: str) -> int | None:
    """Return the sum of all balances of a sink in one consistent snapshot; None before its accounts exist."""
    path = _sqlite_path(url)
    if path:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
            return sqlite_oracle.money_total(connection)
    with closing(mysql_oracle.connect(url)) as connection:
        return mysql_oracle.money_total(connection)


def load_dump(history: History, at_ts: Ts, sink_url: str) -> None:
    """Give a sink the state of upstream at ``at_ts`` (all rows and DDLs up to it), as a user loads a dump before ``start_ts``."""
    path = _sqlite_path(sink_url)
    if path:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            _load_sqlite(history, at_ts, connection)
        return
    with closing(MysqlOracle(sink_url, prefix="")) as target:
        target.apply(history, at_ts)


def _load_sqlite(history: History, at_ts: Ts, connection: sqlite3.Connection) -> None:
    """Make the tables by the sink's own translator, so that later DDLs know their MySQL types; the rows are ours."""
    catalogue = history.catalogue(at_ts)
    connection.execute("BEGIN")
    for state in catalogue:
        run_translated(connection, CreateTable(state.table), at_ts)
        places = state.table.sent_places
        name, columns = (
            sqlite_oracle.quote(str(state.table.name)),
            [sqlite_oracle.quote(state.table.columns[place].name) for place in places],
        )
        rows = [[values[place] for place in places] for values in (bound_row(state.table, row) for row in state.rows.values())]
        connection.executemany(f"INSERT INTO {name} ({','.join(columns)}) VALUES ({','.join('?' * len(places))})", rows)
    for view in catalogue.views.values():
        run_translated(connection, CreateView(view.name, view.source, view.columns), at_ts)
    connection.execute("COMMIT")


def run_translated(connection: sqlite3.Connection, ddl: Ddl, at_ts: Ts) -> None:
    """Run a DDL through the SQLite sink's translator, from the text that a producer sends."""
    name = event_name(ddl)
    session = (("time_zone", SESSION_ZONE),)
    query = DdlWriter().write(ddl)
    event = DdlEvent(commit_ts=at_ts, schema=name.schema, table=name.table, query=query, ddl_type=action_type(ddl), session=session)
    apply_ddl(connection, event, "UTC")
