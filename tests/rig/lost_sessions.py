"""Ends a session at a chosen statement: before the server gets it, or after the server has executed it and before it has answered.

Only sessions of the thread that made the ``Killer`` count, or of the one that it names. What each session is sent is kept.
"""

import re
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pymysql
import pytest
from pymysql.constants import CR

from applier.mysql.connection import DriverConnection
from tests.rig.mysql_oracle import connect

SETTING_UP = re.compile(
    r"SET NAMES|SET sql_mode|SET AUTOCOMMIT|SELECT (VERSION|DATABASE)\(\)|SELECT @@(transaction_isolation|tx_isolation|sql_mode)"
    r"|SHOW VARIABLES LIKE 'sql_mode'|SELECT @@lower_case_table_names|ROLLBACK|SET SESSION"
)
"""What SQLAlchemy and we may send on a session that is not set up yet."""
SET_UP = "SET SESSION sql_select_limit"
"""The first statement of our set-up."""


@dataclass
class Killer:
    """``at``: the number of the statement (from 0) at which its session ends; ``has_run``: whether the server executes it."""

    root_url: str = ""
    thread: str = ""
    at: int = -1
    has_run: bool = False
    after: re.Pattern[str] | None = None
    """Statements count from the first one on that matches, which is lost too: its answer does not come."""
    counted: int = 0
    is_reached: bool = False
    killed: list[str] = field(default_factory=list)
    """The statements at which sessions were ended since ``arm``."""
    sent: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))

    def arm(self, at: int, *, has_run: bool, after: str | None = None) -> None:
        """End a session at the statement ``at`` from now on."""
        self.counted, self.at, self.has_run, self.killed, self.is_reached = 0, at, has_run, [], False
        self.after = None if after is None else re.compile(after)

    def disarm(self) -> bool:
        """End no session any more; return whether the one of ``arm`` was ended."""
        self.at, self.after = -1, None
        return self.is_reached

    def verdict(self, statement: str) -> bool | None:
        """Return how this statement ends its session: True: after it has run, False: before; None: not at all."""
        name = threading.current_thread().name
        if self.at < 0 or name != (self.thread or threading.main_thread().name):
            return None
        if self.after is not None:
            if not self.after.search(statement):
                return None
            self.after = None
            return True
        self.counted += 1
        if self.counted != self.at + 1:
            return None
        self.is_reached = True
        return self.has_run

    def kill(self, session: int, statement: str) -> None:
        """End a session of a server from outside."""
        self.killed.append(statement)
        with closing(connect(self.root_url)) as connection, connection.cursor() as cursor:
            try:
                cursor.execute(f"KILL {session}")
            except pymysql.err.OperationalError as error:
                if error.args[0] != pymysql.constants.ER.NO_SUCH_THREAD:
                    raise

    def sessions_without_set_up(self) -> list[str]:
        """Return the first statement of ours on each session that was opened and had not been set up before."""
        found = []
        for statements in (sent for sent in self.sent.values() if sent[0].startswith("SET NAMES")):
            before = next((text for text in statements if text.startswith(SET_UP) or not SETTING_UP.match(text)), SET_UP)
            if not before.startswith(SET_UP):
                found.append(before)
        return found


@contextmanager
def server_killer(root_url: str, monkeypatch: pytest.MonkeyPatch, thread: str = "") -> Iterator[Killer]:
    """Give a killer of the sessions that this process has on a server of the MySQL family."""
    killer = Killer(root_url, thread)
    execute, read = DriverConnection._execute_command, DriverConnection._read_packet
    dying: set[int] = set()
    kept: list[object] = []  # an id must not come again

    def execute_command(self: Any, command: int, sql: Any) -> None:
        statement = sql.decode("utf-8", "replace") if isinstance(sql, bytes | bytearray) else str(sql)
        killer.sent[id(self)].append(statement)
        kept.append(self)
        match killer.verdict(statement):
            case False:
                killer.kill(self.server_thread_id[0], statement)
            case True:
                dying.add(id(self))
        execute(self, command, sql)

    def read_packet(self: Any, *arguments: Any) -> Any:
        packet = read(self, *arguments)
        if id(self) in dying:
            dying.discard(id(self))
            killer.kill(self.server_thread_id[0], killer.sent[id(self)][-1])
            self._force_close()
            raise pymysql.err.OperationalError(CR.CR_SERVER_LOST, "Lost connection to MySQL server during query")
        return packet

    with monkeypatch.context() as patched:
        patched.setattr(DriverConnection, "_execute_command", execute_command)
        patched.setattr(DriverConnection, "_read_packet", read_packet)
        yield killer


@contextmanager
def file_killer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Killer]:
    """Give a killer of the connections that this process has to files of SQLite: they are closed under whoever uses them."""
    killer = Killer()
    opened = sqlite3.dbapi2.connect

    def cut(connection: sqlite3.Connection, statement: str) -> None:
        killer.killed.append(statement)
        connection.rollback()  # by hand: an open cursor would keep the lock of a connection that is closed
        connection.close()

    class Cursor(sqlite3.Cursor):
        def execute(self, sql: str, *arguments: Any) -> Any:
            verdict = killer.verdict(sql)
            if verdict is False:
                cut(self.connection, sql)
            found = super().execute(sql, *arguments)
            if verdict is True:
                cut(self.connection, sql)
            return found

    class Connection(sqlite3.Connection):
        def cursor(self, *_: Any) -> Any:
            return super().cursor(Cursor)

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3.dbapi2, "connect", lambda *arguments, **options: opened(*arguments, factory=Connection, **options))
        yield killer
