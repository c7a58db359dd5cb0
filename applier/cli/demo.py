"""``applier demo``: the whole pipeline on one machine, with a kill in the middle and a comparison at the end."""

import time
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from applier.demo.directory import DemoDirectory
from applier.demo.report import DemoReport
from applier.demo.run import run_demo
from applier.demo.simulator.history import History, HistoryOptions
from applier.model.errors import InvariantViolation

DEFAULT_DIRECTORY: Final = Path("demo")
MAX_TRANSACTIONS: Final = 8000
"""The embedded broker forgets what is beyond about 5 MB per partition."""
DDL_SHARE: Final = 0.012
"""Each DDL is a barrier that all streams wait for: some dozens show what they do, hundreds take minutes."""


def demo(
    *,
    directory: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Directory for the demo's files.")] = DEFAULT_DIRECTORY,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the simulated history.")] = 1,
    transactions: Annotated[int, typer.Option(metavar="N", min=100, max=MAX_TRANSACTIONS, help="Number of upstream transactions.")] = 3000,
) -> None:
    """Run the whole pipeline on this machine. No server is needed.

    A simulated upstream writes to an embedded Kafka broker. A catch-up writes to a SQLite file, is killed with SIGKILL, and starts again.
    At the end every value of the replica is compared with upstream.
    """
    started = time.monotonic()
    files = DemoDirectory(directory)
    report = DemoReport(Console(highlight=False, soft_wrap=True))
    verdicts = run_demo(files, History(seed, HistoryOptions(transactions=transactions, ddl_share=DDL_SHARE)), report)
    report.summary(files, verdicts, seed=seed, seconds=time.monotonic() - started)
    if any(verdict.problems for verdict in verdicts):
        raise typer.Exit(InvariantViolation.exit_code)
