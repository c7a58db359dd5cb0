"""A server as a plain process of this machine: for tests that kill their servers, where there is no Docker engine."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rig.server import POLL_S, SETTINGS, START_TIMEOUT_S, NotReadyError, unavailable

CHOSEN = "APPLIER_TEST_SERVERS"
"""``process``: servers that a test owns are processes; else they are containers."""
STOP_TIMEOUT_S = 60
LOOPBACK = "127.0.0.1"


def wants_processes() -> bool:
    """Return whether a test's own servers run as processes."""
    return os.environ.get(CHOSEN) == "process"


class ProcessServer:
    """A server that ``script`` starts. ``ask`` is its first query; it raises NotReadyError until the server answers."""

    def __init__(self, *, script: str, port: int, environment: dict[str, str], ask: Callable[[], None]) -> None:
        self._command = ["/bin/sh", str(SETTINGS / script)]
        # Not pytest's directory: the server may run as another user, who must be able to get here.
        self._directory = Path(tempfile.mkdtemp(prefix="applier-server."))
        self._directory.chmod(0o755)
        data = str(self._directory / "data")
        self._environment = os.environ | {"RIG_DATA": data, "RIG_PORT": str(port), "RIG_BIND": LOOPBACK} | environment
        self._ask = ask
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Start for the first time, as a container is made."""
        self.start()

    def start(self) -> None:
        with (self._directory / "out").open("ab") as out:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self._environment, start_new_session=True
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                self._ask()
            except NotReadyError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"{self._command[1]} does not answer: {error}\n{self._log()}", pytrace=False)
                time.sleep(POLL_S)
            else:
                return

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def remove(self) -> None:
        if self._process is not None:
            self.kill()
        shutil.rmtree(self._directory)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(STOP_TIMEOUT_S)

    def _log(self) -> str:
        return (self._directory / "out").read_text(encoding="utf-8", errors="replace")[-4000:]


def require_program(name: str) -> None:
    """Skip where the server is not installed."""
    if shutil.which(name) is None and shutil.which(name, path="/usr/sbin") is None:
        unavailable(f"{name} is not installed, and {CHOSEN} asks for servers as processes")


def jars(name: str) -> str:
    """Return the directory of a server's jars; skip where they were not fetched."""
    directory = SETTINGS.parents[2] / "build" / name
    if not directory.is_dir():
        unavailable(f"{directory} is missing: `make servers` fetches it once")
    return str(directory)
