"""The daemon of the demo: ``applier run``. It is started again when someone kills it; an error of its own ends the demo."""

import json
import socket
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from applier.demo.directory import LOOPBACK, DemoDirectory
from applier.demo.guard import KILLED_BY
from applier.demo.process import POLL_S, GuardedProcess
from applier.model.errors import ApplierError, ConfigError, Remedy

PATIENCE_S: Final = 1.0
STOP_S: Final = 60.0
MOST_UNREADY: Final = 3
"""Kills in a row of daemons that never answered: then something of this machine kills them."""


def run_command(config: Path) -> list[str]:
    """Return the command of the daemon."""
    return [sys.executable, "-m", "applier", "run", "--config", str(config)]


def usable_port(wanted: int | None) -> int:
    """Return ``wanted``, or a free port of loopback; ConfigError if it is in use."""
    with closing(socket.socket()) as taken:
        # As the daemon does: a port whose last connections are closing is free.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((LOOPBACK, wanted or 0))
        except OSError as error:
            remedy = Remedy("demo.choose-port", "Choose another one with --port, or give none: the demo then takes a free one")
            raise ConfigError("the port of the page cannot be used", remedy=remedy, port=wanted, reason=str(error)) from error
        return int(taken.getsockname()[1])


class LiveDaemon:
    """``applier run`` with its page on ``port``. ``command``: what is run."""

    def __init__(self, files: DemoDirectory, port: int, command: list[str]) -> None:
        self._files = files
        self._port = port
        self._command = command
        self._process = GuardedProcess(command, files.daemon_log)
        self._unready = 0

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave no process running."""
        self._process.close()

    def restart_if_ended(self) -> str:
        """Start the daemon again if it was killed or stopped, and return what ended it; "" if it runs.

        ApplierError with the end of its log if it ended with an error: the next one would meet it too.
        """
        code = self._process.exit_code()
        if code is None:
            return ""
        self._unready += 1
        if 0 < code <= KILLED_BY or self._unready > MOST_UNREADY:
            raise self._failed(code)
        self._process.close()
        self._process = GuardedProcess(self._command, self._files.daemon_log)
        return "was stopped" if code == 0 else f"was killed by signal {code - KILLED_BY}"

    def ask(self) -> Mapping[str, Any] | None:
        """Return what the daemon says about itself, as ``/status`` does; None if it does not answer."""
        # Not urllib: it would use the proxies of the environment.
        connection = HTTPConnection(LOOPBACK, self._port, timeout=PATIENCE_S)
        try:
            connection.request("GET", "/status")
            response = connection.getresponse()
            found = json.loads(response.read()) if response.status == HTTPStatus.OK else None
        except (OSError, HTTPException, ValueError):
            return None
        finally:
            connection.close()
        self._unready = 0 if isinstance(found, dict) and found.get("is_ready") else self._unready
        return found if isinstance(found, dict) else None

    def stop(self) -> None:
        """End the daemon in order. ApplierError if it does not end, or ends with an error."""
        self._process.terminate()
        deadline = time.monotonic() + STOP_S
        while (code := self._process.exit_code()) is None:
            if time.monotonic() > deadline:
                raise ApplierError(
                    "the daemon does not stop", remedy=Remedy("demo.see-daemon-log", f"See {self._files.daemon_log}"), seconds=STOP_S
                )
            time.sleep(POLL_S)
        if code:
            raise self._failed(code)

    def _failed(self, code: int) -> ApplierError:
        remedy = Remedy("demo.see-log-of-stopped-daemon", f"See {self._files.daemon_log}")
        return ApplierError(f"the daemon failed:\n{self._process.last_lines()}", remedy=remedy, exit_code=code)
