"""The daemon on a live feed for so many windows: a curve of its memory, threads, files and sockets; says whether it is flat.

Needs servers: APPLIER_TEST_KAFKA and APPLIER_TEST_MYSQL_URL (``make servers`` prints them), and jcmd for the JVM's heap after a collection.

    soak.py [windows] [rows per second] [seconds between resolved events]
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from applier.demo.simulator.history import History, HistoryOptions
from tests.rig.checkpoint import CheckpointReader
from tests.rig.database import GIVEN as GIVEN_DATABASE
from tests.rig.kafka import GIVEN as GIVEN_KAFKA
from tests.rig.kafka import Kafka
from tests.rig.live_feed import FeedOptions, LiveFeed, feeding
from tests.rig.process_tree import Process, Role, processes, session
from tests.rig.program import Program, daemon
from tests.rig.server import GivenServer
from tests.rig.upstream import clear_sink, differences

NAME = "e2e"
POINTS = 20
ENDLESS = 10**9
MIB = 1 << 20
FLAT_SHARE = 0.03
"""What may come on top: the noise of a process that keeps nothing."""
HISTOGRAM = re.compile(r"^\s*\d+:\s+(\d+)\s+(\d+)\s+(\S+)", re.MULTILINE)
CONFIG = """\
name = "{name}"
[source]
bootstrap_servers = "{kafka}"
ddl_time_zone = "+08:00"
topics = ["{topic}"]
[sink]
url = "{url}"
[spark]
master = "local[2]"
[spark.conf]
"spark.driver.memory" = "640m"
"""


def heap(jvm: Process) -> dict[str, float]:
    """Return what the JVM's heap holds after a collection: bytes, and RDDs."""
    if shutil.which("jcmd") is None:
        return {}
    command = ["jcmd", str(jvm.pid), "GC.class_histogram"]
    reported = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120).stdout
    counts = {name: (int(instances), int(size)) for instances, size, name in HISTOGRAM.findall(reported)}
    if not counts:
        return {}
    rdds = sum(count for name, (count, _) in counts.items() if name.endswith("RDD") and name.startswith("org.apache.spark."))
    return {"heap MiB": sum(size for _, size in counts.values()) / MIB, "RDDs": rdds}


def sample(program: Program) -> dict[str, float]:
    """Measure the processes of a run."""
    found = session(program.pid)
    row: dict[str, float] = {}
    for role in (Role.DRIVER, Role.JVM, Role.MANAGER, Role.WORKER):
        mine = [process for process in found if process.role is role]
        row[f"{role} MiB"] = sum(process.rss_bytes for process in mine) / MIB
        row[f"{role} files"] = sum(len(process.files) for process in mine)
        row[f"{role} threads"] = sum(process.threads for process in mine)
    row["sockets"] = sum(name.startswith("socket:") for process in found for name in process.files)
    row["workers"] = sum(process.role is Role.WORKER for process in found)
    return row


def growth(values: Sequence[float]) -> float:
    """Return by how much the peak of the second half lies above that of the first, as a share.

    Peaks, because what garbage collectors free in batches goes up and down: what leaks is higher at each peak.
    """
    middle = len(values) // 2
    before = max(values[:middle], default=0.0)
    return (max(values[middle:]) - before) / before if before else 0.0


def show(rows: Sequence[dict[str, float]]) -> None:
    names = [name for name in rows[0] if name != "windows" and any(row.get(name) for row in rows)]
    print("windows  " + "  ".join(names))
    for row in rows:
        print(f"{row['windows']:7.0f}  " + "  ".join(f"{row.get(name, 0):{len(name)}.0f}" for name in names))
    print("the peak of the second half against that of the first:")
    for name in names:
        share = growth([row.get(name, 0.0) for row in rows])
        print(f"  {name:16} {share:+7.2%}  {'flat' if share < FLAT_SHARE else 'GROWS'}")


def watch(program: Program, checkpoint: CheckpointReader, windows: int) -> list[dict[str, float]]:
    """Take a sample after each twentieth of the windows; ends early if the daemon does."""
    rows: list[dict[str, float]] = []
    while len(rows) < POINTS and program.poll() is None:
        _, done, _ = checkpoint.read() or (0, 0, 0)
        if done >= windows * (len(rows) + 1) / POINTS:
            after = heap(processes(program.pid, Role.JVM)[0])
            rows.append({"windows": done} | sample(program) | after)
            print(f"{done} windows", file=sys.stderr, flush=True)
        time.sleep(0.1)
    return rows


def main() -> int:
    windows = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    rows_per_s = float(sys.argv[2]) if len(sys.argv) > 2 else 150
    resolved_every_s = float(sys.argv[3]) if len(sys.argv) > 3 else 0.2
    servers, url = os.environ.get(GIVEN_KAFKA), os.environ.get(GIVEN_DATABASE)
    if servers is None or url is None:
        print(f"soak: skipped: needs {GIVEN_KAFKA} and {GIVEN_DATABASE} (make servers)")
        return 0
    topic = f"soak-{os.getpid()}"
    Kafka(servers, GivenServer(GIVEN_KAFKA)).create_topic(topic, 4, retention_ms="-1")
    clear_sink(url)
    # Without DDLs: the ledger is never pruned, so they would rightly cost a little memory each.
    history = History(1, HistoryOptions(transactions=ENDLESS, ddl_share=0.0, live_rows=100))
    options = FeedOptions(rows_per_s=rows_per_s, resolved_every_s=resolved_every_s, replay_share=0.02)
    feed = LiveFeed(servers, topic, history, options)
    with tempfile.TemporaryDirectory() as directory, CheckpointReader(url, NAME) as checkpoint:
        config = Path(directory) / "applier.toml"
        config.write_text(CONFIG.format(name=NAME, kafka=servers, topic=topic, url=url), encoding="utf-8")
        with daemon(config) as program:
            began = time.monotonic()
            with feeding(feed):
                rows = watch(program, checkpoint, windows)
                final_ts = feed.stop()
            if not rows or not checkpoint.passes(final_ts, 300):
                print(f"the daemon does not get to the end: {program.poll()} {program.said()[-3000:]}")
                return 1
            print(f"{windows} windows in {time.monotonic() - began:.0f} s, {feed.rows:,} rows; SIGTERM: exit {program.stop().code}")
    show(rows)
    wrong = differences(feed.steps, url)
    print("identical to upstream" if not wrong else "\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
