"""CPU seconds and memory of process trees, read from /proc: by class of process, and for a JVM by kind of thread.

A sampler looks several times a second, because threads and workers end while a run lasts; what one uses after the last look is lost.
"""

import os
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self

from sqlalchemy import make_url

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_S = 0.1
THREADS_EVERY, MEMORY_EVERY = 3, 10
"""In every third sample new processes and the threads of JVMs are looked at, in every tenth memory: the kernel walks page tables for it."""
LISTENING = "0A"
"""A listening socket's state in /proc/net/tcp."""


class Part(StrEnum):
    """Whose CPU it is."""

    DRIVER = "driver"
    LISTEN = "listen"
    PREPARE = "prepare"
    WRITE = "write"
    WORKERS = "workers_other"
    """Python workers before their first task, and the process that forks them."""
    JIT = "jvm_jit"
    GC = "jvm_gc"
    TASKS = "jvm_tasks"
    """Threads of executors that run tasks, and those that feed Python workers."""
    JVM = "jvm_other"
    """Its other threads, and the scripts that start it."""
    CLUSTER = "cluster"
    """Master and workers of a standalone cluster; their executors count as JVMs."""


PYTHON = (Part.DRIVER, Part.LISTEN, Part.PREPARE, Part.WRITE, Part.WORKERS)
LANES = {f"applier {lane}": lane for lane in (Part.LISTEN, Part.PREPARE, Part.WRITE)}
"""How a worker names itself at the beginning of each task; older versions do not."""
# The kernel keeps 15 characters of a thread's name.
_JIT = re.compile(r"C[12] Compiler|JVMCI|Sweeper")
_GC = re.compile(r"G1 |GC |ParGC|Parallel|Concurrent|ZWorker|ZDriver|Shenandoah|Reference Hand|Finalizer|VM Thread")
_TASKS = re.compile(r"Executor task|stdout writer|Writer Monitor|Worker Monitor|python-udf")
_DAEMONS = ("deploy.master.Master", "deploy.worker.Worker")


class TreeUse:
    """Samples the sessions of some leaders until the end of the block."""

    def __init__(self, *leaders: int) -> None:
        """``leaders``: processes that lead a session each; the first one is the driver."""
        self._leaders = leaders
        self._used: dict[tuple[int, str], tuple[Part, float]] = {}
        self._workers: dict[int, float] = {}
        self._lanes = dict.fromkeys(Part, 0.0)
        self.peak_mib: dict[str, float] = defaultdict(float)
        self._parts: dict[int, Part] = {}
        self._end, self._samples = Event(), 0
        self._thread = Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end.set()
        self._thread.join()

    def cpu_s(self) -> Mapping[Part, float]:
        """Return the CPU seconds so far."""
        sums = dict(self._lanes)
        for part, seconds in list(self._used.values()):
            sums[part] += seconds
        return sums

    def _run(self) -> None:
        while not self._end.is_set():
            self.sample()
            self._end.wait(SAMPLE_S)

    def sample(self) -> None:
        """Look once."""
        if self._samples % THREADS_EVERY == 0:
            self._look_at_all()
        for pid in list(self._workers):
            with suppress(OSError):
                self._take_worker(pid)
        if self._samples % MEMORY_EVERY == 0:
            self._look_at_memory()
        self._samples += 1

    def _look_at_all(self) -> None:
        self._parts = {}
        for pid in _of_sessions(self._leaders):
            with suppress(OSError, IndexError):
                command = (PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if not command[0]:
                    continue  # it is ending, and its command is gone: it would count once more, as something else
                part = self._parts[pid] = self._part(pid, command)
                if part is Part.WORKERS:
                    self._workers.setdefault(pid, 0.0)
                else:
                    # The script that starts a JVM becomes it.
                    self._workers.pop(pid, None)
                    self._take(pid, part)

    def _look_at_memory(self) -> None:
        memory: dict[str, float] = defaultdict(float)
        for pid, part in self._parts.items():
            with suppress(OSError):
                memory["jvm" if part is Part.JVM else str(part)] += _mib(pid)
        memory["all"] = sum(memory.values())
        for name, mib in memory.items():
            self.peak_mib[name] = max(self.peak_mib[name], mib)

    def _take_worker(self, pid: int) -> None:
        """Count what a worker has used since the last look for the task that it has now: it is used for tasks of all kinds."""
        status = (PROC / str(pid) / "stat").read_text(errors="replace")
        seconds = _seconds(status)
        self._lanes[LANES.get(_name(status), Part.WORKERS)] += seconds - self._workers[pid]
        self._workers[pid] = seconds

    def _part(self, pid: int, command: Sequence[str]) -> Part:
        if any(name in part for part in command for name in _DAEMONS):
            return Part.CLUSTER
        if pid == self._leaders[0]:
            return Part.DRIVER
        return Part.WORKERS if "python" in command[0] else Part.JVM

    def _take(self, pid: int, part: Part) -> None:
        if part is not Part.JVM:
            self._used[pid, ""] = (part, _seconds((PROC / str(pid) / "stat").read_text(errors="replace")))
            return
        for thread in (PROC / str(pid) / "task").iterdir():
            with suppress(OSError):
                status = (thread / "stat").read_text(errors="replace")
                self._used[pid, thread.name] = (_part_of_thread(_name(status)), _seconds(status))


def _part_of_thread(name: str) -> Part:
    if _JIT.match(name):
        return Part.JIT
    if _GC.match(name):
        return Part.GC
    return Part.TASKS if _TASKS.match(name) else Part.JVM


def _name(status: str) -> str:
    return status[status.index("(") + 1 : status.rindex(")")]


def _seconds(status: str) -> float:
    fields = status[status.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _of_sessions(leaders: Collection[int]) -> list[int]:
    found = []
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                status = (entry / "stat").read_text(errors="replace")
                fields = status[status.rindex(")") + 2 :].split()
                if int(fields[3]) in leaders and fields[0] not in "ZX":
                    found.append(int(entry.name))
    return found


def _mib(pid: int) -> float:
    """Return the process's share of memory (pages that forked workers have in common count once)."""
    for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def of_process(pid: int | None) -> float:
    """Return the CPU seconds of one process; not a number where it is not known."""
    with suppress(OSError):
        if pid is not None:
            return _seconds((PROC / str(pid) / "stat").read_text(errors="replace"))
    return float("nan")


def server_process(address: str) -> int | None:
    """Return the process of this machine that listens at ``host:port`` (or at that of a URL), also in a container; None if not known."""
    url = make_url(address if "://" in address else f"kafka://{address}")
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                # A proxy into a container listens as well: it is none of the servers.
                if b"docker-proxy" not in (entry / "cmdline").read_bytes() and _listens(entry, url.port or 3306):
                    return int(entry.name)
    return None


def _listens(process: Path, port: int) -> bool:
    # Its own view of the network: in a container it is another one, with the same port.
    wanted = {f"socket:[{inode}]" for inode in _listening(process, port)}
    return bool(wanted) and any(_target(entry) in wanted for entry in (process / "fd").iterdir())


def _listening(process: Path, port: int) -> set[str]:
    found = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in (process / "net" / name).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(fields[9])
    return found


def _target(entry: Path) -> str:
    with suppress(OSError):
        return str(entry.readlink())
    return ""
