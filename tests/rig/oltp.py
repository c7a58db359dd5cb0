"""A load on a primary: sessions that update, delete and insert in small transactions, as sysbench's oltp_write_only does, and move money.

A session goes on through everything that a server may answer: deadlocks, and its own death.
"""

import random
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event, Thread

import pymysql

from applier.demo.simulator import column_type as of
from applier.demo.simulator.mysql_text import create_table_text, quote_name
from applier.demo.simulator.schema import Table, column, index, primary
from applier.model.events import TableName
from tests.rig.mysql_oracle import connect
from tests.rig.primary import Primary

SCHEMA = "oltp"
LINES = Table(
    name=TableName(SCHEMA, "sbtest1"),
    columns=(
        column("id", of.integer(), null=False),
        column("k", of.integer(), null=False),
        column("c", of.char(120), null=False),
        column("pad", of.char(60), null=False),
    ),
    indexes=(primary("id"), index("k_1", "k")),
)
PURSES, SAFES = (
    Table(
        name=TableName(SCHEMA, name),
        columns=(column("id", of.integer(), null=False), column("balance", of.integer("BIGINT"), null=False)),
        indexes=(primary("id"),),
    )
    for name in ("purses", "safes")
)
TABLES = (LINES, PURSES, SAFES)
MONEY = (PURSES.name, SAFES.name)
ROWS, OWNERS, OPENING = 500, 20, 1000
TOTAL = 2 * OWNERS * OPENING
RECONNECT_S = 0.2


class OltpLoad:
    """``committed`` counts transactions. ``pause_s``: how long a session waits between two of them."""

    def __init__(self, primary: Primary, *, sessions: int = 2, pause_s: float = 0.01, seed: int = 1) -> None:
        self._primary, self._pause_s = primary, pause_s
        self._stopped = Event()
        self._threads = [
            Thread(target=self._run, args=(random.Random(f"{seed} {number}"),), name="oltp", daemon=True) for number in range(sessions)
        ]
        self.committed = 0

    def prepare(self) -> None:
        """Make the tables, and fill them in one transaction."""
        made = [create_table_text(table, str(table.name)) for table in TABLES]
        self._primary.run(f"CREATE DATABASE {quote_name(SCHEMA)} CHARACTER SET = utf8mb4 COLLATE = utf8mb4_bin", *made)
        owners = ",".join(f"({number},{OPENING})" for number in range(OWNERS))
        lines = ",".join(f"({number},{number},'c{number}','p{number}')" for number in range(ROWS))
        with closing(connect(self._primary.url)) as connection, connection.cursor() as cursor:
            for table, rows in ((PURSES, owners), (SAFES, owners), (LINES, lines)):
                cursor.execute(f"INSERT INTO {table.name} VALUES {rows}")
            connection.commit()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End after the transactions of the moment."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _run(self, rng: random.Random) -> None:
        while not self._stopped.is_set():
            try:
                with closing(connect(self._primary.url)) as connection:
                    while not self._stopped.wait(self._pause_s):
                        self._transaction(connection, rng)
            except (pymysql.Error, OSError):
                time.sleep(RECONNECT_S)

    def _transaction(self, connection: "pymysql.connections.Connection", rng: random.Random) -> None:
        statements = _transfer(rng) if rng.random() < 0.5 else _lines(rng)
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
            connection.rollback() if rng.random() < 0.05 else connection.commit()
        except pymysql.err.OperationalError as error:
            if error.args[0] not in {pymysql.constants.ER.LOCK_DEADLOCK, pymysql.constants.ER.LOCK_WAIT_TIMEOUT}:
                raise
            connection.rollback()
        else:
            self.committed += 1


def _transfer(rng: random.Random) -> list[str]:
    """Move money between two owners; sometimes one of them is closed and opened again in the same transaction."""
    (source, target), amount = rng.sample((PURSES, SAFES), 2), rng.randint(1, 50)
    giver, taker = rng.randrange(OWNERS), rng.randrange(OWNERS)
    moved = [
        f"UPDATE {source.name} SET balance = balance - {amount} WHERE id = {giver}",
        f"UPDATE {target.name} SET balance = balance + {amount} WHERE id = {taker}",
    ]
    if rng.random() < 0.2:
        moved += [
            f"SELECT balance INTO @kept FROM {source.name} WHERE id = {giver} FOR UPDATE",
            f"DELETE FROM {source.name} WHERE id = {giver}",
            f"INSERT INTO {source.name} VALUES ({giver}, @kept)",
        ]
    return moved


def _lines(rng: random.Random) -> list[str]:
    """Do what one transaction of sysbench's oltp_write_only does: the row that is deleted comes back in the same transaction."""
    one, other, third = (rng.randrange(ROWS) for _ in range(3))
    text = "-".join(f"{rng.randrange(10**11):011}" for _ in range(10))
    return [
        f"UPDATE {LINES.name} SET k = k + 1 WHERE id = {one}",
        f"UPDATE {LINES.name} SET c = '{text}' WHERE id = {other}",
        f"DELETE FROM {LINES.name} WHERE id = {third}",
        f"INSERT INTO {LINES.name} (id, k, c, pad) VALUES ({third}, {rng.randrange(ROWS)}, '{text}', '{text[:59]}')",
    ]


@contextmanager
def oltp_load(primary: Primary, *, sessions: int = 2, pause_s: float = 0.01) -> Iterator[OltpLoad]:
    """Make the tables and let the load live for the block."""
    load = OltpLoad(primary, sessions=sessions, pause_s=pause_s)
    load.prepare()
    load.start()
    try:
        yield load
    finally:
        load.stop()
