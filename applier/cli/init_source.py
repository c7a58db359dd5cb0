"""Where a new configuration's changes come from: what the options of ``applier init`` say, and what a terminal is asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer

from applier.cli.output import stderr_console
from applier.config.draft import BinlogDraft, TopicsDraft
from applier.config.source import BINLOG, KAFKA
from applier.dump.log_place import start_of_dump
from applier.dump.moment import moment_of
from applier.model.errors import ConfigError
from applier.model.position import NO_TS, Ts
from applier.sinks.address import sink_url

SERVERS: Final = "127.0.0.1:9092"
PRIMARY: Final = "mysql+pymysql://applier@primary:3306/"
KIND: Final = "Source: kafka (a changefeed of TiCDC) or binlog (of MySQL or MariaDB)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options about the source, as they were given."""

    servers: str | None
    topics: list[str] | None
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
    given = {"--servers": options.servers, "--topic": options.topics, "--start-ts": options.start_ts}
    for option in (option for option, value in given.items() if value):
        raise ConfigError(f"{option} and --primary exclude one another", remedy="Give --primary for a binlog, else --servers and --topic")
    if options.start and options.dump is not None:
        raise ConfigError("--start and --from-dump exclude one another", remedy="Remove one of them: --from-dump is --start dump:PATH")
    url = answer("URL of the primary, without its password", options.primary, PRIMARY, asks=asks, option="--primary")
    start = options.start if options.dump is None else start_of_dump(options.dump.resolve())
    return BinlogDraft(primary=without_password(url, "SOURCE"), start=start)


def _topics(options: SourceOptions, *, asks: bool) -> TopicsDraft:
    if options.start:
        raise ConfigError("--start is for a binlog", remedy="Give --primary, or --start-ts for topics")
    begins, told_by = _start(options.dump, options.start_ts)
    servers = answer("Kafka's brokers", options.servers, SERVERS, asks=asks, option="--servers")
    named = options.topics or answer("Topics, divided by commas", None, "", asks=asks, option="--topic").replace(" ", "").split(",")
    return TopicsDraft(servers=servers, topics=tuple(named), time_zone=options.time_zone, start_ts=begins, start_ts_from=told_by)


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


def answer(question: str, given: str | None, default: str, *, asks: bool, option: str = "") -> str:
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


def without_password(url: str, section: str) -> str:
    """Return the URL as it may stand in a file; ``section`` names the variable that takes its password."""
    if sink_url(url).password is None:
        return url
    stderr_console().print(f"the password is left out of the file: give it as password_file or APPLIER_{section}__PASSWORD", style="yellow")
    # set(password=None) would keep it.
    return sink_url(url)._replace(password=None).render_as_string(hide_password=False)
