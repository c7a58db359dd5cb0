"""A MariaDB primary of the measurements: a backlog of several binlog files, and the transactions of a live load.

The rows are made by the server (sequences, a procedure), so that a backlog of a million rows takes seconds. The tables are those of the
other measurements: rows of ``orders`` have some 200 bytes.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.rig.database import Kind, own_database
from tests.rig.mysql_oracle import connect

SCHEMA, TOOLS = "bench", "bench_tools"
OPTIONS = (
    "--log-bin=bin --binlog-format=ROW --binlog-row-metadata=FULL --binlog-row-image=FULL --sync-binlog=0 --server-id={} "
    "--innodb-buffer-pool-size=256M --innodb-log-file-size=256M --innodb-flush-log-at-trx-commit=2 --max-binlog-size=1G"
)
BULK_ROWS, SMALL_ROWS = 100, 4
"""Rows of a transaction: one statement of many rows, or four statements of one row (two updates, a delete, an insert)."""
BASE_ROWS = 20_000
"""Rows that small transactions change."""
NOTE = "CONCAT(MD5({0}), MD5({0} + 1), MD5({0} + 2), MD5({0} + 3), LEFT(MD5({0} + 4), 21))"
ORDER = "{0}, ({0} * 7919) % 99991, CONCAT('product ', {0} % 613), ({0} * 31) % 100000 + 0.25, '2025-11-24 10:11:12', " + NOTE
TABLES = (
    f"""CREATE TABLE {SCHEMA}.orders (id BIGINT PRIMARY KEY, customer INT NOT NULL, product VARCHAR(40) NOT NULL,
        amount DECIMAL(12,2) NOT NULL, made_at DATETIME, note VARCHAR(200))""",
    f"CREATE TABLE {SCHEMA}.beats (id INT PRIMARY KEY, n BIGINT NOT NULL)",
    f"INSERT INTO {SCHEMA}.beats VALUES (1, 0)",
)
STEP = f"""CREATE PROCEDURE {TOOLS}.step(n BIGINT) BEGIN
  UPDATE {SCHEMA}.orders SET customer = (customer + 1) % 99991 WHERE id = (n * 7919) % {BASE_ROWS} + 1;
  UPDATE {SCHEMA}.orders SET note = {NOTE.format("n")} WHERE id = (n * 104729) % {BASE_ROWS} + 1;
  DELETE FROM {SCHEMA}.orders WHERE id = (n * 1299709) % {BASE_ROWS} + 1;
  REPLACE INTO {SCHEMA}.orders VALUES ({ORDER.format(f"((n * 1299709) % {BASE_ROWS} + 1)")});
END"""
STEPS = f"""CREATE PROCEDURE {TOOLS}.steps(first BIGINT, until BIGINT) BEGIN
  WHILE first < until DO START TRANSACTION; CALL {TOOLS}.step(first); COMMIT; SET first = first + 1; END WHILE;
END"""


class FilePosition(NamedTuple):
    """A place in the binlog."""

    file: str
    position: int

    def __str__(self) -> str:
        return f"{self.file}:{self.position}"


@dataclass(frozen=True)
class Backlog:
    """What lies between two places, and how many rows were written."""

    first: FilePosition
    end: FilePosition
    rows: int
    size: int


class Primary:
    """A server with a binlog of its own, at ``url``."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements in one session; return the rows of the last one."""
        return ask(self.url, *statements)

    def position(self) -> FilePosition:
        """Return where the next transaction begins."""
        [row] = self.ask("SHOW MASTER STATUS")
        return FilePosition(str(row[0]), int(row[1]))

    def make_backlog(self, rows: int, files: int, *, small: bool) -> Backlog:
        """Write so many rows into so many binlog files. ``small``: by transactions of four statements of one row each."""
        self.ask(
            "SET SESSION sql_log_bin = 0",
            f"DROP DATABASE IF EXISTS {SCHEMA}",
            f"DROP DATABASE IF EXISTS {TOOLS}",
            f"CREATE DATABASE {TOOLS}",
            STEP,
            STEPS,
        )
        self.ask("FLUSH BINARY LOGS")
        first = self.position()
        self.ask(f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", *TABLES)
        self._insert(1, BASE_ROWS if small else 0)
        done = BASE_ROWS if small else 0
        for number in range(files):
            if number:
                self.ask("FLUSH BINARY LOGS")
            until = rows * (number + 1) // files
            if small:
                self.ask(f"CALL {TOOLS}.steps({done // SMALL_ROWS}, {until // SMALL_ROWS})")
            else:
                self._insert(done + 1, until)
            done = max(done, until)
        return Backlog(first, self.position(), done, self._binlog_bytes(first))

    def _insert(self, first: int, last: int) -> None:
        statements = (
            f"INSERT INTO {SCHEMA}.orders SELECT {ORDER.format('seq')} FROM {SCHEMA}.seq_{start}_to_{min(start + BULK_ROWS - 1, last)}"
            for start in range(first, last + 1, BULK_ROWS)
        )
        self.ask(*statements)

    def _binlog_bytes(self, first: FilePosition) -> int:
        return sum(int(row[1]) for row in self.ask("SHOW BINARY LOGS") if str(row[0]) >= first.file)


def ask(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements in one session of a server; return the rows of the last one."""
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        connection.autocommit(True)
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall()) if statements else []


def checksum(url: str) -> int:
    """Return a sum over all rows of the table that the measurements compare."""
    return int(ask(url, f"CHECKSUM TABLE {SCHEMA}.orders")[0][1] or 0)


@contextmanager
def servers(count: int) -> Iterator[list[str]]:
    """Yield the URLs of a primary and of ``count`` servers without a binlog."""
    with own_database(Kind.MARIADB, options=OPTIONS.format(1)) as primary:
        yield from _with_sinks([primary.url], count)


def _with_sinks(urls: list[str], count: int) -> Iterator[list[str]]:
    if not count:
        yield urls
        return
    options = f"--server-id={len(urls) + 1} --innodb-buffer-pool-size=256M --innodb-log-file-size=256M --innodb-flush-log-at-trx-commit=2"
    with own_database(Kind.MARIADB, options=options) as sink:
        yield from _with_sinks([*urls, sink.url], count - 1)
