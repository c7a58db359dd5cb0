"""Where a command writes (results to standard output, everything else to standard error), and how it prints a command for the operator.

Imports nothing heavy: each error message asks for it.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import typer
from rich.console import Console

from applier.model.position import Timeline, Ts
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
    """Write a fact for people: a timestamp with its time, where it is known."""
    text = str(value)
    if name.endswith("_ts") and isinstance(value, int) and value:
        time = time_text(Ts(value), timeline)
        return text if time == text else f"{text} ({time})"
    return text


DEFAULT_CONFIG: Final = Path("applier.toml")


_COMMAND: Final = re.compile(r"`(applier (?!docs )(?:[a-z]+ )*[a-z]+)(?=[ `])")
"""A command that takes ``--config``: all but ``docs``."""
_OPTIONS: Final = ("--config", "-c")


def remedy_line(remedy: str, arguments: Sequence[str]) -> str:
    """Return the remedy as one line, with ``--config`` in its commands if ``arguments`` name a file."""
    config = _config_of(arguments)
    if config is not None:
        remedy = _with_option(remedy, config)
    return remedy if remedy.endswith((".", "?")) else f"{remedy}."


def remedy_for(remedy: str, config: Path) -> str:
    """Return the remedy with ``--config`` in its commands if ``config`` is not the usual file."""
    return remedy if config == DEFAULT_CONFIG else _with_option(remedy, str(config))


def command_line(words: str, config: Path, options: str = "") -> str:
    """Return the command ``applier WORDS OPTIONS``, with ``--config`` if ``config`` is not the usual file."""
    named = "" if config == DEFAULT_CONFIG else f" --config {shlex.quote(str(config))}"
    return f"applier {words}{named}{options}"


def _with_option(remedy: str, config: str) -> str:
    return _COMMAND.sub(lambda found: f"`{found[1]} --config {shlex.quote(config)}", remedy)


def _config_of(arguments: Sequence[str]) -> str | None:
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in _OPTIONS:
            return value if equals else arguments[place + 1] if place + 1 < len(arguments) else None
    return None
