"""The sink's side of a measurement: tables before a run, what is visible during one, and a checksum of what is there at its end."""

import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

import pymysql

from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.mysql_text import DdlWriter, quote_name
from applier.demo.simulator.operation import CreateTable
from applier.demo.simulator.schema import Table
from tests.bench.suite.rows import SCHEMA
from tests.rig.mysql_oracle import connect

BOOKKEEPING = "bench_applier"
NAME = "bench"
LOCK = "applier-bench"
CALM_S, CALM_PAGES = 20.0, 500


class Sink:
    """A session of the bench, apart from those of the applier."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = connect(url)
        self._connection.autocommit(True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._connection.close()

    def lock(self) -> None:
        """Keep other measurements off this server as long as this session lasts; SystemExit if one is running."""
        if self._ask(f"SELECT GET_LOCK('{LOCK}', 0)")[0][0] != 1:
            raise SystemExit("another measurement uses this server: two would drop one another's tables")

    def clear(self, tables: Iterable[Table]) -> None:
        """Drop what an earlier run left, and create the tables, empty."""
        for schema in (SCHEMA, BOOKKEEPING):
            self._ask(f"DROP DATABASE IF EXISTS {schema}")
        self._ask(f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        self._ask(f"USE {SCHEMA}")
        writer = DdlWriter(Flavour.TICDC)
        for table in tables:
            self._ask(writer.write(CreateTable(table)))
        self._calm_down()

    def drop(self) -> None:
        """Leave nothing behind."""
        for schema in (SCHEMA, BOOKKEEPING):
            self._ask(f"DROP DATABASE IF EXISTS {schema}")

    def has_rows(self, tables: Iterable[Table]) -> bool:
        """Return whether one of the tables has a visible row."""
        return any(self._ask(f"SELECT 1 FROM {SCHEMA}.{quote_name(table.name.table)} LIMIT 1") for table in tables)

    def checkpoint(self) -> int:
        """Return the checkpoint; 0 before the replica has begun."""
        try:
            rows = self._ask(f"SELECT checkpoint_ts FROM {BOOKKEEPING}.progress WHERE name = '{NAME}'")
        except pymysql.Error:
            return 0
        return int(rows[0][0]) if rows else 0

    def checksum(self, tables: Iterable[Table]) -> int:
        """Return a sum over all rows of all tables; it does not depend on their order."""
        names = ", ".join(f"{SCHEMA}.{quote_name(table.name.table)}" for table in tables)
        return sum(int(value or 0) for _, value in self._ask(f"CHECKSUM TABLE {names}"))

    def variables(self, *names: str) -> dict[str, str]:
        """Return settings of the server."""
        listed = ", ".join(f"'{name}'" for name in names)
        return {str(name): str(value) for name, value in self._ask(f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({listed})")}

    def _calm_down(self) -> None:
        """Wait until the server has written most of what the run before has left, or for some seconds."""
        give_up = time.monotonic() + CALM_S
        while time.monotonic() < give_up and self._dirty_pages() > CALM_PAGES:
            time.sleep(0.5)

    def _dirty_pages(self) -> int:
        return int(self._ask("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'")[0][1])

    def _ask(self, statement: str) -> Any:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()
