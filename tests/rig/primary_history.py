"""The simulator's history as it happens on a primary, piece by piece, with the places in the binlog between which each piece lies.

A piece is one transaction or one DDL: one group of the binlog. Other sessions may write meanwhile, so of one piece at most it is open
whether a checkpoint includes it.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from threading import Event, Thread

import pymysql

from applier.demo.simulator.alteration import is_compared
from applier.demo.simulator.compare import DatabaseFacts, differences
from applier.demo.simulator.history import History
from applier.demo.simulator.operation import UpstreamStep
from applier.demo.simulator.schema import Table
from applier.model.events import TableName
from applier.sources.binlog.position import BinlogPosition, split_file_name
from tests.rig.mysql_oracle import MysqlOracle, connect
from tests.rig.oltp import SCHEMA
from tests.rig.oracle import Oracle, open_oracle, read_facts
from tests.rig.primary import Primary


@dataclass(frozen=True, slots=True)
class Piece:
    """``step`` lies behind ``begin``, and its end is not behind ``end``: numbers of the first generation."""

    step: UpstreamStep
    begin: int
    end: int


def pieces_of(step: UpstreamStep) -> Iterator[UpstreamStep]:
    """Divide a step: its transaction, then each DDL that the primary executes."""
    if step.rows:
        yield step._replace(ddls=())
    for ddl in filter(is_compared, step.ddls):
        yield step._replace(rows=(), ddls=(ddl,))


class PrimaryHistory:
    """Executes a history, so many steps a second. ``pieces`` are those that are done, ``tables`` the definitions after them."""

    def __init__(self, primary: Primary, history: History, steps_per_s: float) -> None:
        self._primary, self._history, self._pause_s = primary, history, 1 / steps_per_s
        self._stopped = Event()
        self._errors: list[Exception] = []
        self._thread = Thread(target=self._run, name="history", daemon=True)
        self.pieces: list[Piece] = []
        self.tables: dict[TableName, Table] = {}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End after the step of the moment; raise what has ended it before."""
        self._stopped.set()
        self._thread.join()
        if self._errors:
            raise self._errors[0]

    def _run(self) -> None:
        try:
            with MysqlOracle(self._primary.url, prefix="") as upstream, closing(connect(self._primary.url)) as connection:
                for step in self._history:
                    if self._stopped.wait(self._pause_s):
                        return
                    for piece in pieces_of(step):
                        begin = self._place(connection)
                        upstream.execute(piece)
                        self.pieces.append(Piece(piece, begin, self._place(connection)))
                    self.tables = upstream.tables()
        except Exception as error:  # noqa: BLE001 - raised by stop
            self._errors.append(error)

    def _place(self, connection: "pymysql.connections.Connection") -> int:
        file, _, position = self._primary.place(connection).rpartition(":")
        return BinlogPosition(0, split_file_name(file)[1], int(position)).number


class Moments:
    """Compares a sink with the history at its checkpoints, which never go back. ``url``: of the sink."""

    def __init__(self, history: PrimaryHistory, url: str) -> None:
        self._history, self._url, self._done = history, url, 0
        self._oracle: Oracle = open_oracle("sqlite:///:memory:" if url.startswith("sqlite") else url)
        if isinstance(self._oracle, MysqlOracle):
            self._oracle.clear()

    def wrong_at(self, checkpoint: int) -> list[str]:
        """List what differs from upstream as it was at ``checkpoint``; nothing does before there is one (0)."""
        if not checkpoint:
            return []
        pieces = self._history.pieces
        while self._done < len(pieces) and pieces[self._done].end <= checkpoint:
            self._next()
        found = self._differences()
        is_open = self._done < len(pieces) and pieces[self._done].begin < checkpoint
        if found and is_open:
            self._next()
            found = self._differences()
        return found

    def close(self) -> None:
        """Leave nothing behind."""
        if isinstance(self._oracle, MysqlOracle):
            self._oracle.clear()
        self._oracle.close()

    def _next(self) -> None:
        self._oracle.execute(self._history.pieces[self._done].step)
        self._done += 1

    def _differences(self) -> list[str]:
        return differences(self._oracle.facts(), _of_history(read_facts(self._url)), self._oracle.tables())


def _of_history(facts: DatabaseFacts) -> DatabaseFacts:
    return replace(facts, tables={name: table for name, table in facts.tables.items() if name.schema != SCHEMA})


@contextmanager
def happening(primary: Primary, history: History, steps_per_s: float) -> Iterator[PrimaryHistory]:
    """Let a history happen for the block."""
    running = PrimaryHistory(primary, history, steps_per_s)
    running.start()
    try:
        yield running
    finally:
        running.stop()


@contextmanager
def moments(history: PrimaryHistory, url: str) -> Iterator[Moments]:
    """Yield the comparison of a sink with a history that happens."""
    opened = Moments(history, url)
    try:
        yield opened
    finally:
        opened.close()
