"""A standalone Spark cluster of real processes on the loopback interface, and an interpreter that does not have the applier installed."""

import json
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pyspark

from tests.rig.port import free_port
from tests.rig.program import DEADLINE_S, POLL_S, ROOT, Program

SPARK = Path(pyspark.__file__).parent
SPARK_CLASS, SPARK_SUBMIT = SPARK / "bin" / "spark-class", SPARK / "bin" / "spark-submit"
DEPLOY = "org.apache.spark.deploy"
LOOPBACK = "127.0.0.1"
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
NOT_YET = (OSError, HTTPException, ValueError, KeyError)
"""What asking for the status gives while the master listens already and has not attached all of its pages."""
FROM_THE_CHECKOUT = {
    "spark.driver.host": LOOPBACK,
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": QUICK_JVM,
    "spark.executorEnv.PYTHONPATH": str(ROOT),
}
"""Properties of a run whose executors have the program from here."""
WITHOUT_APPLIER = """\
import os, sys
sys.path[:] = [path for path in sys.path if not os.path.isfile(os.path.join(path, "applier", "submit.py"))]
"""


@dataclass(frozen=True, slots=True)
class Submission:
    """What ``spark-submit`` needs: the package as a zip, the script that starts it, and an interpreter that knows only its dependencies."""

    directory: Path
    zip: Path
    script: Path
    python: Path

    def environment(self) -> dict[str, str]:
        """Return the variables for spark-submit and for workers."""
        return environment_with(self.python)

    def catchup(self, config: Path, master: str, **properties: str) -> Program:
        """Submit a catch-up to ``master``."""
        conf = {
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.driver.extraJavaOptions": QUICK_JVM,
            "spark.executor.extraJavaOptions": QUICK_JVM,
        } | {name.replace("_", "."): value for name, value in properties.items()}
        options = [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]
        command = [SPARK_SUBMIT, "--master", master, *options, "--py-files", self.zip, self.script]
        return Program([*command, "catchup", "--config", config, "--json"], config.parent, **self.environment())


def environment_with(python: Path) -> dict[str, str]:
    """Return the variables for a cluster whose Python workers are of ``python``."""
    return {
        "SPARK_HOME": str(SPARK),
        "PYSPARK_PYTHON": str(python),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
    }


def make_submission(directory: Path) -> Submission:
    """Build the zip (the wheel is one) and the interpreter."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=DEADLINE_S)
    (wheel,) = directory.glob("cdc_applier-*.whl")
    script = Path(shutil.copy(ROOT / "applier" / "submit.py", directory / "submit.py"))
    made = Submission(directory, wheel.rename(directory / "applier.zip"), script, _python_without_applier(directory))
    assert subprocess.run([made.python, "-c", "import pyspark"], check=False, cwd=directory).returncode == 0
    assert subprocess.run([made.python, "-c", "import applier.submit"], check=False, cwd=directory, capture_output=True).returncode == 1
    return made


def _python_without_applier(directory: Path) -> Path:
    """Write an interpreter with this environment's packages, from which the checkout (installed editable) is taken away."""
    site = directory / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(WITHOUT_APPLIER, encoding="utf-8")
    python = directory / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{site}:$PYTHONPATH" exec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    return python


@dataclass(frozen=True, slots=True)
class Cluster:
    """``workers`` lead sessions of their own: killing all of one takes its executors and their Python workers too."""

    master: str
    workers: tuple[Program, ...]
    master_program: Program
    _status_url: str

    def comes_to(self, is_so: Callable[[Mapping[str, int]], bool]) -> bool:
        """Look at the number of cores that executors hold, by living worker, again and again; False if it does not come to that."""
        give_up = time.monotonic() + DEADLINE_S
        while time.monotonic() < give_up:
            with suppress(*NOT_YET):
                if is_so(self._busy_cores()):
                    return True
            time.sleep(POLL_S * 10)
        return False

    def _busy_cores(self) -> dict[str, int]:
        return {worker["id"]: worker["coresused"] for worker in self._status()["workers"] if worker["state"] == "ALIVE"}

    def _status(self) -> Any:
        with urllib.request.urlopen(self._status_url, timeout=10) as answer:  # noqa: S310 - our own cluster
            return json.load(answer)


@contextmanager
def running_cluster(submission: Submission, workers: int) -> Iterator[Cluster]:
    """Yield a cluster whose workers, of one core each, have registered."""
    with running_cluster_in(submission.directory / "cluster", submission.environment(), workers) as cluster:
        yield cluster


@contextmanager
def running_cluster_in(directory: Path, environment: dict[str, str], workers: int, memory: str = "700m") -> Iterator[Cluster]:
    """Yield a cluster that works in the new ``directory``, with the variables of ``environment_with``. ``memory``: of each worker."""
    directory.mkdir()
    environment = environment | {"SPARK_LOCAL_DIRS": str(directory)}
    port, status_port = free_port(), free_port()
    with ExitStack() as processes:

        def start(role: str, *arguments: str) -> Program:
            return processes.enter_context(
                Program([SPARK_CLASS, f"{DEPLOY}.{role}", "--host", LOOPBACK, *arguments], directory, **environment)
            )

        master_program = start("master.Master", "--port", str(port), "--webui-port", str(status_port))
        master = f"spark://{LOOPBACK}:{port}"
        options = ("--cores", "1", "--memory", memory, "--webui-port", "0", "--work-dir", str(directory), master)
        started = tuple(start("worker.Worker", *options) for _ in range(workers))
        cluster = Cluster(master, started, master_program, f"http://{LOOPBACK}:{status_port}/json/")
        assert cluster.comes_to(lambda cores: len(cores) == workers), "the cluster does not come up"
        yield cluster


@contextmanager
def cluster_for(config: Path, workers: int) -> Iterator[Cluster]:
    """Yield a cluster that ``config`` names as its master from now on. It ends with the table of Spark's properties."""
    with running_cluster_in(config.parent / "cluster", environment_with(Path(sys.executable)), workers) as cluster:
        text = re.sub(r'^master = ".*"$', f'master = "{cluster.master}"', config.read_text(encoding="utf-8"), flags=re.MULTILINE)
        properties = "".join(f'"{name}" = "{value}"\n' for name, value in FROM_THE_CHECKOUT.items())
        config.write_text(text + properties, encoding="utf-8")
        yield cluster
