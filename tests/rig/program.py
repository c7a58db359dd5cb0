"""The program as a process: started, watched, killed alone; and who it leaves behind.

Each process leads its own session. What it starts (a JVM, Python workers) leaves its process group, but not the session, so
orphans are found after its death. Output goes to files: an orphan that holds a pipe open cannot hold up the test.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from applier.config import load_config
from applier.dump.declared import declare_loaded

APPLIER = (sys.executable, "-m", "applier")
ROOT = Path(__file__).parents[2]
PROCESSES = Path("/proc")
POLL_S = 0.05
DEADLINE_S = 200
"""A run of a test takes seconds; what takes longer hangs."""
CONFIG = """\
name = "e2e"
[source]
{protocol}bootstrap_servers = "{servers}"
topics = {topics}
ddl_time_zone = "+08:00"
[sink]
url = "{url}"
max_transaction_rows = {rows}
{accept}[run]
lease_s = {lease_s}
lock_timeout_s = {lock_timeout_s}
[spark]
master = "{master}"
[spark.conf]
"spark.local.dir" = "{directory}/spark"
"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""


def write_config(
    directory: Path,
    *,
    servers: str,
    url: str,
    topics: Sequence[str] = ("changefeed",),
    rows: int = 50,
    lease_s: float = 2.0,
    lock_timeout_s: float = 0,
    master: str = "local[1]",
    accept: Mapping[str, Sequence[str]] | None = None,
    protocol: str = "",
) -> Path:
    """Write ``applier.toml`` into ``directory``: short leases, small segments, a JVM that starts quickly.

    Its end is the table of Spark's properties: tests add some.
    """
    path = directory / "applier.toml"
    path.write_text(
        CONFIG.format(
            servers=servers,
            protocol=f'protocol = "{protocol}"\n' if protocol else "",
            topics=json.dumps(list(topics)),
            url=url,
            rows=rows,
            lease_s=lease_s,
            lock_timeout_s=lock_timeout_s,
            master=master,
            directory=directory,
            accept="".join(f"accept.{json.dumps(table)} = {json.dumps(kinds)}\n" for table, kinds in (accept or {}).items()),
        ),
        encoding="utf-8",
    )
    return path


def write_binlog_config(directory: Path, *, primary: str, start: str, **more: Any) -> Path:
    """Write ``applier.toml`` of a replica of the binlog of the server at ``primary``, and record that its sink is loaded.

    ``more`` as ``write_config`` takes it.
    """
    path = write_config(directory, servers="", **more)
    kafka = 'bootstrap_servers = ""\ntopics = ["changefeed"]\nddl_time_zone = "+08:00"\n'
    text = path.read_text(encoding="utf-8")
    assert kafka in text
    path.write_text(text.replace(kafka, f'kind = "binlog"\nurl = "{primary}"\nstart = "{start}"\n'), encoding="utf-8")
    declare_loaded(load_config(path, environment={}), None, None)
    return path


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended. ``code`` is negative for a signal."""

    code: int
    stdout: str
    stderr: str

    @property
    def result(self) -> dict[str, Any]:
        """What a successful ``catchup --json`` printed."""
        assert self.code == 0, self.stderr
        return json.loads(self.stdout)


class Program:
    """A running process. At the end of the block nothing of it is left, whatever happened."""

    def __init__(self, command: Sequence[str | Path], directory: Path, **environment: str) -> None:
        number = len(list(directory.glob("*.stdout")))
        self._out, self._err = directory / f"{number}.stdout", directory / f"{number}.stderr"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=ROOT,
                env=os.environ | environment,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill_all()

    def kill_all(self) -> None:
        """SIGKILL the process and all that it started, until none is left."""
        while alive := self.alive():
            for process in alive:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            self._process.poll()
            time.sleep(POLL_S)
        self._process.wait()

    @property
    def pid(self) -> int:
        """The driver's number, and that of the session."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit code; None while the driver lives."""
        return self._process.poll()

    def said(self) -> str:
        """Return what it has written to its standard error so far."""
        return self._err.read_text(encoding="utf-8", errors="replace")

    def stop(self, within_s: float = DEADLINE_S) -> Ended:
        """SIGTERM the driver and wait for its end."""
        self._process.terminate()
        self._process.wait(within_s)
        return self.wait()

    def kill(self) -> bool:
        """SIGKILL the driver alone; False if it had ended before."""
        self._process.kill()
        return self._process.wait() == -signal.SIGKILL

    def send(self, number: int) -> None:
        """Send a signal to the driver alone."""
        self._process.send_signal(number)

    def wait(self) -> Ended:
        """Wait for the end."""
        code = self._process.wait(DEADLINE_S)
        return Ended(code, self._out.read_text(encoding="utf-8"), self._err.read_text(encoding="utf-8"))

    def reaches(self, is_reached: Callable[[], bool]) -> bool:
        """Look again and again; False if the process ended first."""
        give_up = time.monotonic() + DEADLINE_S
        while self._process.poll() is None:
            if is_reached():
                return True
            assert time.monotonic() < give_up, "the process does not get there"
            time.sleep(POLL_S)
        return False

    def alive(self) -> list[int]:
        """Return the living processes of the session, the driver's first."""
        # Process numbers start again now and then: the driver's need not be the lowest.
        found = (process for process in _processes() if _is_of(process, self.pid))
        return sorted(found, key=lambda process: (process != self.pid, process))

    def orphans(self, patience_s: float = 30) -> list[str]:
        """Return the commands of what lives on after the driver; what is about to end gets its time."""
        give_up = time.monotonic() + patience_s
        while (alive := self.alive()) and time.monotonic() < give_up:
            time.sleep(POLL_S)
        return [_command(process) for process in alive]


def _processes() -> Iterator[int]:
    return (int(entry.name) for entry in PROCESSES.iterdir() if entry.name.isdecimal())


def _is_of(process: int, session: int) -> bool:
    """Return whether a process is of the session and alive: a dead one that nobody has waited for stays in the list."""
    with suppress(ProcessLookupError, FileNotFoundError):
        state = (PROCESSES / str(process) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
        return os.getsid(process) == session and state not in "ZX"
    return False


def _command(process: int) -> str:
    with suppress(FileNotFoundError, ProcessLookupError):
        return (PROCESSES / str(process) / "cmdline").read_text(encoding="utf-8", errors="replace").replace("\0", " ")[:200]
    return ""


def catchup(config: Path, *options: str, **environment: str) -> Program:
    """Start a catch-up; use it as a context manager."""
    # On the path for the Python workers too, which do not start where the program does.
    environment.setdefault("PYTHONPATH", str(ROOT))
    return Program([*APPLIER, "catchup", "--config", config, "--json", *options], config.parent, **environment)


def daemon(config: Path, *options: str, **environment: str) -> Program:
    """Start ``applier run``; use it as a context manager."""
    environment.setdefault("PYTHONPATH", str(ROOT))
    return Program([*APPLIER, "run", "--config", config, *options], config.parent, **environment)


def run(config: Path, *options: str, **environment: str) -> Ended:
    """Run a catch-up to its end, and see that it leaves nothing behind."""
    with catchup(config, *options, **environment) as program:
        ended = program.wait()
        assert program.orphans() == []
        return ended


@contextmanager
def in_contention(config: Path, number: int) -> Iterator[list[Program]]:
    """Start several catch-ups of one replica at once."""
    programs: list[Program] = []
    try:
        for _ in range(number):
            programs.append(catchup(config))  # noqa: PERF401 - each one that was started must be ended
        yield programs
    finally:
        for program in programs:
            program.kill_all()
