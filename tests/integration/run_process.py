"""Starts ``mysql_process`` and waits for its words."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


@contextmanager
def started(url: str, what: str, *arguments: str, failpoint: str = "") -> Iterator["subprocess.Popen[str]"]:
    """Yield the running process; it is killed at the end."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)} | ({"APPLIER_FAILPOINT": failpoint} if failpoint else {})
    command = [sys.executable, "-m", "tests.integration.mysql_process", url, what, *arguments]
    process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


def word(process: "subprocess.Popen[str]") -> str:
    """Return the next word; '' if the process has ended."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def stop(process: "subprocess.Popen[str]") -> None:
    """Freeze the process and wait until it is frozen."""
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
