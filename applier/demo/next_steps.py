"""The demo's last words: commands that work as they stand, from where the demo was started."""

import os
import shutil
import sys
from pathlib import Path
from typing import Final

from applier.demo.directory import DemoDirectory

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
