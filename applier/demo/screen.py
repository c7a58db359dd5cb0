"""What the demo says, act by act."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from applier.demo.stage import DurableState, Stage, Verdict, Volume
from applier.telemetry.wording import count, duration, moment

QUERY: Final = 'SELECT * FROM "bank.accounts" LIMIT 5'


class Screen:
    """What the demo says, act by act."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._act = 0

    def line(self, text: str, style: str = "") -> None:
        """Write a line as it is."""
        self._console.print(Text(text, style=style))

    def _title(self, text: str) -> None:
        self._act += 1
        self.line(f"{self._act}. {text}", "bold")

    def waiting(self, what: str) -> "Waiting":
        """Announce an act whose progress is shown on one line while it lasts."""
        self._title(f"applier catchup: {what}")
        return Waiting(self._console, what)

    def upstream(self, volume: Volume, seed: int) -> None:
        """Tell what happened upstream."""
        self._title(f"upstream (seed {seed})")
        self.line(f"  {count(volume.transactions, 'transaction')}, {count(volume.rows, 'row change')}, {count(volume.ddls, 'DDL')}")

    def feed(self, records: int, servers: str, replays: int) -> None:
        """Tell what Kafka holds."""
        self._title("kafka (embedded)")
        self.line(f"  {count(records, 'record')} on 4 partitions at {servers}")
        self.line(f"  partitions at different paces, a copy of each DDL on every partition, {count(replays, 'replay')}")

    def killed(self, killed: DurableState, verdicts: list[Verdict], money: int | None, volume: Volume) -> None:
        """Tell where the kill fell, and that the replica is a whole upstream moment there."""
        self.line("  killed with SIGKILL: driver, JVM and workers", "bold red")
        self.line(f"  durable: checkpoint {moment(killed.checkpoint_ts)} of {moment(volume.last_ts)}, {count(killed.window_id, 'commit')}")
        differing = [verdict for verdict in verdicts if verdict.problems]
        tables = f"{count(len(verdicts) - 1, 'table')}, {count(sum(v.rows for v in verdicts[:-1]), 'row')}"
        if differing:
            self._problems(differing)
        else:
            self.line(f"  the killed replica equals upstream at that moment: {tables}, money total {money:,}", "green")

    def resumed(self, killed: DurableState, end: DurableState, result: dict[str, Any]) -> None:
        """Tell where the second run began and what it did."""
        self.line(f"  resumed at checkpoint {moment(killed.checkpoint_ts)} as run {end.epoch} (killed: run {killed.epoch})")
        self.line(
            f"  applied {count(result['rows'], 'row')} of {count(result['transactions'], 'transaction')}, {count(result['ddls'], 'DDL')}, "
            f"in {duration(result['seconds'])}; checkpoint {moment(end.checkpoint_ts)}"
        )

    def closing(self, stage: Stage, verdicts: list[Verdict], seconds: float) -> None:
        """Show the verdicts, and say what is left and what to try."""
        self._title("comparison with the oracle, every value of every table")
        self._console.print(_table(verdicts))
        differing = [verdict for verdict in verdicts if verdict.problems]
        if differing:
            self._problems(differing)
            self.line(f"the replica differs from upstream: a defect. See {stage.log}", "bold red")
            return
        self.line(f"the replica equals upstream ({duration(seconds)})", "bold green")
        program = sys.argv[0] if Path(sys.argv[0]).name == "applier" else "python -m applier"
        self.line(f"\nThe replica is {stage.replica}. What to try next:")
        self.line(f"  sqlite3 {stage.replica} '{QUERY}'")
        self.line(f"  {program} ddl list --config {stage.config}")
        self.line(f"  {program} demo --seed {stage.history.seed + 1}")
        self.line(f"  copy {stage.config}, name your own Kafka in it, and: {program} catchup --config applier.toml")

    def _problems(self, verdicts: list[Verdict]) -> None:
        for verdict in verdicts:
            for problem in verdict.problems:
                self.line(f"  {problem}", "red")


class Waiting:
    """A line that changes while something lasts; nothing where there is no terminal."""

    def __init__(self, console: Console, what: str) -> None:
        self._status = console.status(f"  {what}")
        self._what = what

    def __enter__(self) -> Callable[[str], None]:
        self._status.start()
        return lambda text: self._status.update(f"  {self._what}: {text}")

    def __exit__(self, *_: object) -> None:
        self._status.stop()


def _table(verdicts: list[Verdict]) -> Table:
    table = Table(box=None, padding=(0, 2))
    table.add_column("table")
    table.add_column("rows", justify="right")
    table.add_column("verdict")
    for verdict in verdicts:
        equal = Text("equal", style="green") if not verdict.problems else Text("differs", style="red")
        table.add_row(Text(verdict.name), f"{verdict.rows:,}", equal)
    return table
