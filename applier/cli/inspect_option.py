"""What ``applier inspect`` is asked for: its options, and what they mean for the source at hand."""

from dataclasses import dataclass, replace

from applier.cli.event_option import parse_table
from applier.cli.inspect_choice import ShownEvents
from applier.cli.inspect_log import ShownTransactions
from applier.cli.log_option import is_log, parse_gtid, parse_position, refuse_log_options
from applier.cli.option import ts_of_time
from applier.config import Config
from applier.model.errors import ConfigError
from applier.model.position import Offset, Ts
from applier.model.topic_name import is_named
from applier.sources.binlog.position import BinlogPosition
from applier.sources.kafka.tso import physical_ms
from applier.sources.peek import PeekChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions:
    """The options about what is shown, as they were given."""

    topic: str | None
    partition: int | None
    start: str | None
    table: str | None
    keys: tuple[str, ...]
    ts: int | None
    position: str | None
    gtid: str | None
    since: str | None
    until: str | None
    resolved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What is read, and what of it is shown. ``transactions``: of a binlog. ``limit``: shown records of each stream, None: all."""

    choice: PeekChoice
    shown: ShownEvents
    transactions: ShownTransactions | None = None
    limit: int | None = None
    follows: bool = False


def inspection_of(settings: Config, options: InspectOptions) -> Inspection:
    """Return what is read and shown. ConfigError: an option is wrong, or of the other kind of source."""
    topics = settings.source.topics
    if options.topic is not None and not is_named(options.topic, topics):
        raise ConfigError(f"--topic {options.topic} is not in source.topics", remedy=f"The topics are: {', '.join(topics)}")
    refuse_log_options(settings, options.position, options.gtid)
    since = None if options.since is None else _time("--since", options.since)
    until = None if options.until is None else _time("--until", options.until)
    since_ms = None if since is None else physical_ms(since)
    inspection = Inspection(
        choice=PeekChoice(topic=options.topic, partition=options.partition, start=_start(settings, options), since_ms=since_ms),
        shown=ShownEvents(
            table=None if options.table is None else parse_table(options.table),
            keys=options.keys,
            ts=None if options.ts is None else Ts(options.ts),
            resolved=options.resolved,
        ),
    )
    if not is_log(settings):
        return replace(inspection, shown=replace(inspection.shown, since=since, until=until))
    if options.ts is not None:
        raise ConfigError("--ts is for topics: a binlog has positions", remedy="Use --position or --gtid")
    transactions = ShownTransactions(
        gtid=None if options.gtid is None else parse_gtid(options.gtid),
        position=None if options.position is None else parse_position(options.position),
        since_ms=since_ms,
        until_ms=None if until is None else physical_ms(until),
    )
    return replace(inspection, transactions=transactions)


def _start(settings: Config, options: InspectOptions) -> Offset | None:
    text = options.start if options.position is None else options.position
    if text is None:
        return None
    is_number = text.isascii() and text.isdecimal()
    if is_log(settings) and not is_number:
        return parse_position(text)
    if is_log(settings):
        # An error names a record by its offset. The server knows nothing of the servers that were followed before.
        return Offset(BinlogPosition.of(int(text))._replace(generation=0).number)
    if not is_number:
        raise ConfigError(f"--from is not an offset: {text!r}", remedy="Write a whole number, for instance --from 157")
    return Offset(int(text))


def _time(option: str, text: str) -> Ts:
    try:
        return ts_of_time(text)
    except ConfigError as error:
        raise ConfigError(error.message.replace("--until-time", option), remedy=error.remedy) from None
