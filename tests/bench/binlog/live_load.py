"""A live load followed by the applier and by MariaDB's own replica at the same time: how late each of them shows a commit."""

import os
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any, Self

import pymysql

from tests.bench.binlog import catch_up, own_replica
from tests.bench.binlog.primary import SCHEMA, Backlog, Primary
from tests.bench.suite.checkout import ROOT, Checkout
from tests.bench.suite.live import quantile
from tests.bench.suite.process_cpu import TreeUse, of_process, server_process
from tests.rig.mysql_oracle import connect

LOOK_S = 0.003
START_S = 120
SHARES = (("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))
ROWS_OF_A_TRANSACTION = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How many transactions a second, for how long, after how long a warm-up."""

    transactions_per_s: int
    seconds: float
    warm_up_s: float


@dataclass
class Watcher:
    """Looks at one server's beat: ``seen`` is each number that was new, with the time."""

    url: str
    numbers: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    _end: Event = field(default_factory=Event)

    def __enter__(self) -> Self:
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._end.set()
        self._thread.join()

    def latencies(self, commits: Sequence[tuple[int, float]]) -> list[float]:
        """Return how long after its commit each transaction was first seen; those that were not seen are left out."""
        places = ((bisect_left(self.numbers, number), at) for number, at in commits)
        return [self.times[place] - at for place, at in places if place < len(self.numbers)]

    def _watch(self) -> None:
        with closing(connect(self.url)) as connection, connection.cursor() as cursor:
            connection.autocommit(True)
            while not self._end.wait(LOOK_S):
                number = _beat(cursor)
                if number > (self.numbers[-1] if self.numbers else 0):
                    self.numbers.append(number)
                    self.times.append(time.time())


def _beat(cursor: Any) -> int:
    try:
        cursor.execute(f"SELECT n FROM {SCHEMA}.beats")
        [(number,)] = cursor.fetchall()
    except (pymysql.Error, ValueError):
        return 0  # the table is not there yet, or empty
    return int(number)


def measure(primary: Primary, sink: str, replica: str, begun: Backlog, checkout: Checkout, options: LoadOptions) -> list[dict[str, Any]]:
    """Follow the load with both; return the figures of the applier and those of MariaDB's replica."""
    catch_up.clear(sink)
    own_replica.start(replica, primary.url, begun.first, 0)
    with TemporaryDirectory(prefix="applier-bench.") as name:
        config = catch_up.write_config(Path(name), primary.url, sink, begun.first, 2)
        with (
            catch_up.following(checkout, config) as process,
            TreeUse(process.pid) as use,
            Watcher(sink) as ours,
            Watcher(replica) as theirs,
        ):
            _wait_for_rows(sink, process)
            figures = _under_load(primary, (ours, theirs), use, options)
    own_replica.stop(replica)
    return figures


def _wait_for_rows(sink: str, process: "subprocess.Popen[bytes]") -> None:
    give_up = time.monotonic() + START_S
    with closing(connect(sink)) as connection, connection.cursor() as cursor:
        while time.monotonic() < give_up:
            try:
                cursor.execute(f"SELECT COUNT(*) FROM {SCHEMA}.beats")
                if cursor.fetchall()[0][0]:
                    return
            except pymysql.Error:
                connection.rollback()
            if process.poll() is not None:
                break
            connection.rollback()
            time.sleep(0.1)
    raise SystemExit(f"the daemon did not follow the primary within {START_S} s, or ended with {process.poll()}")


def _under_load(primary: Primary, watchers: tuple[Watcher, Watcher], use: TreeUse, options: LoadOptions) -> list[dict[str, Any]]:
    servers = [server_process(watcher.url) for watcher in watchers]
    with _loading(primary.url, options) as commits:
        time.sleep(options.warm_up_s)
        since, used = time.time(), [sum(use.cpu_s().values()), *map(of_process, servers)]
        time.sleep(options.seconds)
        seconds = time.time() - since
        cores = [(now - before) / seconds for now, before in zip([sum(use.cpu_s().values()), *map(of_process, servers)], used, strict=True)]
        until = time.time()
    counted = [(number, at) for number, at in commits if since <= at <= until]
    rate = len(counted) / seconds * ROWS_OF_A_TRANSACTION
    return [
        {"rows_per_s": rate, "latency_s": _quantiles(watcher.latencies(counted)), "cores": program, "database_cores": database}
        for watcher, program, database in zip(watchers, (cores[0], 0.0), cores[1:], strict=True)
    ]


def _quantiles(latencies: list[float]) -> dict[str, float]:
    return {name: quantile(sorted(latencies), share) for name, share in SHARES} | {"seen": len(latencies)}


@contextmanager
def _loading(url: str, options: LoadOptions) -> Iterator[list[tuple[int, float]]]:
    """Run the load; the list that is yielded is complete at the end of the block."""
    seconds = options.warm_up_s + options.seconds + 2
    command = [sys.executable, "-m", "tests.bench.binlog.load", url, str(options.transactions_per_s), str(seconds)]
    commits: list[tuple[int, float]] = []
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment) as process:
        reader = Thread(target=_read_commits, args=(process.stdout, commits), daemon=True)
        reader.start()
        yield commits
        reader.join()


def _read_commits(lines: Iterable[str], commits: list[tuple[int, float]]) -> None:
    for line in lines:
        number, _, at = line.partition(" ")
        commits.append((int(number), float(at)))
