"""Where a command writes: results to standard output, everything else to standard error."""

import json
from typing import Any

import typer
from rich.console import Console


def stderr_console() -> Console:
    """Return a console on the standard error of this moment."""
    return Console(stderr=True)


def print_line(text: str) -> None:
    """Write one line of a result for people. Lone surrogates (bytes that are not UTF-8) are escaped: a terminal cannot show them."""
    typer.echo(text.encode("utf-8", "backslashreplace").decode())


def print_json(value: Any) -> None:
    """Write one JSON object on a line of its own, in ASCII: text that is not UTF-8 survives as escapes."""
    typer.echo(json.dumps(value, separators=(", ", ": ")))
