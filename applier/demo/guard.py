"""``python -m applier.demo.guard COMMAND…``: runs a command, and ends all that it has started when the demo ends, however that ends.

The demo holds the other end of the guard's standard input. The system closes it even if the demo is killed with SIGKILL.
May import the standard library only: it starts with each process of the demo.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Final

KILLED_BY: Final = 128
"""A shell's exit code for a process that a signal has ended is this plus the signal's number."""
POLL_S: Final = 0.02
PROCESSES: Final = Path("/proc")


def kill_session(leader: int, *, besides: int | None = None) -> None:
    """SIGKILL all members of a session (JVM, Python workers) until none is left except ``besides``."""
    while True:
        # Again and again: a process that was forking at the first look is listed at the next.
        alive = [process for process in _members(leader) if process != besides]
        if not alive:
            return
        for process in alive:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(POLL_S)


def _members(leader: int) -> Iterator[int]:
    """Yield the living members of a session. Spark's workers leave the process group, but not the session."""
    for entry in PROCESSES.iterdir() if PROCESSES.is_dir() else ():
        if entry.name.isdecimal():
            with suppress(ProcessLookupError, FileNotFoundError, IndexError):
                process = int(entry.name)
                if os.getsid(process) == leader and not _is_zombie(entry):
                    yield process


def _is_zombie(entry: Path) -> bool:
    """Return whether a process is dead but still listed: its state is after the name in brackets (proc(5))."""
    return (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] == "Z"


def guard(command: list[str]) -> int:
    """Run the command until it ends or standard input closes. Return its exit code. SIGTERM is passed on to it."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 - the demo's own command
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    Thread(target=_kill_at_end_of_input, args=(child,), daemon=True).start()
    code = child.wait()
    # A driver that was killed leaves its JVM.
    kill_session(os.getsid(0), besides=os.getpid())
    return code if code >= 0 else KILLED_BY - code


def _kill_at_end_of_input(child: subprocess.Popen[bytes]) -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    # The rest of the session follows, when the main thread has seen the end of the child.
    child.kill()


if __name__ == "__main__":
    sys.exit(guard(sys.argv[1:]))
