"""``make bench``: measures the applier on a real Kafka and a real MariaDB, beside the floor of the same run.

    python -m tests.bench.suite A B --rows 1000000,3000000 --runs 5 --bulk-load off,auto --json build/bench/result.json
    python -m tests.bench.suite E --rate 1000 --partitions 4,64,200
    python -m tests.bench.suite A --against ../older       another checkout, in turns with this one
    python -m tests.bench.suite A --executors 1,2,4        a standalone cluster
    python -m tests.bench.suite A --writers 0,2,4,8        row consistency beside transactions
    python -m tests.bench.suite --short                    what CI runs
    python -m tests.bench.suite binlog --help              a binlog beside MariaDB's own replica

Settings of the applier come from the environment, as always (APPLIER_RUN__MEMORY=512MiB). Wall times mean something on a quiet machine
only; CPU times also beside other work.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from applier.demo.simulator.wire_format import WireFormat
from tests.bench.binlog import __main__ as binlog
from tests.bench.suite import backlog, floor, live
from tests.bench.suite.backlog import RunOptions
from tests.bench.suite.checkout import Checkout, other_checkout, this_checkout
from tests.bench.suite.last_release import compared, keep
from tests.bench.suite.report import BACKLOG, FLOOR, LIVE, Report, table
from tests.bench.suite.servers import Servers, servers
from tests.bench.suite.sink import Sink
from tests.bench.suite.topic import prepare
from tests.bench.suite.workload import WORKLOADS, Workload

LIVE_NAME = "E"
LIVE_FORMS = {LIVE_NAME: WireFormat.OPEN_PROTOCOL} | {
    f"{LIVE_NAME}-{form}": form for form in WireFormat if form is not WireFormat.OPEN_PROTOCOL
}
BINLOG = "binlog"
"""The first word of a call that measures the other source."""
CONNECTIONS = (1, 2)
SERVER_FACTS = ("version", "innodb_buffer_pool_size", "innodb_log_file_size", "innodb_flush_method", "innodb_flush_log_at_trx_commit")
SHORT = [
    "A",
    "E",
    "--rows",
    "200000",
    "--runs",
    "1",
    "--rate",
    "1000",
    "--partitions",
    "4",
    "--seconds",
    "15",
    "--warm-up",
    "10",
    "--idle",
    "0",
]


def numbers(text: str) -> list[int]:
    return [int(part) for part in text.replace("_", "").split(",")]


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""
    given = sys.argv[1:] if given is None else given
    if given[:1] == [BINLOG]:
        return binlog.arguments(given[1:])
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", help=f"{', '.join([*WORKLOADS, *LIVE_FORMS])} (default: all, of the last ones {LIVE_NAME})")
    parser.add_argument("--rows", type=numbers, default=[], help="rows of a backlog (default: each workload's own)")
    parser.add_argument("--runs", type=int, default=1, help="repetitions; the figures are their medians")
    parser.add_argument("--bulk-load", type=lambda text: text.split(","), default=[None], help="off,auto (default: the version's own)")
    parser.add_argument("--writers", type=numbers, default=[0], help="writers of row consistency, 0,2,4,8 (0: transactions)")
    parser.add_argument("--executors", type=numbers, default=[0], help="executors of a standalone cluster (default: local[*])")
    parser.add_argument("--master", default="local[*]", help="Spark's master where there is no cluster")
    parser.add_argument("--against", metavar="DIR", help="directory of another checkout, which is measured in turns with this one")
    parser.add_argument("--memory-limit", type=int, default=0, metavar="MIB", help="limit of a catch-up's process tree (needs root)")
    parser.add_argument("--no-floor", action="store_true", help="leave the floor out")
    parser.add_argument("--rate", type=numbers, default=[1000, 5000, 20000], help="rows per second of the live feed")
    parser.add_argument("--partitions", type=numbers, default=[4, 64, 200], help="partitions of the live feed")
    parser.add_argument("--seconds", type=float, default=60, help="how long a live feed is measured")
    parser.add_argument("--warm-up", type=float, default=20, help="seconds before that")
    parser.add_argument("--idle", type=float, default=20, help="seconds of resolved events alone after it")
    parser.add_argument("--json", type=Path, help="file for all figures of all runs")
    parser.add_argument("--short", action="store_true", help="two minutes, and the ratios beside those of the last release")
    parser.add_argument("--keep-as", metavar="RELEASE", help="with --short: keep the ratios as those of this release")
    chosen = parser.parse_args(given)
    if chosen.short:
        chosen = argparse.Namespace(**vars(parser.parse_args(SHORT)) | {"short": True, "json": chosen.json, "keep_as": chosen.keep_as})
    if unknown := [name for name in chosen.workloads if name not in {*WORKLOADS, *LIVE_FORMS}]:
        parser.error(f"no such workload: {', '.join(unknown)}")
    chosen.workloads = chosen.workloads or [*WORKLOADS, LIVE_NAME]
    return chosen


class Bench:
    """The cases of one call."""

    def __init__(self, chosen: argparse.Namespace, running: Servers, report: Report) -> None:
        self._chosen, self._servers, self._report = chosen, running, report
        self._checkouts = [*([other_checkout(chosen.against)] if chosen.against else []), this_checkout()]

    def run(self) -> None:
        """Measure all cases that were chosen."""
        for name in self._chosen.workloads:
            if name in LIVE_FORMS:
                self._live(name)
            else:
                for rows in self._chosen.rows or [WORKLOADS[name].rows]:
                    self._backlog(WORKLOADS[name], rows)

    def _backlog(self, workload: Workload, rows: int) -> None:
        print(f"\n## {workload.name}: {workload.title}, {rows:,} rows\n", flush=True)
        topic = prepare(self._servers.kafka, workload, rows)
        floors: dict[int, list[dict[str, Any]]] = {} if self._chosen.no_floor else {connections: [] for connections in CONNECTIONS}
        cases = list(self._cases())
        runs: list[list[dict[str, Any]]] = [[] for _ in cases]
        for number in range(self._chosen.runs):
            with Sink(self._servers.database) as sink:
                for connections, found in floors.items():
                    found.append(floor.measure(sink, workload, rows, connections))
                    show(f"floor, {connections} connections", number, found[-1])
            for place, (checkout, options) in enumerate(cases):
                figures = backlog.measure(self._servers, workload, rows, topic, checkout, options)
                figures |= _ratios(figures, floors)
                _compare_content(figures, floors)
                runs[place].append(figures)
                named = f"bulk_load {options.bulk_load or 'default'}, executors {options.executors}, row writers {options.writers}"
                show(f"{checkout.name}, {named}", number, figures)
        case = {"workload": workload.name, "rows": rows}
        shown = [self._report.add(case | {"connections": connections, "kind": "floor"}, found) for connections, found in floors.items()]
        print("\n" + table(FLOOR, shown) + "\n" if shown else "")
        results = [self._report.add(case | {"kind": "backlog"} | _case(*one), found) for one, found in zip(cases, runs, strict=True)]
        print(table(BACKLOG, results), flush=True)

    def _cases(self) -> Iterator[tuple[Checkout, RunOptions]]:
        chosen = self._chosen
        for executors, writers, bulk_load, checkout in product(chosen.executors, chosen.writers, chosen.bulk_load, self._checkouts):
            if checkout.has_bulk_load:
                found = bulk_load
            elif bulk_load == chosen.bulk_load[0]:
                found = None
            else:
                continue
            yield (
                checkout,
                RunOptions(master=chosen.master, executors=executors, bulk_load=found, memory_mib=chosen.memory_limit, writers=writers),
            )

    def _live(self, name: str) -> None:
        chosen = self._chosen
        for partitions, rate in product(chosen.partitions, chosen.rate):
            print(f"\n## {name}: {rate:,} rows/s on {partitions} partitions\n", flush=True)
            options = live.LiveOptions(
                rows_per_s=rate,
                partitions=partitions,
                seconds=chosen.seconds,
                warm_up_s=chosen.warm_up,
                idle_s=chosen.idle,
                form=LIVE_FORMS[name],
            )
            runs: list[list[dict[str, Any]]] = [[] for _ in self._checkouts]
            for _, (place, checkout) in product(range(chosen.runs), enumerate(self._checkouts)):
                run = RunOptions(master=chosen.master, bulk_load=chosen.bulk_load[0])
                runs[place].append(live.measure(self._servers, checkout, options, run))
            case = {"kind": "live", "workload": name, "rows_per_s": rate, "partitions": partitions}
            named = zip(self._checkouts, runs, strict=True)
            print(table(LIVE, [self._report.add(case | {"version": checkout.name}, found) for checkout, found in named]), flush=True)


def _case(checkout: Checkout, options: RunOptions) -> dict[str, Any]:
    return {"version": checkout.name} | asdict(options)


def _ratios(figures: dict[str, Any], floors: dict[int, list[dict[str, Any]]]) -> dict[str, float]:
    """Return the rate in terms of the floor of the same run."""
    rates = {connections: found[-1]["rows_per_s"] for connections, found in floors.items()}
    return {f"of_floor{'' if connections == 1 else f'_{connections}'}": figures["rows_per_s"] / rate for connections, rate in rates.items()}


def _compare_content(figures: dict[str, Any], floors: dict[int, list[dict[str, Any]]]) -> None:
    """SystemExit if the sink has other rows than the floor has written: a wrong result is not measured."""
    if floors and figures["checksum"] != floors[1][-1]["checksum"]:
        raise SystemExit(f"the sink's checksum is {figures['checksum']}, that of the floor {floors[1][-1]['checksum']}: other rows")


def show(title: str, number: int, figures: dict[str, Any]) -> None:
    """Print one run as soon as it has ended."""
    of_floor = f", {figures['of_floor']:.2f} of the floor" if "of_floor" in figures else ""
    cpu = f", CPU {figures['all_us']:.1f} µs/row" if "all_us" in figures else ""
    print(f"run {number + 1}: {title}: {figures['seconds']:.1f} s, {figures['rows_per_s']:,.0f} rows/s{of_floor}{cpu}", flush=True)


def main() -> None:
    chosen = arguments()
    if sys.argv[1:2] == [BINLOG]:
        binlog.measure_all(chosen)
        return
    with servers() as running, Sink(running.database) as sink:
        sink.lock()
        facts = {"server": sink.variables(*SERVER_FACTS), "commit": this_checkout().commit}
        report = Report(chosen.json, facts | {"against": chosen.against})
        try:
            Bench(chosen, running, report).run()
        finally:
            sink.drop()
    if chosen.short:
        print("\n" + compared(report.results), flush=True)
    if chosen.keep_as:
        keep(chosen.keep_as, report.results)


if __name__ == "__main__":
    main()
