"""``applier demo``: the whole pipeline on one machine, with a kill in the middle and a comparison at the end."""

import time
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from applier.config.http import MAX_PORT
from applier.demo.directory import DemoDirectory
from applier.demo.live.daemon import usable_port
from applier.demo.live.session import LiveOptions
from applier.demo.report import DemoReport
from applier.demo.run import run_demo
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.wire_format import WireFormat
from applier.model.errors import InvariantViolation

DEFAULT_DIRECTORY: Final = Path("demo")
MAX_TRANSACTIONS: Final = 8000
"""The embedded broker keeps about 5 MB per partition: less than that in some protocols, which the demo then says."""
MAX_RATE: Final = 1000.0
"""One process generates the rows and executes them in the oracle."""
DDL_SHARE: Final = 0.012
"""Each DDL is a barrier that all streams wait for: some dozens show what they do, hundreds take minutes."""


def demo(  # noqa: PLR0913 - one parameter per option of the command line
    *,
    directory: Annotated[Path, typer.Option("--dir", metavar="DIR", help="Directory for the demo's files.")] = DEFAULT_DIRECTORY,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the simulated history.")] = 1,
    transactions: Annotated[int, typer.Option(metavar="N", min=100, max=MAX_TRANSACTIONS, help="Number of upstream transactions.")] = 3000,
    live: Annotated[bool, typer.Option("--live", help="Then keep the replica living, with its page, until Ctrl-C.")] = False,
    port: Annotated[
        int | None, typer.Option(metavar="N", min=1, max=MAX_PORT, help="Port of the page of --live. Default: a free one.")
    ] = None,
    protocol: Annotated[WireFormat, typer.Option(metavar="NAME", help=f"What the changefeed writes: {', '.join(WireFormat)}.")] = (
        WireFormat.OPEN_PROTOCOL
    ),
    rate: Annotated[float, typer.Option(metavar="N", min=0.1, max=MAX_RATE, help="Row changes per second of --live.")] = 20.0,
) -> None:
    """Run the whole pipeline on this machine. No server is needed.

    A simulated upstream writes to an embedded Kafka broker. A catch-up writes to a SQLite file, is killed with SIGKILL, and starts again.
    At the end every value of the replica is compared with upstream.

    With --live a daemon then follows upstream, which continues writing rows, and DDLs now and then. Ctrl-C ends it: the replica catches up,
    and is compared once more. A second Ctrl-C ends it at once.
    """
    started = time.monotonic()
    if port is not None and not live:
        raise typer.BadParameter("needs --live", param_hint="--port")
    options = LiveOptions(port=usable_port(port), rows_per_s=rate) if live else None
    files = DemoDirectory(directory)
    report = DemoReport(Console(highlight=False, soft_wrap=True))
    history = History(seed, HistoryOptions(transactions=transactions, ddl_share=DDL_SHARE))
    verdicts = run_demo(files, history, report, options, protocol)
    report.summary(files, verdicts, seed=seed, seconds=time.monotonic() - started)
    if any(verdict.problems for verdict in verdicts):
        raise typer.Exit(InvariantViolation.exit_code)
