"""What ``applier demo --live`` adds to the demo: it lives until Ctrl-C, survives a kill of its daemon, and leaves no process."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest

TIME_LIMIT_S = 150
# With an empty history before it: two catch-ups less to wait for.
LIVES = """
import sys
from pathlib import Path
from rich.console import Console
from applier.demo.directory import DemoDirectory
from applier.demo.live.daemon import usable_port
from applier.demo.live.feed import LiveTopic
from applier.demo.live.live_report import LiveReport
from applier.demo.live.session import LiveOptions, LiveReplica, live_on
from applier.demo.report import DemoReport
from applier.demo.simulator.broker import MockBroker
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.history import Volume
from applier.demo.simulator.wire_format import WireFormat
from applier.model.position import NO_TS
from applier.sinks.registry import open_sink

files, port, report = DemoDirectory(Path(sys.argv[1])), usable_port(None), DemoReport(Console(soft_wrap=True))
files.clear()
before = Volume(steps=0, transactions=0, rows=0, ddls=0, middle_ts=NO_TS, last_ts=NO_TS)
with MockBroker() as broker, open_sink(files.write_config(broker.bootstrap_servers, port).sink_settings()) as sink:
    sink.migrate()
    history = History(3, HistoryOptions(ddl_share=0.05))
    topic = LiveTopic(broker.bootstrap_servers, WireFormat.OPEN_PROTOCOL)
    replica = LiveReplica(files=files, topic=topic, sink=sink, history=history, volume=before)
    verdicts = live_on(replica, LiveOptions(port=port, rows_per_s=100.0), LiveReport(report, files, port))
report.summary(files, verdicts, seed=3, seconds=1.0)
sys.exit(any(verdict.problems for verdict in verdicts))
"""


class LiveDemo:
    """The demo with what it has printed so far."""

    def __init__(self, directory):
        command = [sys.executable, "-u", "-c", LIVES, str(directory)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.text = ""
        self._deadline = time.monotonic() + TIME_LIMIT_S

    def read_until(self, pattern):
        while not (found := re.search(pattern, self.text)):
            assert time.monotonic() < self._deadline, self.text
            if select.select([self.process.stdout], [], [], 0.5)[0]:
                part = os.read(self.process.stdout.fileno(), 65536).decode()
                assert part, self.text
                self.text += part
        return found


@pytest.fixture
def demo(tmp_path):
    demo = LiveDemo(tmp_path / "files")
    yield demo
    # Nothing survives it: that is what the test of the guard shows.
    demo.process.kill()
    demo.process.communicate()


def processes_of(directory):
    """Return the processes whose command line names the directory: daemon, guard, JVM."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                found += [entry.name] if str(directory).encode() in (entry / "cmdline").read_bytes() else []
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
    return found


def process_of_page(port):
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", "/status")
    process = json.load(connection.getresponse())["process"]
    connection.close()
    return process


def test_a_replica_lives_is_killed_starts_again_and_ends_equal_on_ctrl_c(demo, tmp_path):
    port = int(demo.read_until(r"The page of the replica: http://127.0.0.1:(\d+)/")[1])
    assert len(processes_of(tmp_path)) > 1
    os.kill(process_of_page(port), signal.SIGKILL)
    demo.read_until("the daemon was killed by signal 9. It starts again")
    demo.process.send_signal(signal.SIGINT)
    rest = demo.read_until(r"stopping: upstream stops after ([\d,]+) row changes and ([\d,]+) DDL")
    assert int(rest[1].replace(",", "")) > 50
    assert int(rest[2]) > 10
    # After all that upstream has written, most of it while no daemon ran.
    demo.read_until(r"the replica equals upstream \(")
    demo.process.communicate(timeout=30)
    assert demo.process.returncode == 0
    assert demo.text.count("comparison with the oracle") == 2
    assert "differs" not in demo.text
    assert processes_of(tmp_path) == []
