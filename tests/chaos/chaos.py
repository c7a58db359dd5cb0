"""The long fault run: so many faults, drawn from a seed, first under a local master, then on a standalone Spark cluster.

    chaos.py [faults] [seed] [minutes] [mariadb|mysql]

After so many minutes, if they are given, no further fault begins, and the verdict is of those that there were. Servers of its own are
containers, or processes with APPLIER_TEST_SERVERS=process. Prints a count by kind and the verdict; ends with 1 if anything is not as it
must be.
"""

import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tests.rig.database import Database, Kind, own_database
from tests.rig.fault import Fault, Stage, user_of
from tests.rig.fault_run import FEED, Verdict, live_history, run_faults
from tests.rig.kafka import Kafka, own_kafka
from tests.rig.least_privilege import make_user
from tests.rig.live_feed import LiveFeed
from tests.rig.program import write_config
from tests.rig.protocol import chosen_form
from tests.rig.spark_cluster import cluster_for
from tests.rig.supervisor import supervised
from tests.rig.upstream import clear_sink

LOCK_S = 30
CLUSTER_SHARE = 0.25
WORKERS = 2
WEIGHTS = {
    Fault.DRIVER: 5,
    Fault.DRIVER_AT_DDL: 5,
    Fault.WORKER: 6,
    Fault.JVM: 3,
    Fault.DATABASE: 5,
    Fault.KAFKA: 5,
    Fault.CONNECTIONS: 6,
    Fault.LOCK: 1,
}
"""The lock takes longest, and a JVM that starts again next."""
ON_A_CLUSTER = {Fault.EXECUTOR: 12} | WEIGHTS


def draw(rng: random.Random, weights: dict[Fault, int], number: int) -> list[Fault]:
    """Draw faults; each kind that may come comes once at least, if there are enough."""
    kinds = [fault for fault, weight in weights.items() if weight]
    faults = [*kinds, *rng.choices(list(weights), list(weights.values()), k=max(0, number - len(kinds)))][:number]
    rng.shuffle(faults)
    return faults


def run_part(database: Database, kafka: Kafka, faults: Sequence[Fault], seed: int, within_s: float, *, on_a_cluster: bool) -> Verdict:
    """Run one replica from its beginning through the faults."""
    topic = f"live-{seed}"
    kafka.create_topic(topic, FEED.partitions, retention_ms="-1")
    clear_sink(database.url)
    url = make_user(database.url)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        config = write_config(
            directory,
            servers=kafka.bootstrap_servers,
            url=url,
            topics=[topic],
            rows=2000,
            lock_timeout_s=120,
            master="local[2]",
            protocol=chosen_form().protocol,
        )
        cluster = stack.enter_context(cluster_for(config, WORKERS)) if on_a_cluster else None
        feed = LiveFeed(kafka.bootstrap_servers, topic, live_history(seed), replace(FEED, form=chosen_form()))
        supervisor = stack.enter_context(supervised(config))
        stage = Stage(
            supervisor=supervisor,
            database=database,
            kafka=kafka,
            user=user_of(url),
            lock_s=LOCK_S,
            rng=random.Random(seed),
            cluster=cluster,
        )
        began = time.monotonic()
        return run_faults(stage, feed, faults, lambda text: print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True), within_s)


def show(title: str, verdict: Verdict) -> None:
    print(f"\n{title}: {sum(verdict.faults.values())} faults")
    for fault, count in sorted(verdict.faults.items()):
        print(f"  {count:4} {fault}")
    exits = ", ".join(f"{code}: {count}" for code, count in sorted(verdict.exits.items()))
    print(f"  {verdict.steps:,} commits, {verdict.rows:,} row changes, {verdict.ddls} DDLs")
    print(f"  {verdict.windows:,} windows, epoch {verdict.epochs}")
    print(f"  {verdict.money_reads:,} readings of the money; exit codes of the daemon {exits or 'none'}")
    for line in verdict.wrong[:20]:
        print(f"  WRONG {line}")


def main() -> int:
    number, seed, minutes = (int(sys.argv[place]) if len(sys.argv) > place else default for place, default in ((1, 40), (2, 1), (3, 0)))
    kind = Kind(sys.argv[4]) if len(sys.argv) > 4 else Kind.MARIADB
    rng = random.Random(seed)
    on_cluster = round(number * CLUSTER_SHARE)
    parts = (("local master", WEIGHTS, number - on_cluster), ("standalone cluster", ON_A_CLUSTER, on_cluster))
    total: Counter[Fault] = Counter()
    wrong = 0
    with own_database(kind) as database, own_kafka() as kafka:
        for place, (title, weights, count) in enumerate(parts):
            within_s = 60 * minutes * count / number if minutes else math.inf
            verdict = run_part(database, kafka, draw(rng, weights, count), seed * 100 + place, within_s, on_a_cluster=place == 1)
            show(title, verdict)
            total += verdict.faults
            wrong += len(verdict.wrong)
    print(f"\n{sum(total.values())} faults, seed {seed}: {'IDENTICAL' if not wrong else f'{wrong} THINGS ARE WRONG'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
