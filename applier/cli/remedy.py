"""Commands as the command line prints them for an operator: with the configuration file of the command that prints them.

Imports nothing heavy: each error message asks for it.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

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
