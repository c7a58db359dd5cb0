"""A server whose binlog is followed: it can be killed, restarted, rotated, purged, and followed by another one that takes its place."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any, Self

import pymysql
from sqlalchemy import make_url

from tests.rig.clean_server import drop
from tests.rig.database import PASSWORD, USER, Database, Kind, own_database
from tests.rig.mysql_oracle import connect, read_schemas
from tests.rig.server import ContainerServer

OPTIONS = {
    Kind.MARIADB: "--binlog-format=ROW --binlog-row-metadata=FULL --log-slave-updates",
    Kind.MYSQL: "--binlog-row-metadata=FULL --gtid-mode=ON --enforce-gtid-consistency=ON",
}
"""What a replica needs of its primary, and what a server needs that takes a primary's place."""
MADE_HERE = "--server-id={number} --log-bin=binlog --innodb-flush-log-at-trx-commit=2 --sync-binlog=0"
CAUGHT_UP_S = 60
PURGED_S = 60
POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class Primary:
    """``database`` is the server, ``number`` its server id."""

    database: Database
    number: int

    @property
    def url(self) -> str:
        """SQLAlchemy URL of a user with all privileges."""
        return self.database.url

    @property
    def kind(self) -> Kind:
        """Which server of the family."""
        return self.database.kind

    def run(self, *statements: str) -> None:
        """Execute statements in one session, each committed."""
        with closing(connect(self.url)) as connection, connection.cursor() as cursor:
            connection.autocommit(True)
            for statement in statements:
                cursor.execute(statement)

    def ask(self, query: str) -> Sequence[Sequence[Any]]:
        """Return the rows of a query."""
        with closing(connect(self.url)) as connection:
            return _rows(connection, query)

    def place(self, connection: "pymysql.connections.Connection[Any] | None" = None) -> str:
        """Return the end of the binlog as ``FILE:POS``."""
        query = "SHOW MASTER STATUS" if self.kind is Kind.MARIADB else "SHOW BINARY LOG STATUS"
        ((file, position, *_),) = self.ask(query) if connection is None else _rows(connection, query)
        return f"{file}:{position}"

    def gtid(self) -> str:
        """Return what was executed, as a GTID set of the server's kind."""
        ((text,),) = self.ask("SELECT @@gtid_binlog_pos" if self.kind is Kind.MARIADB else "SELECT @@gtid_executed")
        return text.replace("\n", "")

    def files(self) -> list[str]:
        """Return the names of the binlog files."""
        return [row[0] for row in self.ask("SHOW BINARY LOGS")]

    def rotate(self) -> None:
        """Begin a new file."""
        self.run("FLUSH BINARY LOGS")

    def purge(self) -> None:
        """Begin a new file and remove all others."""
        self.rotate()
        last, give_up = self.files()[-1], time.monotonic() + PURGED_S
        # MariaDB keeps a file until InnoDB has written what the file would be needed for after a crash.
        while self.files() != [last]:
            assert time.monotonic() < give_up, f"the server keeps {self.files()}"
            self.run(f"PURGE BINARY LOGS TO '{last}'")
            time.sleep(POLL_S)

    def clear(self) -> None:
        """Drop all schemas that a test has made."""
        with closing(connect(self.url)) as connection, connection.cursor() as cursor:
            drop(cursor, read_schemas(connection, ""))

    def follow(self, other: "Primary") -> None:
        """Replicate ``other`` by GTID, from its beginning."""
        place = {
            "HOST": f"'{_address(other.database)}'",
            "PORT": make_url(other.url).port,
            "USER": f"'{USER}'",
            "PASSWORD": f"'{PASSWORD}'",
        }
        word = "MASTER" if self.kind is Kind.MARIADB else "SOURCE"
        where = ", ".join(f"{word}_{name} = {value}" for name, value in place.items())
        if self.kind is Kind.MARIADB:
            self.run(f"CHANGE MASTER TO {where}, MASTER_USE_GTID = slave_pos", "START SLAVE")
        else:
            self.run(
                f"CHANGE REPLICATION SOURCE TO {where}, SOURCE_AUTO_POSITION = 1, SOURCE_SSL = 0, GET_SOURCE_PUBLIC_KEY = 1",
                "START REPLICA",
            )

    def take_over(self, other: "Primary") -> None:
        """Execute all that ``other`` has, then follow it no more."""
        gtid, wait = other.gtid(), "MASTER_GTID_WAIT" if self.kind is Kind.MARIADB else "WAIT_FOR_EXECUTED_GTID_SET"
        ((code,),) = self.ask(f"SELECT {wait}('{gtid}', {CAUGHT_UP_S})")
        assert code == 0, f"the replica has not executed {gtid}"
        self.run(*(["STOP SLAVE", "RESET SLAVE ALL"] if self.kind is Kind.MARIADB else ["STOP REPLICA", "RESET REPLICA ALL"]))


def _rows(connection: "pymysql.connections.Connection[Any]", query: str) -> Sequence[Sequence[Any]]:
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetchall()


def _address(database: Database) -> str:
    """Return where another server finds this one: containers do not see the loopback interface of the machine."""
    server = database.server
    return server.address() if isinstance(server, ContainerServer) else "127.0.0.1"


@contextmanager
def own_primary(kind: Kind, options: str = "", *, number: int = 1) -> Iterator[Primary]:
    """Yield a new server with a binlog. Skip the test if there is none to be had."""
    with own_database(kind, options=f"{MADE_HERE.format(number=number)} {OPTIONS[kind]} {options}") as database:
        yield Primary(database, number)


class Primaries:
    """The primaries of one test process, each started when it is first asked for, and kept until the end."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._running: dict[Kind, Primary] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def of(self, kind: Kind) -> Primary:
        """Return the shared primary of a kind, without a schema."""
        if kind not in self._running:
            self._running[kind] = self._stack.enter_context(own_primary(kind))
        self._running[kind].clear()
        return self._running[kind]
