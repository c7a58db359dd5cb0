"""Where a command writes: results to standard output, everything else to standard error."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import typer
from rich.console import Console

from applier.model.position import Ts
from applier.model.timeline import Timeline
from applier.telemetry.wording import time_text

T = TypeVar("T")


def stderr_console() -> Console:
    """Return a console on the present standard error, which a live display may have replaced."""
    return Console(stderr=True)


def print_line(text: str) -> None:
    """Write one line of a result. Lone surrogates (bytes that are not UTF-8) are escaped: a terminal cannot show them."""
    typer.echo(text.encode("utf-8", "backslashreplace").decode())


def print_json(value: Any) -> None:
    """Write one JSON object on its own line, in ASCII: text that is not UTF-8 survives as escapes."""
    typer.echo(json.dumps(value, separators=(", ", ": ")))


def print_entries(entries: Sequence[T], as_object: Callable[[T], Any] | None, as_lines: Callable[[T], Iterable[str]], if_none: str) -> None:
    """Write the entries of a list: as one JSON array if ``as_object`` is given, else as lines, or ``if_none`` without any."""
    if as_object is not None:
        print_json([as_object(entry) for entry in entries])
        return
    for entry in entries:
        for line in as_lines(entry):
            print_line(line)
    if not entries:
        print_line(if_none)


def fact(name: str, value: Any, timeline: Timeline) -> str:
    """Write a fact for people: a timestamp with its time."""
    return f"{value} ({time_text(Ts(value), timeline)})" if name.endswith("_ts") and isinstance(value, int) and value else str(value)
