"""``applier grants``: all GRANTs of one of the applier's users at once, with the names of the configuration."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer
from sqlalchemy import make_url

from applier.cli.option import ConfigPath, read_config
from applier.cli.output import DEFAULT_CONFIG
from applier.config import Config
from applier.mysql.grants import grants_of
from applier.sinks.settings import SCHEMA


class Role(StrEnum):
    """What a database user of the applier is for."""

    SINK = "sink"
    BINLOG = "binlog"
    UPSTREAM = "upstream"
    VERIFY = "verify"
    STATUS = "status"


class _Text(NamedTuple):
    """The file of a role; ``user`` returns its name in the configuration, '' if it is not configured."""

    file: str
    user: Callable[[Config], str]
    is_of_sink: bool = False


def _of_source(role: Role) -> Callable[[Config], str]:
    return lambda config: config.source.users().get(role, "")


TEXTS: Final = {
    Role.SINK: _Text("grants.sql", lambda config: _name(config.sink.full_url()), is_of_sink=True),
    Role.BINLOG: _Text("grants_binlog.sql", _of_source(Role.BINLOG)),
    Role.UPSTREAM: _Text("grants_upstream.sql", _of_source(Role.UPSTREAM)),
    Role.VERIFY: _Text("grants_verify.sql", lambda _: ""),
    Role.STATUS: _Text("grants_status.sql", lambda _: "", is_of_sink=True),
}


def grants(
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="sink, binlog, upstream, verify or status.", show_default=False)],
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    schemas: Annotated[
        list[str] | None,
        typer.Option("--schema", metavar="NAME", help="A replicated schema. Repeatable. Default: the schemas of source.tables."),
    ] = None,
    user: Annotated[str, typer.Option(metavar="NAME", help="Name of the user. Default: that of the configuration.")] = "",
    host: Annotated[str, typer.Option(metavar="HOST", help="Host or network of the user.")] = "%",
) -> None:
    """Print all GRANTs of a user, for an administrator to run."""
    settings = _settings(config)
    named = user or ("" if settings is None else TEXTS[role].user(settings))
    chosen = list(schemas or ()) or ([] if settings is None else schemas_of(settings, role))
    bookkeeping = SCHEMA if settings is None else settings.sink.bookkeeping_schema
    render = settings.sink.kit.grants if settings is not None and TEXTS[role].is_of_sink else grants_of
    for line in render(TEXTS[role].file, user=named, host=host, schemas=chosen, bookkeeping=bookkeeping):
        typer.echo(line)


def _settings(path: Path) -> Config | None:
    # An administrator may ask before there is a configuration.
    return None if path == DEFAULT_CONFIG and not path.exists() else read_config(path)


def _name(url: str) -> str:
    return make_url(url).username or ""


def schemas_of(settings: Config, role: Role) -> list[str]:
    """Return the schemas that source.tables names: under the sink's names for the sink, under both for a comparison."""
    selection = settings.source.selection()
    named = [rule.partition(".")[0] for rule in settings.source.tables if not rule.startswith("!")]
    upstream = [name for name in named if name.replace("_", "").isalnum()]
    sink = [selection.schema_name(name) for name in upstream]
    return sorted({Role.SINK: set(sink), Role.VERIFY: {*upstream, *sink}}.get(role, set(upstream)))
