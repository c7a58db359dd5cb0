"""The applier's catch-up over a backlog of binlog files, on so many tasks."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from applier.config import load_config
from applier.dump.declared import declare_loaded
from tests.bench.binlog.primary import SCHEMA, Backlog, FilePosition, ask, checksum
from tests.bench.suite.backlog import run_to_its_end
from tests.bench.suite.checkout import Checkout
from tests.bench.suite.process_cpu import of_process, server_process
from tests.rig.port import free_port

BOOKKEEPING = "bench_applier"
CONFIG = """\
name = "bench"
[source]
kind = "binlog"
url = {primary}
start = "{start}"
tables = ["{schema}.*"]
[sink]
url = {sink}
schema = "{bookkeeping}"
[spark]
master = "local[{tasks}]"
[spark.conf]
"spark.local.dir" = "{directory}/spark"
"""
END_S = 60


def write_config(directory: Path, primary: str, sink: str, first: FilePosition, tasks: int) -> Path:
    """Write the configuration of a run that begins at a place."""
    path = directory / "applier.toml"
    path.write_text(
        CONFIG.format(
            primary=json.dumps(primary),
            sink=json.dumps(sink),
            start=first,
            schema=SCHEMA,
            bookkeeping=BOOKKEEPING,
            tasks=tasks,
            directory=directory,
        ),
        encoding="utf-8",
    )
    return path


def clear(sink: str) -> None:
    """Drop what a run has left."""
    ask(sink, *(f"DROP DATABASE IF EXISTS {schema}" for schema in (SCHEMA, BOOKKEEPING)))


def measure(sink: str, primary: str, backlog: Backlog, tasks: int, checkout: Checkout) -> dict[str, Any]:
    """Catch up once into an empty server; return seconds, rows per second, and µs of CPU a row by part."""
    clear(sink)
    with TemporaryDirectory(prefix="applier-bench.") as name:
        config = write_config(Path(name), primary, sink, backlog.first, tasks)
        declare_loaded(load_config(config, environment={}), None, None)
        database, source = server_process(sink), server_process(primary)
        before = of_process(database), of_process(source)
        ended = run_to_its_end(checkout.command("catchup", "--config", config, "--json"), checkout, Path(name))
        used = ended.cpu_s() | {"database_us": of_process(database) - before[0], "primary_us": of_process(source) - before[1]}
    figures = {
        "seconds": ended.seconds,
        "rows": backlog.rows,
        "rows_per_s": backlog.rows / ended.seconds,
        **{name: cpu / backlog.rows * 1e6 for name, cpu in used.items()},
        "peak_mib": dict(ended.use.peak_mib),
        "written_rows": ended.result["rows"],
        "transactions": ended.result["transactions"],
        "checksum": checksum(sink),
    }
    clear(sink)
    return figures


@contextmanager
def following(checkout: Checkout, config: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the daemon until the end of the block."""
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
