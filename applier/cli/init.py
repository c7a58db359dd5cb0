"""``applier init``: ask a few questions, or take options, and write a commented configuration. It overwrites nothing."""

import os
import sys
from pathlib import Path
from shlex import quote
from typing import Annotated, Final

import typer

from applier.cli.check import WAIT_S, show
from applier.cli.default_config import DEFAULT_CONFIG
from applier.cli.init_source import SourceOptions, answer, source_draft, without_password
from applier.cli.option import ConfigPath, read_config, tso
from applier.cli.output import print_line
from applier.cli.remedy import command_line
from applier.config.draft import DEFAULT_NAME, ConfigDraft, TopicsDraft
from applier.config.load import load_config
from applier.model.errors import ConfigError
from applier.model.position import NO_TS
from applier.telemetry.wording import named_text

URL: Final = "mysql+pymysql://applier@127.0.0.1:3306/"
PRIVATE: Final = 0o600


def init(  # noqa: PLR0913 - one parameter per option of the command line
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the replica.")] = None,
    servers: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Kafka's brokers, divided by commas.")] = None,
    topics: Annotated[list[str] | None, typer.Option("--topic", metavar="T", help="Topic or pattern; repeat it for several.")] = None,
    primary: Annotated[
        str | None, typer.Option(metavar="URL", help="Instead of topics: server whose binlog is followed, without its password.")
    ] = None,
    start: Annotated[
        str, typer.Option(metavar="PLACE", help="With --primary: where the replica begins: FILE:POS, gtid:SET, now or dump:PATH.")
    ] = "",
    sink: Annotated[str | None, typer.Option(metavar="URL", help="Database to write, without its password.")] = None,
    password_file: Annotated[str, typer.Option(metavar="FILE", help="File that holds the sink's password.")] = "",
    time_zone: Annotated[str, typer.Option(metavar="ZONE", help="Zone of the TiCDC server (--tz).")] = "UTC",
    dump: Annotated[Path | None, typer.Option("--from-dump", metavar="DIR", help="Begin at this dump: its metadata say where.")] = None,
    start_ts: Annotated[int | None, typer.Option(metavar="TSO", parser=tso, help="TSO of the dump.")] = None,
    run_check: Annotated[bool | None, typer.Option("--check/--no-check", help="Run `applier check` afterwards.")] = None,
) -> None:
    """Write a commented configuration file from a few answers."""
    asks = sys.stdin.isatty()
    # Before any question: the answers would be lost.
    _refuse_existing(config)
    options = SourceOptions(servers=servers, topics=topics, primary=primary, start=start, time_zone=time_zone, dump=dump, start_ts=start_ts)
    draft = ConfigDraft(
        name=answer("Name of the replica", name, DEFAULT_NAME, asks=asks),
        source=source_draft(options, asks=asks),
        url=without_password(answer("URL of the sink, without its password", sink, URL, asks=asks, option="--sink"), "SINK"),
        password_file=password_file,
    )
    write(config, draft)
    begins = draft.source.start_ts if isinstance(draft.source, TopicsDraft) else NO_TS
    print_line(f"wrote {config}" + (f": the replica begins at {named_text(begins)}" if begins else ""))
    # Before the load, the check fails by design.
    if run_check is None and not _begins_late(draft):
        run_check = asks and typer.confirm("Run `applier check` now?", default=True)
    if run_check:
        raise typer.Exit(show(read_config(config), wait_s=WAIT_S, path=config))
    _print_steps(config, draft, dump)


def _begins_late(draft: ConfigDraft) -> bool:
    """Return whether the replica begins where upstream may hold rows already, so that a load comes first."""
    return bool(draft.source.start_ts if isinstance(draft.source, TopicsDraft) else draft.source.start)


def _print_steps(config: Path, draft: ConfigDraft, dump: Path | None) -> None:
    """Name the commands up to the first run, in their order."""
    if dump is not None:
        first = command_line("load", config, f" {quote(str(dump))}")
    elif _begins_late(draft):
        declare = command_line("load", config, " --declared")
        first = f"{command_line('load', config, ' DUMP')}; or {declare}, if the sink holds upstream's rows of that position already"
    else:
        first = f"{command_line('load', config, ' DUMP')}, unless upstream had no tables when its first change was written"
    print_line("next:")
    for number, step in enumerate((first, command_line("check", config), command_line("run", config)), start=1):
        print_line(f"  {number}. {step}")


def write(path: Path, draft: ConfigDraft) -> None:
    """Check the draft as a configuration, then write it. ConfigError: it is none, or the file exists."""
    text = draft.text()
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _create(temporary, text)
        # Before it gets its name: a wrong answer must not leave a file that the next call refuses to overwrite.
        load_config(temporary)
        _publish(temporary, path, text)
    except FileExistsError:
        _refuse_existing(path)
    except OSError as error:
        message = f"the configuration file cannot be written: {error.strerror}"
        raise ConfigError(message, remedy="Give another path with --config", file=path) from error
    except ConfigError as error:
        error.facts["file"] = path
        raise
    finally:
        temporary.unlink(missing_ok=True)


def _publish(temporary: Path, path: Path, text: str) -> None:
    try:
        # Unlike rename, link fails if the name has been taken meanwhile.
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: FAT, some network and container mounts
        _create(path, text)


def _create(path: Path, text: str) -> None:
    # Only its owner may read it: somebody will write a password into it.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w", encoding="utf-8") as file:
        file.write(text)


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise ConfigError(
            "the configuration file exists; it is not overwritten", remedy="Give another path with --config, or remove it", file=path
        )
