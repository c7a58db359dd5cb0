"""The options that several commands share: their names and their help are the same everywhere."""

import os
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from applier.model.errors import ConfigError
from applier.model.position import MAX_TS, Ts, ts_at
from applier.telemetry.log import use_format

if TYPE_CHECKING:
    from applier.config import Config

DEFAULT_CONFIG: Final = Path("applier.toml")

ConfigPath: TypeAlias = Annotated[
    Path,
    typer.Option("--config", "-c", help="The configuration file (TOML). Environment variables APPLIER_… go over it.", show_default=True),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Write JSON to standard output, for programs.")]
Tso: TypeAlias = Annotated[int | None, typer.Option(metavar="TSO", min=0, max=MAX_TS)]


def read_config(path: Path) -> "Config":
    """Read the configuration of a command, and log as it says; ConfigError names file, key and remedy."""
    from applier.config import forget, load_config  # noqa: PLC0415 - imports pydantic and SQLAlchemy: --help and usage errors need not wait

    config = load_config(path)
    forget(os.environ)
    use_format(config.log.format)
    return config


def ts_of_time(text: str) -> Ts:
    """Return the TSO of an ISO 8601 time with its offset from UTC; ConfigError otherwise."""
    remedy = "Write a time with its offset from UTC, for instance 2025-06-01T12:00:00Z"
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"--until-time is not an ISO 8601 time: {text!r}", remedy=remedy) from None
    if when.tzinfo is None:
        raise ConfigError(f"--until-time does not say which zone it is in: {text!r}", remedy=remedy)
    if when.timestamp() <= 0:
        raise ConfigError(f"--until-time is before 1970: {text!r}", remedy=remedy)
    return ts_at(when)
