"""The processes of one run of the program, each with what it is, and what it has used so far; read from /proc."""

import os
import signal
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

PROC = Path("/proc")
FORKING = "pyspark.worker"
"""An argument of the process that forks Python workers, and so of theirs, whichever module it runs."""
TICKS = os.sysconf("SC_CLK_TCK")


class Role(StrEnum):
    """What a process is."""

    DRIVER = "driver"
    JVM = "jvm"
    EXECUTOR = "executor"
    """The JVM of an executor of a cluster."""
    MANAGER = "manager"
    """PySpark's process from which Python workers are forked."""
    WORKER = "worker"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Process:
    """One living process. ``state`` is a letter of proc(5): T is stopped."""

    pid: int
    parent: int
    role: Role
    state: str
    cpu_s: float
    rss_bytes: int

    @property
    def threads(self) -> int:
        return _count(self.pid, "task")

    @property
    def files(self) -> list[str]:
        """What the process holds open."""
        found = []
        with suppress(OSError):
            for entry in (PROC / str(self.pid) / "fd").iterdir():
                with suppress(OSError):
                    found.append(str(entry.readlink()))
        return found

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


def session(leader: int) -> list[Process]:
    """Return the living processes of the session that ``leader`` leads, itself first."""
    rows = {}
    for entry in PROC.iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                if int(fields[3]) == leader and fields[0] not in "ZX":
                    rows[int(entry.name)] = (fields, (entry / "cmdline").read_text(encoding="utf-8", errors="replace").replace("\0", " "))
    return [
        _process(pid, _role(pid, leader, rows), fields)
        for pid, (fields, _) in sorted(rows.items(), key=lambda item: (item[0] != leader, item[0]))
    ]


def _role(pid: int, leader: int, rows: Mapping[int, tuple[list[str], str]]) -> Role:
    command = rows[pid][1]
    if pid == leader:
        return Role.DRIVER
    if "CoarseGrainedExecutorBackend" in command:
        return Role.EXECUTOR
    if "java" in command.split(" ", 1)[0]:
        return Role.JVM
    if FORKING in command:
        parent = rows.get(int(rows[pid][0][1]))
        return Role.WORKER if parent is not None and FORKING in parent[1] else Role.MANAGER
    return Role.OTHER


def _process(pid: int, role: Role, fields: list[str]) -> Process:
    return Process(
        pid=pid,
        parent=int(fields[1]),
        role=role,
        state=fields[0],
        cpu_s=(int(fields[11]) + int(fields[12])) / TICKS,
        rss_bytes=int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
    )


def _count(pid: int, what: str) -> int:
    with suppress(OSError):
        return sum(1 for _ in (PROC / str(pid) / what).iterdir())
    return 0


def processes(leader: int, role: Role) -> list[Process]:
    """Return the living processes of a session that are of ``role``."""
    return [process for process in session(leader) if process.role is role]


def cpu_by_role(leader: int) -> Mapping[Role, float]:
    """Sum up the CPU seconds that the living processes of a session have used."""
    sums: dict[Role, float] = defaultdict(float)
    for process in session(leader):
        sums[process.role] += process.cpu_s
    return sums
