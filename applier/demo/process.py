"""A catch-up as a process that can be watched, and killed with all its children as by a power cut."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import applier
from applier.model.errors import ApplierError

POLL_S: Final = 0.02
DEADLINE_S: Final = 300.0
"""A demo takes a minute or two. A catch-up that takes longer hangs."""
TAIL: Final = 30
PROCESSES: Final = Path("/proc")


def catchup_command(config: Path) -> list[str]:
    """Return the command of a catch-up whose result is one JSON object."""
    return [sys.executable, "-m", "applier", "catchup", "--config", str(config), "--json"]


class WatchedProcess:
    """A process in its own session that prints one JSON object at its end. Its standard error goes to ``log``."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, our own arguments
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=os.environ | {"PYTHONPATH": _import_path()},
                # kill() finds all members of the session, and the terminal's Ctrl-C reaches only the demo.
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave no process running."""
        self.kill()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def wait_until(self, is_reached: Callable[[], bool]) -> bool:
        """Poll until ``is_reached`` is true; False if the process ended first. ApplierError after ``DEADLINE_S``."""
        deadline = time.monotonic() + DEADLINE_S
        while self._process.poll() is None:
            if is_reached():
                return True
            if time.monotonic() > deadline:
                raise ApplierError("the catch-up has not ended in time", remedy=f"See {self._log}", seconds=DEADLINE_S)
            time.sleep(POLL_S)
        return False

    def result(self) -> dict[str, Any]:
        """Wait for the end and return what the process printed; ApplierError with the tail of its log if it failed."""
        try:
            text, _ = self._process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise ApplierError("the catch-up has not ended in time", remedy=f"See {self._log}", seconds=DEADLINE_S) from None
        if self._process.returncode != 0:
            tail = "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL:])
            raise ApplierError(f"the catch-up failed:\n{tail}", remedy=f"See {self._log}", exit_code=self._process.returncode)
        shown: dict[str, Any] = json.loads(text)
        return shown

    def kill(self) -> None:
        """SIGKILL to the driver first and to all that it started (JVM, Python workers), until none is left."""
        while True:
            # Again and again: a process that was forking at the first look is listed at the next.
            alive = list(_session_of(self._process.pid))
            if self._process.poll() is None:
                alive.insert(0, self._process.pid)
            if not alive:
                return
            for process in alive:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(POLL_S)


def _session_of(leader: int) -> Iterator[int]:
    """Yield the living members of a session. Spark's workers leave the process group, but not the session."""
    for entry in PROCESSES.iterdir() if PROCESSES.is_dir() else ():
        if entry.name.isdecimal():
            with suppress(ProcessLookupError, FileNotFoundError, IndexError):
                process = int(entry.name)
                if process != leader and os.getsid(process) == leader and not _is_zombie(entry):
                    yield process


def _is_zombie(entry: Path) -> bool:
    """Return whether a process is dead but still listed: its state is after the name in brackets (proc(5))."""
    return (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] == "Z"


def _import_path() -> str:
    """Return a path on which the child and its Spark workers find this very package."""
    root = str(Path(applier.__file__).parents[1])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
