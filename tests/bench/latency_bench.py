"""Latency of the daemon on a live feed: from Kafka's append of a resolved event to its commits' being visible in MariaDB; CPU beside.

Needs servers: APPLIER_TEST_KAFKA and APPLIER_TEST_MYSQL_URL (``make servers`` prints them).

    latency_bench.py [rows per second] [seconds] [seconds between resolved events]
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from applier.demo.simulator.bulk_history import BulkHistory
from tests.rig.checkpoint import CheckpointReader
from tests.rig.database import GIVEN as GIVEN_DATABASE
from tests.rig.kafka import GIVEN as GIVEN_KAFKA
from tests.rig.kafka import Kafka
from tests.rig.live_feed import FeedOptions, LiveFeed, feeding
from tests.rig.process_tree import cpu_by_role
from tests.rig.program import Program, daemon
from tests.rig.server import GivenServer
from tests.rig.upstream import clear_sink

NAME = "latency"
POLL_S = 0.002
WARM_UP_S, QUIET_S = 20, 20
START_S = 120
ENDLESS = 10**12
CONFIG = """\
name = "{name}"
[source]
bootstrap_servers = "{kafka}"
topics = ["{topic}"]
[sink]
url = "{url}"
"""


def watch(checkpoint: CheckpointReader, seconds: float) -> list[tuple[int, float]]:
    """Return each new checkpoint_ts with the time at which it was first seen."""
    seen: list[tuple[int, float]] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ts = checkpoint.ts
        if not seen or ts > seen[-1][0]:
            seen.append((ts, time.time()))
        time.sleep(POLL_S)
    return seen


def latencies(appended: dict[int, int], seen: Sequence[tuple[int, float]]) -> list[float]:
    """Return the seconds from each resolved event's append to the first look that showed its commits."""
    found = []
    for ts, appended_ms in sorted(appended.items()):
        if seen[0][0] < ts <= seen[-1][0]:
            visible = next(at for checkpoint_ts, at in seen if checkpoint_ts >= ts)
            found.append(visible - appended_ms / 1000)
    return sorted(found)


def quantile(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))]


def measure_cpu(program: Program, seconds: float) -> dict[str, float]:
    """Return the share of one core that each kind of process uses while ``seconds`` pass."""
    before = cpu_by_role(program.pid)
    time.sleep(seconds)
    after = cpu_by_role(program.pid)
    return {role: (after[role] - before.get(role, 0.0)) / seconds for role in after}


def show_cpu(title: str, cpu: dict[str, float]) -> None:
    parts = ", ".join(f"{role} {share:.1%}" for role, share in sorted(cpu.items()) if share)
    print(f"{title}: {sum(cpu.values()):.1%} of a core ({parts})")


def measure(program: Program, feed: LiveFeed, checkpoint: CheckpointReader, seconds: float) -> None:
    began, rows, cpu = time.monotonic(), feed.rows, cpu_by_role(program.pid)
    seen = watch(checkpoint, seconds)
    elapsed, rows, after = time.monotonic() - began, feed.rows - rows, cpu_by_role(program.pid)
    found = latencies(feed.appended, seen)
    if not found:
        print(f"no window was seen; the daemon says: {program.said()[-2000:]}")
        return
    print(f"{rows / elapsed:,.0f} rows/s for {elapsed:.0f} s, {len(found)} resolved events, {len(seen)} windows")
    figures = [("median", 0.5), ("p90", 0.9), ("p99", 0.99)]
    shown = ", ".join(f"{name} {quantile(found, share):.3f} s" for name, share in figures)
    print(f"append of the resolved event to visible: {shown}, max {found[-1]:.3f} s, min {found[0]:.3f} s")
    spent = {role: after[role] - cpu.get(role, 0.0) for role in after}
    show_cpu("at work", {role: used / elapsed for role, used in spent.items()})
    print(f"CPU per row: {sum(spent.values()) / max(rows, 1) * 1e6:.0f} us")


def main() -> None:
    rows_per_s = float(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 120
    resolved_every_s = float(sys.argv[3]) if len(sys.argv) > 3 else 1.0
    servers, url = os.environ.get(GIVEN_KAFKA), os.environ.get(GIVEN_DATABASE)
    if servers is None or url is None:
        print(f"latency: skipped: needs {GIVEN_KAFKA} and {GIVEN_DATABASE} (make servers)")
        return
    topic = f"latency-{os.getpid()}"
    Kafka(servers, GivenServer(GIVEN_KAFKA)).create_topic(topic, 4, message_timestamp_type="LogAppendTime")
    clear_sink(url)
    options = FeedOptions(rows_per_s=rows_per_s, resolved_every_s=resolved_every_s)
    feed = LiveFeed(servers, topic, BulkHistory(rows=ENDLESS, per_transaction=10), options)
    with tempfile.TemporaryDirectory() as directory, CheckpointReader(url, NAME) as checkpoint:
        config = Path(directory) / "applier.toml"
        config.write_text(CONFIG.format(name=NAME, kafka=servers, topic=topic, url=url), encoding="utf-8")
        with feeding(feed), daemon(config) as program:
            if not program.reaches(lambda: checkpoint.ts > 0):
                print(f"the daemon has ended: {program.wait()}")
                return
            time.sleep(WARM_UP_S)
            measure(program, feed, checkpoint, seconds)
            feed.rows_per_s = 0
            time.sleep(resolved_every_s * 3)
            show_cpu("resolved events only", measure_cpu(program, QUIET_S))
            feed.stop()
            time.sleep(resolved_every_s * 3)
            show_cpu("silence", measure_cpu(program, QUIET_S))
            print(f"SIGTERM: exit {program.stop().code}")


if __name__ == "__main__":
    main()
