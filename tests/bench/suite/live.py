"""E: the daemon on a live feed. From the append of a resolved event to its commits' being visible, and the CPU beside it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Self

from applier.demo.simulator.wire_format import WireFormat
from tests.bench.suite.backlog import RunOptions, named_protocol, write_config
from tests.bench.suite.checkout import ROOT, Checkout
from tests.bench.suite.process_cpu import TreeUse, of_process, server_process
from tests.bench.suite.rows import orders
from tests.bench.suite.servers import Servers
from tests.bench.suite.sink import Sink
from tests.rig.kafka import GIVEN, Kafka
from tests.rig.port import free_port
from tests.rig.server import GivenServer

LOOK_S = 0.005
START_S, END_S = 120, 60
SETTLE_S = 5.0
GROWTH_S = 3.0
"""A run keeps up if it is not so much later at its end than at its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """``warm_up_s``: before anything is measured; ``idle_s``: how long watermarks alone are looked at then; ``form``: of the topic."""

    rows_per_s: int = 1000
    partitions: int = 4
    seconds: float = 60
    warm_up_s: float = 20
    idle_s: float = 20
    form: WireFormat = WireFormat.OPEN_PROTOCOL


class _Feed:
    """The feeder's process. ``appended``: timestamp of a resolved event -> when it was appended, and the rows so far."""

    def __init__(self, servers: Servers, topic: str, options: LiveOptions) -> None:
        arguments = (servers.kafka, topic, str(options.partitions), str(options.rows_per_s), str(options.form))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.suite.feeder", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        self.appended: dict[int, tuple[float, int]] = {}
        self._reader = Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, *exc: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._reader.join()

    def change_rate(self, rows_per_s: float) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{rows_per_s}\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = json.loads(line)
            self.appended[found["ts"]] = (found["appended_ms"] / 1000, found["rows"])


def measure(servers: Servers, checkout: Checkout, options: LiveOptions, run: RunOptions) -> dict[str, Any]:
    """Follow a feed, and return the figures."""
    topic = f"bench-E-{os.getpid()}-{time.monotonic_ns()}"
    kafka = Kafka(servers.kafka, GivenServer(GIVEN), {"log_level": "0"})
    kafka.create_topic(topic, options.partitions, message_timestamp_type="LogAppendTime")
    try:
        with TemporaryDirectory(prefix="applier-bench.") as name, Sink(servers.database) as sink:
            config = write_config(Path(name), servers, topic, checkout, run, protocol=named_protocol(options.form))
            sink.clear([orders()])
            with _Feed(servers, topic, options) as feed, _daemon(checkout, config) as process, TreeUse(process.pid) as use:
                return _follow(servers, sink, process, feed, use, options)
    finally:
        kafka.delete_topic(topic)


@contextmanager
def _daemon(checkout: Checkout, config: Path) -> Iterator["subprocess.Popen[bytes]"]:
    environment = checkout.environment | {"APPLIER_HTTP__LISTEN": f"127.0.0.1:{free_port()}"}
    with (config.parent / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            checkout.command("run", "--config", config),
            stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd=checkout.directory, env=environment, start_new_session=True,
        )  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()
            process.wait(END_S)


def _follow(
    servers: Servers, sink: Sink, process: "subprocess.Popen[bytes]", feed: _Feed, use: TreeUse, options: LiveOptions
) -> dict[str, Any]:
    start_s = _first_checkpoint_s(sink, process)
    if start_s > START_S:
        return {"keeps_up": False, "behind_s": start_s, "rows_per_s": float("nan"), "latency_s": {}, "peak_mib": dict(use.peak_mib)}
    time.sleep(options.warm_up_s)
    database, kafka = server_process(servers.database), server_process(servers.kafka)
    before, servers_before, rows_before = use.cpu_s(), (of_process(database), of_process(kafka)), _rows(feed)
    late_before, since = _lateness(feed, sink.checkpoint()), time.time()
    seen = _watch(sink, options.seconds)
    seconds, after = time.time() - since, use.cpu_s()
    rows, late_after = _rows(feed) - rows_before, _lateness(feed, sink.checkpoint())
    latencies = _latencies(feed, seen, since)
    figures: dict[str, Any] = {
        "rows_per_s": rows / seconds,
        "start_s": start_s,
        "keeps_up": late_after <= late_before + GROWTH_S,
        "behind_s": late_after,
        "windows": len(seen) - 1,
        "latency_s": {name: quantile(latencies, share) for name, share in (("median", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0))},
        "cores": _cores(before, after, seconds),
        "database_cores": (of_process(database) - servers_before[0]) / seconds,
        "kafka_cores": (of_process(kafka) - servers_before[1]) / seconds,
        "peak_mib": dict(use.peak_mib),
    }
    if options.idle_s and figures["keeps_up"]:
        feed.change_rate(0)
        time.sleep(SETTLE_S)
        before = use.cpu_s()
        time.sleep(options.idle_s)
        figures["idle_cores"] = _cores(before, use.cpu_s(), options.idle_s)
    return figures


def _first_checkpoint_s(sink: Sink, process: "subprocess.Popen[bytes]") -> float:
    """Wait for the first checkpoint, or a little longer than ``START_S``; SystemExit if the daemon ends."""
    began = time.monotonic()
    while sink.checkpoint() == 0 and time.monotonic() - began <= START_S:
        if process.poll() is not None:
            raise SystemExit(f"the daemon ended with {process.returncode} before its first checkpoint")
        time.sleep(0.1)
    return time.monotonic() - began


def _rows(feed: _Feed) -> int:
    return max((rows for _, rows in feed.appended.values()), default=0)


def _cores(before: Mapping[Any, float], after: Mapping[Any, float], seconds: float) -> dict[str, float]:
    cores = {str(part): (after[part] - before[part]) / seconds for part in after}
    return cores | {"all": sum(cores.values())}


def _lateness(feed: _Feed, checkpoint: int) -> float:
    """Return how long ago the first resolved event was appended that is not visible yet."""
    waiting = [appended for ts, (appended, _) in feed.appended.items() if ts > checkpoint]
    return max(0.0, time.time() - min(waiting)) if waiting else 0.0


def _watch(sink: Sink, seconds: float) -> list[tuple[int, float]]:
    """Return each new checkpoint with the time at which it was first seen."""
    seen: list[tuple[int, float]] = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        checkpoint = sink.checkpoint()
        if not seen or checkpoint > seen[-1][0]:
            seen.append((checkpoint, time.time()))
        time.sleep(LOOK_S)
    return seen


def _latencies(feed: _Feed, seen: Sequence[tuple[int, float]], since: float) -> list[float]:
    """Return the seconds from each append to the first look that showed it; what was never seen counts with its age at the end."""
    end, found = time.time(), []
    for ts, (appended, _) in sorted(feed.appended.items()):
        visible = next((at for checkpoint, at in seen if checkpoint >= ts), None)
        if visible is None and appended < end - GROWTH_S:
            visible = end
        if visible is not None and visible > since and ts > seen[0][0]:
            found.append(visible - appended)
    return sorted(found)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which ``share`` of the sorted ``values`` lie; not a number if there are none."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")
