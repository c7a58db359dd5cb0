"""What the demo prints, in numbered sections, and its last words: commands that work as they stand, from where the demo was started."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from applier.demo.comparison import DurableState, TableVerdict
from applier.demo.directory import DemoDirectory
from applier.demo.simulator.history import Volume
from applier.demo.simulator.wire_format import WireFormat
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.telemetry.wording import count, duration, time_text

QUERY: Final = 'SELECT * FROM "bank.accounts" LIMIT 5'


def next_steps(directory: DemoDirectory, *, seed: int) -> list[tuple[str, str]]:
    """Return commands and what each of them shows."""
    program = program_name(Path(sys.argv[0]))
    looks = ways_to_look(directory, status="the checkpoint (the demo's Kafka has ended, so status cannot ask it)")
    return [
        *looks,
        (f"{program} demo --seed {seed + 1}", "another history"),
        (f"{program} init", "write applier.toml for your own Kafka and database"),
    ]


def ways_to_look(directory: DemoDirectory, *, status: str = "checkpoint, lag and streams") -> list[tuple[str, str]]:
    """Return commands that look at the replica, and what each of them shows. ``status``: what ``applier status`` shows."""
    program = program_name(Path(sys.argv[0]))
    steps = [
        (f"{program} status --config {directory.config}", status),
        (f"{program} ddl list --config {directory.config}", "every DDL that was applied"),
    ]
    client = shutil.which("sqlite3")
    return [(f"sqlite3 {directory.replica} '{QUERY}'", "rows of the replica"), *steps] if client else steps


def as_comments(steps: list[tuple[str, str]]) -> list[str]:
    """Return a line for each command, what it shows as a comment of the shell."""
    width = max(len(command) for command, _ in steps)
    return [f"  {command:<{width}}  # {meaning}" for command, meaning in steps]


def program_name(typed: Path) -> str:
    """Return how the user calls the program: by its name if a shell finds it, else by the path that was typed, or as a module."""
    if typed.name != "applier":
        # A relative path stays one: it is shorter, and the user stands where it leads somewhere.
        return f"{os.path.relpath(sys.executable) if Path(sys.executable).is_relative_to(Path.cwd()) else sys.executable} -m applier"
    found = shutil.which("applier")
    return "applier" if found is not None and Path(found).resolve() == typed.resolve() else str(typed)


class DemoReport:
    """Prints the sections in their order. Every number comes from the history, the sink or the comparison."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._section = 0

    def line(self, text: str, style: str = "") -> None:
        """Print a line as it is."""
        self._console.print(Text(text, style=style))

    def title(self, text: str) -> None:
        """Begin a section."""
        self._section += 1
        self.line(f"{self._section}. {text}", "bold")

    def progress(self, what: str) -> "ProgressLine":
        """Begin a section whose progress is one line that changes."""
        self.title(f"applier catchup: {what}")
        return ProgressLine(self._console, what)

    def upstream(self, volume: Volume, seed: int) -> None:
        """Print how much happened upstream."""
        self.title(f"upstream (seed {seed})")
        self.line(f"  {count(volume.transactions, 'transaction')}, {count(volume.rows, 'row change')}, {count(volume.ddls, 'DDL')}")

    def feed(self, records: int, servers: str, replays: int, form: WireFormat) -> None:
        """Print what Kafka holds."""
        self.title("kafka (embedded)")
        self.line(f"  {count(records, 'record')} of {form} on 4 partitions at {servers}")
        ddls = "a copy of each DDL on every partition" if form.broadcasts_ddls else "DDLs on partition 0 only"
        self.line(f"  partitions at different paces, {ddls}, {count(replays, 'replay')}")

    def killed(self, killed: DurableState, verdicts: list[TableVerdict], money: int | None, volume: Volume) -> None:
        """Print the checkpoint of the killed run, and whether the replica equals upstream there."""
        self.line("  killed with SIGKILL: driver, JVM and workers", "bold red")
        checkpoint, last = time_text(killed.checkpoint_ts, TSO_TIMELINE), time_text(volume.last_ts, TSO_TIMELINE)
        self.line(f"  durable: checkpoint {checkpoint} of {last}, {count(killed.window_id, 'commit')}")
        differing = [verdict for verdict in verdicts if verdict.problems]
        tables = f"{count(len(verdicts) - 1, 'table')}, {count(sum(v.rows for v in verdicts[:-1]), 'row')}"
        if differing:
            self._problems(differing)
        else:
            self.line(f"  the killed replica equals upstream at that checkpoint: {tables}, money total {money:,}", "green")

    def resumed(self, killed: DurableState, end: DurableState, result: dict[str, Any]) -> None:
        """Print where the second run resumed, and what it applied."""
        self.line(
            f"  resumed at checkpoint {time_text(killed.checkpoint_ts, TSO_TIMELINE)} as run {end.epoch} (killed: run {killed.epoch})"
        )
        self.line(
            f"  applied {count(result['rows'], 'row')} of {count(result['transactions'], 'transaction')}, {count(result['ddls'], 'DDL')}, "
            f"in {duration(result['seconds'])}; checkpoint {time_text(end.checkpoint_ts, TSO_TIMELINE)}"
        )

    def summary(self, directory: DemoDirectory, verdicts: list[TableVerdict], *, seed: int, seconds: float) -> None:
        """Print the verdicts, the files that remain, and what to try next."""
        if not self.comparison(verdicts):
            self.line(f"the replica differs from upstream. This is a defect. See {directory.log}", "bold red")
            return
        self.line(f"the replica equals upstream ({duration(seconds)})", "bold green")
        self.line(f"\nThe replica is {directory.replica}, its log {directory.log}. What to try next:")
        for line in as_comments(next_steps(directory, seed=seed)):
            self.line(line)

    def comparison(self, verdicts: list[TableVerdict]) -> bool:
        """Print the verdicts, and return whether nothing differs."""
        self.title("comparison with the oracle, every value of every table")
        self._console.print(_table(verdicts))
        differing = [verdict for verdict in verdicts if verdict.problems]
        self._problems(differing)
        return not differing

    def _problems(self, verdicts: list[TableVerdict]) -> None:
        for verdict in verdicts:
            for problem in verdict.problems:
                self.line(f"  {problem}", "red")


class ProgressLine:
    """A line that changes while something lasts. Without a terminal it prints nothing."""

    def __init__(self, console: Console, what: str) -> None:
        self._status = console.status(f"  {what}")
        self._what = what

    def __enter__(self) -> Callable[[str], None]:
        self._status.start()
        return lambda text: self._status.update(f"  {self._what}: {text}")

    def __exit__(self, *_: object) -> None:
        self._status.stop()


def _table(verdicts: list[TableVerdict]) -> Table:
    table = Table(box=None, padding=(0, 2))
    table.add_column("table")
    table.add_column("rows", justify="right")
    table.add_column("verdict")
    for verdict in verdicts:
        equal = Text("equal", style="green") if not verdict.problems else Text("differs", style="red")
        table.add_row(Text(verdict.name), f"{verdict.rows:,}", equal)
    return table
