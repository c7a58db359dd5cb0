"""A reader of the sink that adds up all money, again and again, each time in one consistent snapshot."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Event, Thread

import pymysql

from tests.rig.mysql_oracle import connect

ACCOUNTS = ("bank.accounts", "shop.wallets")
ABSENT = {pymysql.constants.ER.NO_SUCH_TABLE, pymysql.constants.ER.BAD_DB_ERROR}
TABLE_CHANGED = pymysql.constants.ER.TABLE_DEF_CHANGED
"""What a snapshot that spans a DDL gets: nothing is promised to it, and nothing is read."""
POLL_S = 0.005
RECONNECT_S = 0.1


class MoneyReader:
    """``totals`` are the different totals in the order in which they were seen, ``reads`` their number.

    A ``patient`` reader connects again when its server was killed.
    """

    def __init__(self, url: str, *, patient: bool = False) -> None:
        self._url, self._patient = url, patient
        self._stopped = Event()
        self._thread = Thread(target=self._run, name="money", daemon=True)
        self._error: Exception | None = None
        self.totals: list[int] = []
        self.reads = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End; raise what kept the reader from reading."""
        self._stopped.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._read_on()
            except (pymysql.Error, OSError) as error:
                if not self._patient:
                    self._error = error
                    return
                self._stopped.wait(RECONNECT_S)

    def _read_on(self) -> None:
        with closing(connect(self._url)) as connection:
            while not self._stopped.wait(POLL_S):
                self._read(connection)

    def _read(self, connection: "pymysql.connections.Connection") -> None:
        """Read the tables one after the other: only a snapshot that holds makes their sum a total."""
        total = 0
        try:
            with connection.cursor() as cursor:
                cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
                for table in ACCOUNTS:
                    cursor.execute(f"SELECT COALESCE(SUM(balance), 0) FROM {table}")
                    total += int(cursor.fetchone()[0])
        except pymysql.MySQLError as error:
            if error.args[0] not in {*ABSENT, TABLE_CHANGED}:
                raise
            connection.rollback()
            return
        connection.rollback()
        self.reads += 1
        if self.totals[-1:] != [total]:
            self.totals.append(total)


@contextmanager
def reading_money(url: str, *, patient: bool = False) -> Iterator[MoneyReader]:
    """Yield a reader that reads until the end of the block."""
    reader = MoneyReader(url, patient=patient)
    reader.start()
    try:
        yield reader
    finally:
        reader.stop()
