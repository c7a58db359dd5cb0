"""One measured catch-up: from the start of the process to its end, with the CPU of everything that took part."""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.wire_format import WireFormat
from tests.bench.suite.checkout import Checkout
from tests.bench.suite.memory_limit import limited
from tests.bench.suite.process_cpu import PYTHON, TreeUse, of_process, server_process
from tests.bench.suite.servers import Servers
from tests.bench.suite.sink import BOOKKEEPING, NAME, Sink
from tests.bench.suite.visible import Visible
from tests.bench.suite.workload import Workload
from tests.rig.spark_cluster import environment_with, running_cluster_in

CONFIG = """\
name = "{name}"
[source]
bootstrap_servers = "{kafka}"
topics = ["{topic}"]
{source}
[sink]
url = "{url}"
schema = "{schema}"
{sink}
[spark]
master = "{master}"
[spark.conf]
"spark.local.dir" = "{directory}/spark"
{spark}
"""
EXECUTOR_MEMORY = "1g"
WORKER_MEMORY = "1500m"
FROM_THE_CHECKOUT = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": EXECUTOR_MEMORY,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """``executors``: of one core each, on a standalone cluster; 0: a local master. ``bulk_load`` None: the version's default.

    ``memory_mib``: limit of the process and all that it starts; 0: none. ``writers``: of row consistency; 0: transactions.
    """

    master: str = "local[*]"
    executors: int = 0
    bulk_load: str | None = None
    memory_mib: int = 0
    writers: int = 0

    def sink(self, checkout: Checkout) -> str:
        """Return the lines of [sink]."""
        lines = [f'bulk_load = "{self.bulk_load}"'] if self.bulk_load and checkout.has_bulk_load else []
        if self.writers:
            lines += ['consistency = "row"', f"writers = {self.writers}"]
        return "\n".join(lines)

    def source(self, dispatcher: Dispatcher) -> str:
        """Return the lines of [source] beside the address."""
        return f'dispatcher = "{dispatcher.value}"' if self.writers else ""


def write_config(
    directory: Path,
    servers: Servers,
    topic: str,
    checkout: Checkout,
    options: RunOptions,
    *,
    dispatcher: Dispatcher = Dispatcher.INDEX_VALUE,
    protocol: str = "",
) -> Path:
    """Write the configuration of a run. ``dispatcher``, ``protocol``: those of the topic."""
    path = directory / "applier.toml"
    properties = {"spark.executorEnv.PYTHONPATH": str(checkout.directory)} | FROM_THE_CHECKOUT if options.executors else {}
    path.write_text(
        CONFIG.format(
            name=NAME,
            kafka=servers.kafka,
            topic=topic,
            url=servers.database,
            schema=BOOKKEEPING,
            sink=options.sink(checkout),
            source="\n".join(filter(None, [protocol and f'protocol = "{protocol}"', options.source(dispatcher)])),
            master=options.master,
            directory=directory,
            spark="\n".join(f'"{name}" = "{value}"' for name, value in properties.items()),
        ),
        encoding="utf-8",
    )
    return path


def named_protocol(form: WireFormat) -> str:
    """Return the protocol as a configuration names it; "" for the one that older checkouts know only."""
    return "" if form is WireFormat.OPEN_PROTOCOL else form.protocol


@contextmanager
def on_cluster(config: Path, python: str, executors: int) -> Iterator[tuple[int, ...]]:
    """Run a standalone cluster of so many executors of one core, name it in ``config``, and yield its processes; 0: none."""
    if not executors:
        yield ()
        return
    environment = environment_with(Path(python))
    with running_cluster_in(config.parent / "cluster", environment, executors, memory=WORKER_MEMORY) as cluster:
        text = re.sub(r'^master = ".*"$', f'master = "{cluster.master}"', config.read_text(encoding="utf-8"), flags=re.MULTILINE)
        config.write_text(text, encoding="utf-8")
        yield tuple(program.pid for program in (cluster.master_program, *cluster.workers))


def measure(servers: Servers, workload: Workload, rows: int, topic: str, checkout: Checkout, options: RunOptions) -> dict[str, Any]:
    """Catch up once into empty tables, and return the figures. SystemExit if the program fails."""
    with TemporaryDirectory(prefix="applier-bench.") as name, Sink(servers.database) as sink, ExitStack() as processes:
        directory = Path(name)
        # An older checkout does not know the setting.
        protocol = named_protocol(workload.form)
        config = write_config(directory, servers, topic, checkout, options, dispatcher=workload.dispatcher, protocol=protocol)
        sink.clear(workload.tables)
        cluster = processes.enter_context(on_cluster(config, checkout.python, options.executors))
        within = processes.enter_context(limited(options.memory_mib))
        command = [*within, *checkout.command("catchup", "--config", config, "--json")]
        figures = _run(servers, command, checkout, config, Visible(servers.database, workload), cluster)
        seconds = figures.pop("seconds_of_run")
        figures |= {"seconds": seconds, "rows": rows, "rows_per_s": rows / seconds}
        figures |= {name: used / rows * 1e6 for name, used in figures.pop("cpu_s").items()}
        figures["checksum"] = sink.checksum(workload.tables)
        return figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run that has ended well: seconds, what its processes have used, and what it has printed."""

    seconds: float
    use: TreeUse
    result: dict[str, Any]

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU seconds of each part, of Python, and of all, as the reports name them."""
        used = {f"{part}_us": cpu for part, cpu in self.use.cpu_s().items()}
        return used | {"python_us": sum(used[f"{part}_us"] for part in PYTHON), "all_us": sum(self.use.cpu_s().values())}


def run_to_its_end(
    command: list[str],
    checkout: Checkout,
    directory: Path,
    *,
    beside: tuple[int, ...] = (),
    watched: Callable[[float], AbstractContextManager[Any]] = nullcontext,
) -> Ended:
    """Run a catch-up with ``--json`` to its end. ``beside``: leaders of other sessions that belong to it. SystemExit if it fails."""
    with (directory / "stderr").open("wb") as errors, (directory / "stdout").open("wb") as out:
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            cwd=checkout.directory,
            env=checkout.environment,
            start_new_session=True,
        )
        with TreeUse(process.pid, *beside) as use, watched(began):
            code = process.wait()
        seconds = time.monotonic() - began
    if code:
        raise SystemExit(f"the catch-up ended with {code}:\n{(directory / 'stderr').read_text(errors='replace')[-4000:]}")
    return Ended(seconds=seconds, use=use, result=json.loads((directory / "stdout").read_text(encoding="utf-8")))


def _run(
    servers: Servers, command: list[str], checkout: Checkout, config: Path, visible: Visible, cluster: tuple[int, ...]
) -> dict[str, Any]:
    database, kafka = server_process(servers.database), server_process(servers.kafka)
    before = of_process(database), of_process(kafka)
    ended = run_to_its_end(command, checkout, config.parent, beside=cluster, watched=visible.watched)
    used = ended.cpu_s() | {"database_us": of_process(database) - before[0], "kafka_us": of_process(kafka) - before[1]}
    return {
        "seconds_of_run": ended.seconds,
        "cpu_s": used,
        "first_row_s": visible.first_s,
        "last_row_s": visible.last_s,
        "peak_mib": dict(ended.use.peak_mib),
        "written_rows": ended.result["rows"],
        "transactions": ended.result["transactions"],
    }
