"""``applier init``: ask a few questions, or take options, and write a commented configuration. It overwrites nothing."""

import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from applier.cli.check import WAIT_S, show
from applier.cli.default_config import DEFAULT_CONFIG
from applier.cli.option import ConfigPath, read_config, tso
from applier.cli.output import print_line, stderr_console
from applier.config.draft import DEFAULT_NAME, ConfigDraft
from applier.config.load import load_config
from applier.dump.moment import moment_of
from applier.model.errors import ConfigError
from applier.model.position import NO_TS, Ts
from applier.sinks.address import sink_url
from applier.telemetry.wording import time_text

SERVERS: Final = "127.0.0.1:9092"
URL: Final = "mysql+pymysql://applier@127.0.0.1:3306/"
PRIVATE: Final = 0o600


def init(  # noqa: PLR0913 - one parameter per option of the command line
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the replica.")] = None,
    servers: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Kafka's brokers, divided by commas.")] = None,
    topics: Annotated[list[str] | None, typer.Option("--topic", metavar="T", help="Topic or pattern; repeat it for several.")] = None,
    sink: Annotated[str | None, typer.Option(metavar="URL", help="Database to write, without its password.")] = None,
    password_file: Annotated[str, typer.Option(metavar="FILE", help="File that holds the sink's password.")] = "",
    time_zone: Annotated[str, typer.Option(metavar="ZONE", help="Zone of the TiCDC server (--tz).")] = "UTC",
    dump: Annotated[Path | None, typer.Option("--from-dump", metavar="DIR", help="Read start_ts from this dump's metadata.")] = None,
    start_ts: Annotated[int | None, typer.Option(metavar="TSO", parser=tso, help="TSO of the dump.")] = None,
    run_check: Annotated[bool | None, typer.Option("--check/--no-check", help="Run `applier check` afterwards.")] = None,
) -> None:
    """Write a commented configuration file from a few answers."""
    asks = sys.stdin.isatty()
    # Before any question: the answers would be lost.
    _refuse_existing(config)
    begins, told_by = _start(dump, start_ts)
    draft = ConfigDraft(
        name=_answer("Name of the replica", name, DEFAULT_NAME, asks=asks),
        servers=_answer("Kafka's brokers", servers, SERVERS, asks=asks, option="--servers"),
        topics=tuple(topics or _answer("Topics, divided by commas", None, "", asks=asks, option="--topic").replace(" ", "").split(",")),
        url=_without_password(_answer("URL of the sink, without its password", sink, URL, asks=asks, option="--sink")),
        password_file=password_file,
        time_zone=time_zone,
        start_ts=begins,
        start_ts_from=told_by,
    )
    write(config, draft)
    print_line(f"wrote {config}" + (f": the replica begins at {time_text(begins)} (ts {begins})" if begins else ""))
    if run_check is None:
        run_check = asks and typer.confirm("Run `applier check` now?", default=True)
    if run_check:
        raise typer.Exit(show(read_config(config), wait_s=WAIT_S, path=config))
    print_line(f"next: applier check --config {config}")


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


def _start(dump: Path | None, given: int | None) -> tuple[Ts, str]:
    """Return where the replica begins, and who tells it."""
    if dump is None:
        return Ts(given or NO_TS), "--start-ts" if given else ""
    moment = moment_of(dump)
    if moment is None:
        raise ConfigError("the dump does not say its timestamp", remedy="Give it with --start-ts instead of --from-dump", directory=dump)
    if given not in {None, moment.start_ts}:
        raise ConfigError(
            "--start-ts is not the timestamp of the dump",
            remedy="Leave out --start-ts: the dump says its own timestamp",
            dump=moment.start_ts,
            given=given,
        )
    return moment.start_ts, str(moment.source)


def _answer(question: str, given: str | None, default: str, *, asks: bool, option: str = "") -> str:
    """Return the option, or the answer of a terminal, or the default."""
    if given is not None:
        return given
    if asks:
        return str(typer.prompt(question, default=default or None, err=True)).strip()
    if option:
        raise ConfigError(
            f"{option} is missing, and there is no terminal to ask", remedy=f"Give {option}, or run the command in a terminal"
        )
    return default


def _without_password(url: str) -> str:
    if sink_url(url).password is None:
        return url
    stderr_console().print("the password is left out of the file: give it as password_file or APPLIER_SINK__PASSWORD", style="yellow")
    # set(password=None) would keep it.
    return sink_url(url)._replace(password=None).render_as_string(hide_password=False)
