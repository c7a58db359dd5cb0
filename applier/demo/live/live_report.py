"""What ``applier demo --live`` prints."""

import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from applier.demo.comparison import TableVerdict
from applier.demo.directory import LOOPBACK, DemoDirectory
from applier.demo.live.feed import Written
from applier.demo.report import DemoReport, as_comments, ways_to_look
from applier.telemetry.wording import count, duration

CLOCKS_S: Final = 5.0
"""How much two clocks, and two looks at them, may differ."""


class LiveReport:
    """Prints where to look once the page answers, and a line of state now and then."""

    def __init__(self, report: DemoReport, files: DemoDirectory, port: int) -> None:
        self._report = report
        self._files = files
        self._url = f"http://{LOOPBACK}:{port}/"
        self._process: int | None = None
        self._begun_s = time.monotonic()

    def demo_is_equal(self, verdicts: list[TableVerdict]) -> bool:
        """Print the comparison at the end of the demo's history; return whether nothing differs."""
        # What differs is printed once, by the summary.
        return not any(verdict.problems for verdict in verdicts) and self._report.comparison(verdicts)

    def begun(self) -> None:
        """Print that the daemon starts."""
        self._begun_s = time.monotonic()
        self._report.title("applier run: the replica lives until Ctrl-C")
        self._report.line(f"  the daemon starts; its page will be {self._url}")

    def state(self, answer: Mapping[str, Any] | None, written: Written, *, waits: bool) -> None:
        """Print one line about upstream and the replica; before the first answer of a daemon nothing."""
        if answer is None:
            if self._process is not None:
                self._line("the daemon does not answer")
            return
        if self._process is None:
            self._where_to_look()
        self._process = answer["process"]
        upstream = f"upstream has written {count(written.rows, 'row change')}, {count(written.ddls, 'DDL')}"
        self._line(f"{upstream}{' and waits for the replica' if waits else ''}; {self._replica(answer)}; process {self._process}")

    def restarted(self, ended: str) -> None:
        """Print that the daemon has ended and starts again."""
        self._line(f"the daemon {ended}. It starts again, at the checkpoint of the replica", "bold red")

    def stopping(self, written: Written) -> None:
        """Print what happens after the first signal."""
        upstream = f"upstream stops after {count(written.rows, 'row change')} and {count(written.ddls, 'DDL')}"
        self._line(f"stopping: {upstream}, the replica applies what is left. Ctrl-C again ends it at once", "yellow")

    def _where_to_look(self) -> None:
        self._report.line(f"\nThe page of the replica: {self._url}", "bold green")
        self._report.line("How to look, in another terminal:")
        kill = ("kill -9 PROCESS", "the daemon dies (its process is in the lines below) and starts again")
        for line in as_comments([*ways_to_look(self._files), kill]):
            self._report.line(line)
        self._report.line(f"Its log is {self._files.daemon_log}. Ctrl-C ends everything.\n")

    def _line(self, text: str, style: str = "") -> None:
        self._report.line(f"{datetime.now().astimezone():%H:%M:%S}  {text}", style)

    def _replica(self, answer: Mapping[str, Any]) -> str:
        """Say how the replica is, in a few words."""
        if answer["paused_since"] is not None:
            return "the replica is paused"
        if answer["error"] is not None:
            return f"the replica is failing: {answer['error']}"
        # The history before lies in the past, so a checkpoint in it does not tell the lag.
        if answer["lag_s"] is None or answer["lag_s"] > time.monotonic() - self._begun_s + CLOCKS_S:
            return "the replica starts"
        return f"the replica is {duration(answer['lag_s'])} behind"
