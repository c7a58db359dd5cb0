"""Upstream's own database: its schemas, the state of the feed, and the lock by which a comparison holds the feed still."""

from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import pymysql

from applier.demo.simulator.mysql_text import quote_name
from applier.demo.simulator.operation import UpstreamStep
from applier.model.errors import ConfigError, Remedy
from applier.model.position import NO_TS, Ts
from tests.rig.mysql_oracle import STATE_SCHEMA, MysqlOracle, connect, read_schemas

MOST_NAMED: Final = 5
LOCK: Final = STATE_SCHEMA
STATE_TABLE: Final = f"{STATE_SCHEMA}.state"
MAKE_STATE: Final = f"CREATE TABLE IF NOT EXISTS {STATE_TABLE} (one INT PRIMARY KEY, seed BIGINT, steps BIGINT, last_ts BIGINT UNSIGNED)"
READ_STATE: Final = f"SELECT seed, steps, last_ts FROM {STATE_TABLE}"
WRITE_STATE: Final = f"REPLACE INTO {STATE_TABLE} VALUES (1, %s, %s, %s)"
NOT_THERE: Final = frozenset({pymysql.constants.ER.NO_SUCH_TABLE, pymysql.constants.ER.BAD_DB_ERROR})


@dataclass(frozen=True, slots=True)
class FeedState:
    """How far a feed is: ``steps`` of the history of ``seed`` are in the database, the last one at ``last_ts``."""

    seed: int = 0
    steps: int = 0
    last_ts: Ts = NO_TS


class UpstreamCopy:
    """The database in which upstream's transactions are executed. ``url`` is an SQLAlchemy URL of the MySQL family.

    ``prefix``: of its schemas; with "" all of the server are upstream's, and a new feed drops them.
    """

    def __init__(self, url: str, prefix: str = "") -> None:
        self._prefix = prefix
        self._oracle = MysqlOracle(url, prefix)
        self._connection = connect(url)
        self._connection.autocommit(True)

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close both sessions; that also releases the lock."""
        self._oracle.close()
        with suppress(pymysql.Error):
            self._connection.close()

    def state(self) -> FeedState:
        """Read the state; that of no feed before the first one."""
        try:
            rows = self._run(READ_STATE)
        except pymysql.MySQLError as error:
            if error.args[0] in NOT_THERE:
                return FeedState()
            raise
        return FeedState(int(rows[0][0]), int(rows[0][1]), Ts(int(rows[0][2]))) if rows else FeedState()

    def save(self, state: FeedState) -> None:
        """Write the state."""
        self._run(WRITE_STATE, (state.seed, state.steps, state.last_ts))

    def refuse_foreign(self, *, may_drop: bool) -> None:
        """Refuse schemas that a new feed would drop, unless the caller may. ConfigError names them."""
        found = self.schemas()
        if found and not may_drop:
            raise ConfigError(
                "the database holds schemas, and a new feed drops them",
                remedy=Remedy("demo.give-unused-prefix", "Give a --prefix that none of them has, or allow it with --yes-drop"),
                count=len(found),
                schemas=", ".join(self._prefix + schema for schema in found[:MOST_NAMED]),
            )

    def prepare(self) -> None:
        """Make the table of the state."""
        self._run(f"CREATE DATABASE IF NOT EXISTS {STATE_SCHEMA}")
        self._run(MAKE_STATE)

    def hold(self, timeout_s: int) -> bool:
        """Take the lock; False if another session has it for so long. Who holds it is the only one that changes or compares."""
        return bool(self._run("SELECT GET_LOCK(%s, %s)", (LOCK, timeout_s))[0][0])

    def release(self) -> None:
        """Give the lock back."""
        self._run("SELECT RELEASE_LOCK(%s)", (LOCK,))

    def execute(self, step: UpstreamStep) -> None:
        """Execute a step of the history."""
        self._oracle.execute(step)

    def schemas(self) -> list[str]:
        """Return upstream's schemas."""
        return read_schemas(self._connection, self._prefix)

    def drop(self, schema: str) -> None:
        """Drop a schema that an earlier feed has left."""
        self._run(f"DROP DATABASE {quote_name(self._prefix + schema)}")

    def _run(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())
