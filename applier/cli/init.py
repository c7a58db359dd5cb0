"""``applier init``: ask a few questions, or take options, and write a commented configuration. It overwrites nothing."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Final

import typer

from applier.cli.check import WAIT_S, show
from applier.cli.option import ConfigPath, read_config, tso
from applier.cli.output import DEFAULT_CONFIG, command_line, print_line, stderr_console
from applier.config import Config
from applier.config.draft import DEFAULT_NAME, BinlogDraft, ConfigDraft, TopicsDraft
from applier.config.load import load_config
from applier.config.source import BINLOG, KAFKA
from applier.model.errors import ConfigError, Remedy
from applier.model.position import NO_TS, Ts
from applier.sinks.registry import sink_url
from applier.sources.changefeed import moment_of, shown_protocol, unread_protocol
from applier.sources.factory import kit_of
from applier.sources.formats import DEFAULT, FORMATS
from applier.sources.kafka.settings import KafkaSettings
from applier.telemetry.wording import named_text

SERVERS: Final = "127.0.0.1:9092"
PRIMARY: Final = "mysql+pymysql://applier@primary:3306/"
PEEK_S: Final = 3.0
"""How long the brokers may take to show a record: without an answer, the terminal is asked."""
KIND: Final = "Source: kafka (a changefeed of TiCDC) or binlog (of MySQL or MariaDB)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options about the source, as they were given."""

    servers: str | None
    topics: list[str] | None
    protocol: str | None
    primary: str | None
    start: str
    time_zone: str
    dump: Path | None
    start_ts: int | None


def source_draft(options: SourceOptions, *, asks: bool) -> TopicsDraft | BinlogDraft:
    """Return the answers about the source. ConfigError: options of both kinds, or one is missing and there is no terminal."""
    if options.primary is None and not (
        asks and not options.servers and not options.topics and answer(KIND, None, KAFKA, asks=asks) == BINLOG
    ):
        return _topics(options, asks=asks)
    given = {
        "--servers": options.servers,
        "--topic": options.topics,
        "--protocol": options.protocol,
        "--start-ts": options.start_ts,
    }
    for option in (option for option, value in given.items() if value):
        raise ConfigError(
            f"{option} and --primary exclude one another",
            remedy=Remedy("cli.give-primary-or-servers", "Give --primary for a binlog, else --servers and --topic"),
        )
    if options.start and options.dump is not None:
        raise ConfigError(
            "--start and --from-dump exclude one another",
            remedy=Remedy("cli.remove-from-dump-or-start", "Remove one of them: --from-dump is --start dump:PATH"),
        )
    url = answer("URL of the primary, without its password", options.primary, PRIMARY, asks=asks, option="--primary")
    start = options.start if options.dump is None else _start_at_dump(url, options.dump.resolve())
    return BinlogDraft(primary=without_password(url, "SOURCE"), start=start)


def _start_at_dump(url: str, dump: Path) -> str:
    settings = load_config(None, {"source": {"kind": BINLOG, "url": url}, "sink": {"url": URL}}, environment={}).source_settings()
    named = kit_of(settings).start_at_dump
    return "" if named is None else named(dump)


def _topics(options: SourceOptions, *, asks: bool) -> TopicsDraft:
    if options.start:
        raise ConfigError(
            "--start is for a binlog", remedy=Remedy("cli.give-primary-or-start-ts", "Give --primary, or --start-ts for topics")
        )
    begins, told_by = _start(options.dump, options.start_ts)
    servers = answer("Kafka's brokers", options.servers, SERVERS, asks=asks, option="--servers")
    named = options.topics or answer("Topics, divided by commas", None, "", asks=asks, option="--topic").replace(" ", "").split(",")
    protocol = _protocol(options.protocol, servers, tuple(named), asks=asks)
    return TopicsDraft(
        servers=servers, topics=tuple(named), protocol=protocol, time_zone=options.time_zone, start_ts=begins, start_ts_from=told_by
    )


def _protocol(given: str | None, servers: str, topics: tuple[str, ...], *, asks: bool) -> str:
    """Return the format of the records: the option, or what the topics show, or the answer of a terminal. ProtocolError: none is read."""
    if given is not None:
        return given
    shown = shown_protocol(KafkaSettings(bootstrap_servers=servers, topics=topics, group_id="applier-init", unreachable_after_s=PEEK_S))
    if shown is not None:
        if shown.reader not in FORMATS:
            raise unread_protocol(shown, topics)
        print_line(f"the records are {shown.name}")
        return shown.reader
    return answer(f"Protocol of the changefeed: {', '.join(FORMATS)}", None, DEFAULT, asks=asks)


def _start(dump: Path | None, given: int | None) -> tuple[Ts, str]:
    """Return where the replica begins, and the origin of that value."""
    if dump is None:
        return Ts(given or NO_TS), "--start-ts" if given else ""
    moment = moment_of(dump)
    if moment is None:
        raise ConfigError(
            "the dump does not say its timestamp",
            remedy=Remedy("cli.give-start-ts-instead-of-dump", "Give it with --start-ts instead of --from-dump"),
            directory=dump,
        )
    if given not in {None, moment.start_ts}:
        raise ConfigError(
            "--start-ts is not the timestamp of the dump",
            remedy=Remedy("cli.remove-start-ts-with-dump", "Remove --start-ts: the dump says its own timestamp"),
            dump=moment.start_ts,
            given=given,
        )
    return moment.start_ts, str(moment.source)


def answer(question: str, given: str | None, default: str, *, asks: bool, option: str = "") -> str:
    """Return the option, or the answer of a terminal, or the default."""
    if given is not None:
        return given
    if asks:
        return str(typer.prompt(question, default=default or None, err=True)).strip()
    if option:
        raise ConfigError(
            f"{option} is missing, and there is no terminal to ask",
            remedy=Remedy("cli.give-option-or-terminal", f"Give {option}, or run the command in a terminal"),
        )
    return default


def without_password(url: str, section: str) -> str:
    """Return the URL as it may be in a file; ``section`` names the variable that takes its password."""
    if sink_url(url).password is None:
        return url
    stderr_console().print(
        f"the password is not written to the file: give it as password_file or APPLIER_{section}__PASSWORD", style="yellow"
    )
    # set(password=None) would keep it.
    return sink_url(url)._replace(password=None).render_as_string(hide_password=False)


URL: Final = "mysql+pymysql://applier@127.0.0.1:3306/"
PRIVATE: Final = 0o600


def init(  # noqa: PLR0913 - one parameter per option of the command line
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the replica.")] = None,
    servers: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Kafka's brokers, divided by commas.")] = None,
    topics: Annotated[list[str] | None, typer.Option("--topic", metavar="T", help="Topic or pattern; repeat it for several.")] = None,
    protocol: Annotated[str | None, typer.Option(metavar="NAME", help="Protocol of the changefeed. Default: that of a record.")] = None,
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
    options = SourceOptions(
        servers=servers, topics=topics, protocol=protocol, primary=primary, start=start, time_zone=time_zone, dump=dump, start_ts=start_ts
    )
    draft = ConfigDraft(
        name=answer("Name of the replica", name, DEFAULT_NAME, asks=asks),
        source=source_draft(options, asks=asks),
        url=without_password(answer("URL of the sink, without its password", sink, URL, asks=asks, option="--sink"), "SINK"),
        password_file=password_file,
    )
    timeline = kit_of(write(config, draft).source_settings()).timeline()
    begins = draft.source.start_ts if isinstance(draft.source, TopicsDraft) else NO_TS
    print_line(f"wrote {config}" + (f": the replica begins at {named_text(begins, timeline)}" if begins else ""))
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


def write(path: Path, draft: ConfigDraft) -> Config:
    """Check the draft as a configuration, write it, and return it. ConfigError: it is not valid, or the file exists."""
    text = draft.text()
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        _create(temporary, text)
        # Before it gets its name: a wrong answer must not leave a file that the next call refuses to overwrite.
        config = load_config(temporary)
        _publish(temporary, path, text)
    except FileExistsError:
        raise _existing(path) from None
    except OSError as error:
        message = f"the configuration file cannot be written: {error.strerror}"
        raise ConfigError(message, remedy=Remedy("cli.give-other-config-path", "Give another path with --config"), file=path) from error
    except ConfigError as error:
        error.facts["file"] = path
        raise
    finally:
        temporary.unlink(missing_ok=True)
    return config


def _publish(temporary: Path, path: Path, text: str) -> None:
    try:
        # Unlike rename, link fails if the name has been taken meanwhile.
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: FAT, some network and container mounts
        _create(path, text)


def _create(path: Path, text: str) -> None:
    # Only its owner may read it: someone will write a password into it.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w", encoding="utf-8") as file:
        file.write(text)


def _refuse_existing(path: Path) -> None:
    if path.exists():
        raise _existing(path)


def _existing(path: Path) -> ConfigError:
    return ConfigError(
        "the configuration file exists; it is not overwritten",
        remedy=Remedy("cli.give-other-path-or-remove", "Give another path with --config, or remove it"),
        file=path,
    )
