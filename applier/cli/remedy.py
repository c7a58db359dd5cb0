"""The remedy as the command line prints it: its commands use the configuration file of the command that failed."""

import re
import shlex
from collections.abc import Sequence
from typing import Final

_COMMAND: Final = re.compile(r"`(applier (?:[a-z]+ )*[a-z]+)(?=[ `])")
_OPTIONS: Final = ("--config", "-c")


def remedy_line(remedy: str, arguments: Sequence[str]) -> str:
    """Return the remedy as one line, with ``--config`` in its commands if ``arguments`` name a file."""
    config = _config_of(arguments)
    if config is not None:
        remedy = _COMMAND.sub(lambda found: f"`{found[1]} --config {shlex.quote(config)}", remedy)
    return remedy if remedy.endswith((".", "?")) else f"{remedy}."


def _config_of(arguments: Sequence[str]) -> str | None:
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name in _OPTIONS:
            return value if equals else arguments[place + 1] if place + 1 < len(arguments) else None
    return None
