"""A catch-up as a process that can be watched, and killed with all its children as by a power cut."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import applier
from applier.demo.guard import KILLED_BY, kill_session
from applier.model.errors import ApplierError, Remedy

POLL_S: Final = 0.02
DEADLINE_S: Final = 300.0
"""A demo takes a minute or two. A catch-up that takes longer hangs."""
TAIL: Final = 30


def catchup_command(config: Path) -> list[str]:
    """Return the command of a catch-up whose result is one JSON object."""
    return [sys.executable, "-m", "applier", "catchup", "--config", str(config), "--json"]


class GuardedProcess:
    """A process in its own session, under a guard that ends it with the demo. Its standard error goes to ``log``."""

    def __init__(self, command: Sequence[str], log: Path, *, output: int = subprocess.DEVNULL) -> None:
        self.log = log
        guarded, held = os.pipe()
        self._held = os.fdopen(held, "wb")
        with log.open("ab") as errors:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, our own arguments
                [sys.executable, "-m", "applier.demo.guard", *command],
                # Not PIPE: communicate() would close it, and that ends the process.
                stdin=guarded,
                stdout=output,
                stderr=errors,
                text=True,
                env=os.environ | {"PYTHONPATH": _import_path()},
                # kill() finds all members of the session, and the terminal's Ctrl-C reaches only the demo.
                start_new_session=True,
            )
        os.close(guarded)

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave no process running."""
        self.close()

    def close(self) -> None:
        """Kill what still runs, and close the pipes. It may be called again."""
        self.kill()
        self._held.close()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def exit_code(self) -> int | None:
        """Return the exit code; above 128 if a signal ended the process, None while it runs."""
        code = self._process.poll()
        # Negative: the guard itself was killed.
        return code if code is None or code >= 0 else KILLED_BY - code

    def terminate(self) -> None:
        """Ask the process to end in order, with SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """SIGKILL to the driver and to all that it started (JVM, Python workers), until none is left."""
        if self._process.poll() is None:
            self._process.kill()
        kill_session(self._process.pid)
        self._process.wait()

    def last_lines(self) -> str:
        """Return the end of the log."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL:])


class WatchedProcess(GuardedProcess):
    """A process that prints one JSON object at its end."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        super().__init__(command, log, output=subprocess.PIPE)

    def wait_until(self, is_reached: Callable[[], bool]) -> bool:
        """Poll until ``is_reached`` is true; False if the process ended first. ApplierError after ``DEADLINE_S``."""
        deadline = time.monotonic() + DEADLINE_S
        while self._process.poll() is None:
            if is_reached():
                return True
            if time.monotonic() > deadline:
                raise ApplierError(
                    "the catch-up has not ended in time",
                    remedy=Remedy("demo.see-log-of-ended-process", f"See {self.log}"),
                    seconds=DEADLINE_S,
                )
            time.sleep(POLL_S)
        return False

    def result(self) -> dict[str, Any]:
        """Wait for the end and return what the process printed; ApplierError with the tail of its log if it failed."""
        try:
            text, _ = self._process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise ApplierError(
                "the catch-up has not ended in time", remedy=Remedy("demo.see-log-of-late-process", f"See {self.log}"), seconds=DEADLINE_S
            ) from None
        if self._process.returncode != 0:
            raise ApplierError(
                f"the catch-up failed:\n{self.last_lines()}",
                remedy=Remedy("demo.see-log-of-process", f"See {self.log}"),
                exit_code=self._process.returncode,
            )
        shown: dict[str, Any] = json.loads(text)
        return shown


def _import_path() -> str:
    """Return a path on which the child and its Spark workers find this very package."""
    root = str(Path(applier.__file__).parents[1])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
