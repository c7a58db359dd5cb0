"""A reader of any sink that adds up money again and again, each time in one consistent snapshot, and keeps what it saw."""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread

import pymysql
from sqlalchemy import make_url

from applier.demo.simulator.sqlite_oracle import quote
from applier.model.events import TableName
from tests.rig.mysql_oracle import connect

POLL_S = 0.01
ABSENT = {
    pymysql.constants.ER.NO_SUCH_TABLE,
    pymysql.constants.ER.BAD_DB_ERROR,
    pymysql.constants.ER.TABLE_DEF_CHANGED,
}


@dataclass(slots=True)
class Totals:
    """``seen`` are the different totals in the order in which they were seen, ``reads`` their number."""

    tables: Sequence[TableName]
    seen: list[int] = field(default_factory=list)
    reads: int = 0

    def note(self, total: int | None) -> None:
        if total is not None:
            self.reads += 1
            if self.seen[-1:] != [total]:
                self.seen.append(total)

    def torn(self, total: int) -> list[int]:
        """Return what was seen beside ``total``, and beside the 0 of empty tables before it."""
        return [each for each in self.seen[self.seen[:1] == [0] :] if each != total]


def sum_of(url: str, tables: Sequence[TableName]) -> int | None:
    """Return the sum of all balances of ``tables`` in one snapshot; None before they exist."""
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        names = [quote(str(name)) for name in tables]
        with closing(sqlite3.connect(f"file:{parsed.database}?mode=ro", uri=True, timeout=30)) as connection:
            return _sqlite_sum(connection, names)
    try:
        with closing(connect(url)) as connection, connection.cursor() as cursor:
            cursor.execute(_query([f"`{name.schema}`.`{name.table}`" for name in tables]))
            return int(cursor.fetchone()[0])
    except pymysql.MySQLError as error:
        if error.args[0] in ABSENT:
            return None
        raise


def _sqlite_sum(connection: sqlite3.Connection, names: Sequence[str]) -> int | None:
    try:
        return int(connection.execute(_query(names)).fetchone()[0])
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return None
        raise


def _query(names: Sequence[str]) -> str:
    # One statement reads one snapshot, on each of the servers.
    return f"SELECT COALESCE(SUM(balance), 0) FROM ({' UNION ALL '.join(f'SELECT balance FROM {name}' for name in names)}) AS balances"


@contextmanager
def watching_totals(url: str, *groups: Sequence[TableName]) -> Iterator[list[Totals]]:
    """Yield the totals of each group of tables, which a thread reads until the end of the block; raise what kept it from reading."""
    found = [Totals(group) for group in groups]
    errors: list[Exception] = []
    stopped = Event()

    def watch() -> None:
        try:
            while not stopped.wait(POLL_S):
                for each in found:
                    each.note(_read(url, each.tables))
        except (pymysql.Error, sqlite3.Error) as error:
            errors.append(error)

    thread = Thread(target=watch, name="totals", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        stopped.set()
        thread.join()
    if errors:
        raise errors[0]


def _read(url: str, tables: Sequence[TableName]) -> int | None:
    try:
        return sum_of(url, tables)
    except sqlite3.OperationalError as error:
        if "unable to open" in str(error):  # the replica has not begun
            time.sleep(POLL_S)
            return None
        raise
