"""``make bench BENCH=binlog``: a MariaDB primary's binlog followed by the applier, beside MariaDB's own replica, in one run.

    make bench BENCH="binlog --rows 2000000 --files 8 --tasks 1,2,4 --threads 0,4"
    make bench BENCH="binlog --transactions-per-s 200,1000 --seconds 60 --runs 0"

A backlog of ``--files`` binlog files is applied into an empty MariaDB: by MariaDB's own replica with ``--threads`` parallel workers, and by
``applier catchup`` on ``--tasks`` tasks. Then a live load is followed by both at the same time. The servers are processes of this machine,
with the same settings; the checksum of each result is compared with the primary's.
"""

import argparse
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.bench.binlog import catch_up, live_load, own_replica, stages
from tests.bench.binlog.live_load import LoadOptions
from tests.bench.binlog.primary import Backlog, Primary, checksum, servers
from tests.bench.suite.checkout import this_checkout
from tests.bench.suite.report import Column, Report, figure, table
from tests.rig.process_server import CHOSEN

STAGED_ROWS = 500_000
"""The stages of a longer backlog are not measured one by one: they keep it in memory."""
FORMS = {"bulk": False, "small": True}
BACKLOG: tuple[Column, ...] = (
    ("transactions", lambda result: result["form"]),
    ("program", lambda result: result["program"]),
    ("rows", lambda result: f"{result['rows']:,}"),
    ("runs", lambda result: str(len(result["runs"]))),
    ("seconds", figure("seconds")),
    ("rows/s", figure("rows_per_s", ",.0f")),
    ("of the replica", figure("of_replica", ".2f")),
    ("CPU µs/row", figure("all_us")),
    ("Python", figure("python_us")),
    ("driver", figure("driver_us")),
    ("listen", figure("listen_us")),
    ("prepare", figure("prepare_us")),
    ("write", figure("write_us")),
    ("other workers", figure("workers_other_us")),
    ("JIT", figure("jvm_jit_us")),
    ("GC", figure("jvm_gc_us")),
    ("JVM tasks", figure("jvm_tasks_us")),
    ("JVM other", figure("jvm_other_us")),
    ("database", figure("database_us")),
    ("primary", figure("primary_us")),
    ("peak MiB", figure("peak_mib.all", ",.0f")),
)
STAGES: tuple[Column, ...] = (
    ("stage", lambda result: result["stage"]),
    ("rows", figure("rows", ",.0f")),
    ("CPU µs/row", figure("us", ".2f")),
)
LIVE: tuple[Column, ...] = (
    ("program", lambda result: result["program"]),
    ("rows/s", figure("rows_per_s", ",.0f")),
    ("median s", figure("latency_s.median", ".3f")),
    ("p90", figure("latency_s.p90", ".3f")),
    ("p99", figure("latency_s.p99", ".3f")),
    ("max", figure("latency_s.max", ".3f")),
    ("cores", figure("cores", ".2f")),
    ("database", figure("database_cores", ".2f")),
)


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.replace("_", "").split(",")]

    parser = argparse.ArgumentParser(
        prog='make bench BENCH="binlog …"', description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="changes of rows of the backlog")
    parser.add_argument("--files", type=int, default=8, help="binlog files of the backlog")
    parser.add_argument("--forms", type=lambda text: text.split(","), default=[*FORMS], help=f"transactions: {', '.join(FORMS)}")
    parser.add_argument("--tasks", type=numbers, default=[1, 2, 4], help="tasks of the applier: local[N]")
    parser.add_argument("--threads", type=numbers, default=[0, 4], help="slave_parallel_threads of MariaDB's own replica")
    parser.add_argument("--runs", type=int, default=1, help="repetitions of the backlog; the figures are their medians")
    parser.add_argument("--transactions-per-s", type=numbers, default=[200], help="of the live load, five rows each; 0: none")
    parser.add_argument("--seconds", type=float, default=60, help="how long the live load is measured")
    parser.add_argument("--warm-up", type=float, default=15, help="seconds before that")
    parser.add_argument("--json", type=Path, help="file for all figures of all runs")
    return parser.parse_args(given)


class BinlogBench:
    """The cases of one call, on a primary and two servers that follow it."""

    def __init__(self, chosen: argparse.Namespace, urls: Sequence[str]) -> None:
        self._chosen = chosen
        self._primary, self._sink, self._replica = Primary(urls[0]), urls[1], urls[2]
        self._checkout = this_checkout()
        self._report = Report(chosen.json, {"commit": self._checkout.commit})

    def run(self) -> None:
        """Measure all that was asked for."""
        for form in self._chosen.forms if self._chosen.runs else ():
            self._backlog(form)
        for rate in self._chosen.transactions_per_s:
            if rate:
                self._live(rate)

    def _backlog(self, form: str) -> None:
        backlog = self._primary.make_backlog(self._chosen.rows, self._chosen.files, small=FORMS[form])
        print(f"\n## {form} transactions: {backlog.rows:,} rows, {self._chosen.files} files, {backlog.size / 2**20:.0f} MiB\n", flush=True)
        expected = checksum(self._primary.url)
        runs: dict[str, list[dict[str, Any]]] = {}
        for _ in range(self._chosen.runs):
            for threads in self._chosen.threads:
                name = f"MariaDB's replica, {threads or 'no'} parallel workers"
                runs.setdefault(name, []).append(own_replica.measure(self._replica, self._primary.url, backlog, threads))
                self._show(name, runs[name][-1], expected)
            best = max(found[-1]["rows_per_s"] for found in runs.values())
            for tasks in self._chosen.tasks:
                name = f"applier, local[{tasks}]"
                figures = catch_up.measure(self._sink, self._primary.url, backlog, tasks, self._checkout)
                runs.setdefault(name, []).append(figures | {"of_replica": figures["rows_per_s"] / best})
                self._show(name, figures, expected)
        case = {"kind": "binlog backlog", "form": form, "rows": backlog.rows}
        print("\n" + table(BACKLOG, [self._report.add(case | {"program": name}, found) for name, found in runs.items()]) + "\n", flush=True)
        self._stages(form, backlog)

    def _show(self, name: str, figures: dict[str, Any], expected: int) -> None:
        if figures["checksum"] != expected:
            raise SystemExit(f"{name}: the checksum is {figures['checksum']}, the primary's {expected}: other rows")
        print(f"{name}: {figures['seconds']:.1f} s, {figures['rows_per_s']:,.0f} rows/s", flush=True)

    def _stages(self, form: str, backlog: Backlog) -> None:
        if backlog.rows > STAGED_ROWS:
            return
        found = [*stages.of_applier(self._primary.url, backlog), stages.of_library(self._primary.url, backlog)]
        case = {"kind": "binlog stages", "form": form}
        print(table(STAGES, [self._report.add(case | {"stage": one.pop("stage")}, [one]) for one in found]), flush=True)

    def _live(self, rate: int) -> None:
        chosen = self._chosen
        begun = self._primary.make_backlog(0, 1, small=True)
        print(f"\n## live: {rate} transactions/s\n", flush=True)
        options = LoadOptions(transactions_per_s=rate, seconds=chosen.seconds, warm_up_s=chosen.warm_up)
        both = live_load.measure(self._primary, self._sink, self._replica, begun, self._checkout, options)
        case = {"kind": "binlog live", "transactions_per_s": rate}
        named = zip(("applier", "MariaDB's replica"), both, strict=True)
        print(table(LIVE, [self._report.add(case | {"program": name}, [figures]) for name, figures in named]), flush=True)


def measure_all(chosen: argparse.Namespace) -> None:
    """Start the servers as processes of this machine, and measure. SystemExit where MariaDB is not installed."""
    if shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") is None:
        raise SystemExit("missing: mariadbd, which is the primary and both sinks (Debian: apt-get install mariadb-server)")
    os.environ |= {CHOSEN: "process", "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin"}
    with servers(2) as urls:
        BinlogBench(chosen, urls).run()


if __name__ == "__main__":
    measure_all(arguments())
