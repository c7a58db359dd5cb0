"""A backlog of many rows, applied by the program as a process: rows per second, CPU and peak memory of each process.

Needs servers: APPLIER_TEST_KAFKA and APPLIER_TEST_MYSQL_URL (``make servers`` prints them); without the second the sink is SQLite.

    backlog_bench.py [rows] [partitions]
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import pymysql
from sqlalchemy import make_url

from applier.demo.simulator.bulk_history import BulkHistory, bulk_log
from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.json_text import Flavour
from applier.demo.simulator.kafka_log import create_topic, produce_log
from applier.demo.simulator.producer import ProducerOptions

TICKS = os.sysconf("SC_CLK_TCK")
POLL_S = 0.25


def configuration(kafka, topic, url):
    return f'[source]\nbootstrap_servers = "{kafka}"\ntopics = ["{topic}"]\n[sink]\nurl = "{url}"\n'


def clear(url):
    """Drop what an earlier measurement left."""
    parts = make_url(url)
    with pymysql.connect(host=parts.host, port=parts.port or 3306, user=parts.username, password=parts.password or "") as connection:
        for schema in ("bulk", "applier"):
            connection.cursor().execute(f"DROP DATABASE IF EXISTS {schema}")


def children(root):
    """The process and all its descendants, with what each is."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                status = (entry / "stat").read_text()
                names[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    # One that is ending has no command any more; it would count once more, as another kind.
    return {pid: kind(pid, root, names[pid]) for pid in found if names.get(pid)}


def kind(pid, root, command):
    if pid == root:
        return "driver"
    return "jvm" if "java" in command.split(" ", 1)[0] else "worker" if "pyspark" in command else "other"


def sample(pids, cpu, peak):
    for pid, what in pids.items():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        cpu[pid, what] = (int(fields[11]) + int(fields[12])) / TICKS
        rss = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")), 0)
        peak[pid, what] = max(peak[pid, what], rss)


def measure(command):
    cpu, peak = defaultdict(float), defaultdict(int)
    began = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            sample(children(process.pid), cpu, peak)
            time.sleep(POLL_S)
        result = json.loads(process.stdout.read())
    assert process.returncode == 0
    return result, time.monotonic() - began, cpu, peak


def show(result, rows, elapsed, cpu, peak):
    print(f"{rows:,} row events applied as {result['rows']:,} rows in {result['transactions']:,} transactions")
    print(f"{elapsed:.1f} s from start to end of the program: {rows / elapsed:,.0f} row events/s")
    total = 0.0
    for what in ("driver", "jvm", "worker", "other"):
        mine = [key for key in cpu if key[1] == what]
        if mine:
            seconds = sum(cpu[key] for key in mine)
            total += seconds
            peaks = ", ".join(f"{peak[key] / 1024:.0f}" for key in sorted(mine, key=lambda key: -peak[key])[:4])
            print(f"  {what:7} {len(mine)} processes, CPU {seconds:6.1f} s ({seconds / rows * 1e6:5.1f} us/row), peak memory MiB: {peaks}")
    print(f"  in all  CPU {total:.1f} s ({total / rows * 1e6:.1f} us/row)")


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    partitions = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    kafka, url = os.environ.get("APPLIER_TEST_KAFKA"), os.environ.get("APPLIER_TEST_MYSQL_URL")
    if kafka is None:
        print("backlog: skipped: APPLIER_TEST_KAFKA names no broker (make servers)")
        return
    topic = f"backlog-{os.getpid()}"
    create_topic(kafka, topic, partitions)
    options = ProducerOptions(topic=topic, partitions=partitions, dispatcher=Dispatcher.INDEX_VALUE, flavour=Flavour.TICDC)
    history = BulkHistory(rows=rows)
    produce_log(bulk_log(history, options), kafka)
    with tempfile.TemporaryDirectory() as directory:
        if url is not None:
            clear(url)
        config = Path(directory) / "applier.toml"
        config.write_text(configuration(kafka, topic, url or f"sqlite:///{directory}/replica.db"))
        applier = str(Path(sys.executable).parent / "applier")
        result, elapsed, cpu, peak = measure([applier, "catchup", "--config", str(config), "--json"])
    show(result, rows, elapsed, cpu, peak)


if __name__ == "__main__":
    main()
