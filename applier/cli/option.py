"""The options that several commands share, with the same names and help everywhere; and positions of the command line.

Three options name one event. Positions: what timestamps mean, options that name a transaction of a log, and how records are named.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias

import typer

from applier.config import Config, load_config, remove_from_environment
from applier.model.errors import ConfigError, Remedy, SinkError, errors_spelled_by
from applier.model.events import TableName
from applier.model.position import EPOCH, MAX_TS, MILLISECOND, Offset, RecordPosition, Stream, Timeline, Ts
from applier.model.rejected_event import EventPosition
from applier.sinks.port import Sink
from applier.sinks.progress import Progress
from applier.sinks.registry import open_sink
from applier.sources.factory import implausible, is_position, kit_of
from applier.sources.kit import SourceKit
from applier.telemetry.log import capture_stderr, use_format
from applier.telemetry.wording import time_text

ConfigPath: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--config", "-c", metavar="FILE", help="Configuration file (TOML). APPLIER_… environment variables override it.", show_default=True
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Write JSON to standard output, for programs.")]
TAKE_OVER_HELP: Final = "Take over from the run that owns the replica, even if that run is alive."


TSO_REMEDY: Final = Remedy(
    "cli.find-tso", "A dump's TSO is in its metadata (Pos); `SELECT TIDB_CURRENT_TSO()` in a transaction of upstream shows the present one"
)


def tso(text: str) -> int:
    """Read a TSO of the command line. A parser, not a range: the library would show its 20 digits in each help."""
    if not text.isascii() or not text.isdecimal() or int(text) > MAX_TS:
        raise typer.BadParameter(f"{text!r} is not a TSO: a whole number such as 458173202432000001")
    return _plausible(int(text))


def _plausible(ts: int) -> int:
    """Return ``ts``; 0 represents no timestamp."""
    reason = implausible(ts, _now_ms()) if ts else None
    if reason is not None:
        raise typer.BadParameter(f"{ts} {reason}, and no TSO that upstream has given. {TSO_REMEDY}")
    return ts


def refuse_implausible_start(settings: Config) -> None:
    """Raise ConfigError for a ``source.start_ts`` that no cluster has given."""
    ts = settings.source.start_ts
    reason = implausible(ts, _now_ms()) if ts else None
    if reason is not None:
        raise ConfigError(f"source.start_ts = {ts} {reason}, and no TSO that upstream has given", remedy=TSO_REMEDY)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def ts_text(text: str) -> str:
    """Check a timestamp of the command line: a TSO, or ``FILE:POS`` of a binlog. What it means, ``position.ts_of_text`` says."""
    if not is_position(text) and not (text.isascii() and text.isdecimal() and int(text) <= MAX_TS):
        message = f"{text!r} is neither a TSO, such as 458173202432000001, nor a position in a binlog, such as mariadb-bin.000042:1234"
        raise typer.BadParameter(message)
    return text


def limit_text(text: str) -> str:
    """Check where an application ends: as ``ts_text``, and a TSO that upstream can have given."""
    if ts_text(text).isdecimal():
        _plausible(int(text))
    return text


def read_config(path: Path) -> Config:
    """Read a command's configuration and set the log format; ConfigError names file, key and remedy."""
    config = load_config(path)
    refuse_implausible_start(config)
    # At once: Spark's JVM and Python workers inherit the environment, which may hold the sink's password.
    remove_from_environment(os.environ)
    use_format(config.log.format)
    if config.log.format == "json":
        capture_stderr()
    return config


def ms_of_time(text: str, option: str = "--until-time") -> int:
    """Return the milliseconds since the epoch of an ISO 8601 time with its offset from UTC; ConfigError otherwise."""
    remedy = Remedy("cli.write-time-with-offset", "Write a time with its offset from UTC, for instance 2025-06-01T12:00:00Z")
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{option} is not an ISO 8601 time: {text!r}", remedy=remedy) from None
    # No default zone: the machine's zone is rarely the right one, and a wrong limit applies too much.
    if when.tzinfo is None:
        raise ConfigError(f"{option} has no offset from UTC: {text!r}", remedy=remedy)
    if when.timestamp() <= 0:
        raise ConfigError(f"{option} is before 1970: {text!r}", remedy=remedy)
    return (when - EPOCH) // MILLISECOND


StreamName: TypeAlias = Annotated[str | None, typer.Option(metavar="TOPIC/PARTITION", help="Stream of the record.")]
RecordOffset: TypeAlias = Annotated[int | None, typer.Option(metavar="N", min=0, help="Offset of the record.")]
EventIndex: TypeAlias = Annotated[
    int | None, typer.Option(metavar="I", min=0, help="One event of the record, counted from 0. Default: the whole record.")
]

AcceptFuture: TypeAlias = Annotated[
    bool, typer.Option("--accept-future", help="With --ts: allow a timestamp that is later than now. Events that come then are skipped.")
]
AtTs: TypeAlias = Annotated[
    str | None, typer.Option("--ts", metavar="TS", parser=ts_text, help="Commit timestamp, instead of a record; of a binlog, FILE:POS.")
]
OfTable: TypeAlias = Annotated[
    str | None, typer.Option("--table", metavar="SCHEMA.TABLE", help="With --ts: only this table; SCHEMA. for a DDL of a schema.")
]
CLOCK_MS: Final = 60_000
"""A machine's clock may be behind upstream's by so much."""


def refuse_future(ts: Ts, timeline: Timeline) -> None:
    """Refuse a TSO that is later than now: a mistyped digit would skip events of next year. ConfigError."""
    time_ms = None if timeline.spells_offsets else timeline.time_ms(ts)
    if time_ms is not None and time_ms > _now_ms() + CLOCK_MS:
        raise ConfigError(
            "the timestamp is later than now: nothing was committed at it yet",
            remedy=Remedy(
                "cli.check-timestamp-of-event",
                "Check it: `applier inspect` shows the timestamp of each event. If you mean a later event, add --accept-future",
            ),
            ts=ts,
            time=time_text(ts, timeline),
        )


def parse_stream(text: str) -> Stream:
    """Read ``topic/partition``. ConfigError if it is not of that form."""
    try:
        return Stream.parse(text)
    except ValueError as error:
        raise ConfigError(str(error), remedy=Remedy("cli.write-stream", "For instance: --stream changefeed/0")) from None


def parse_table(text: str) -> TableName:
    """Read ``schema.table``, or ``schema.`` for the schema itself. ConfigError without a dot: half a name would match no event."""
    # At the first dot: names of tables contain dots more often than names of schemas.
    schema, dot, table = text.partition(".")
    if not (schema and dot):
        remedy = Remedy("cli.write-schema-table", "Write SCHEMA.TABLE, or SCHEMA. with the dot for a DDL of the schema itself")
        raise ConfigError(f"--table names no schema: {text!r}", remedy=remedy)
    return TableName(schema, table)


LogPosition: TypeAlias = Annotated[
    str | None, typer.Option("--position", metavar="FILE:POS", help="Of a binlog: where the transaction begins.")
]
LogGtid: TypeAlias = Annotated[str | None, typer.Option("--gtid", metavar="GTID", help="Of a binlog: the transaction's GTID.")]


def source_kit(settings: Config) -> SourceKit:
    """Return the kit of the configured source."""
    return kit_of(settings.source_settings())


class KnownSink(NamedTuple):
    """The open sink of a replica, and what its timestamps mean: of a binlog, positions under the names of its files."""

    sink: Sink
    timeline: Timeline


@contextmanager
def known_sink(settings: Config, *, migrates: bool = False) -> Iterator[KnownSink]:
    """Open the sink of a configuration. Errors of the block name positions as the replica does."""
    kit = source_kit(settings)
    with errors_spelled_by(kit.timeline()), open_sink(settings.sink_settings()) as sink:
        if migrates:
            sink.migrate()
        # An error of the sink comes again with what is asked for next.
        timeline = kit.timeline(None if kit.has_partitions else _stored(sink))
        with errors_spelled_by(timeline):
            yield KnownSink(sink, timeline)


def named_record(settings: Config, position: str | None, gtid: str | None, progress: Progress | None) -> tuple[RecordPosition, Timeline]:
    """Return the record that ``--position`` or ``--gtid`` names. ConfigError: no such transaction."""
    return source_kit(settings).record_position(position, gtid, None if progress is None else progress.source_state)


def record_text(stream: Stream, offset: Offset, timeline: Timeline) -> str:
    """Name a record: ``feed/0@17``, or the position in the log where its transaction begins."""
    return timeline.text(Ts(offset)) if timeline.spells_offsets else str(RecordPosition(stream, offset))


def event_text(position: EventPosition, timeline: Timeline) -> str:
    """Name an event: ``feed/0@17#2``, ``mariadb-bin.000042:1337#2``; without a number the whole record."""
    text = record_text(position.stream, position.offset, timeline)
    return f"{text}#{position.event}" if position.event >= 0 else text


def ts_of_text(settings: Config, text: str | None, sink: Sink | None = None) -> Ts | None:
    """Return what a timestamp of the command line means: the digits of a TSO, or a position in the log that the replica follows.

    ``sink``: one that is open already. ConfigError: it is one of another kind of source, or of a file of another name.
    """
    if text is None or text.isdecimal():
        return None if text is None else Ts(int(text))
    kit = source_kit(settings)
    return kit.ts(text, None if kit.has_partitions else _state_in(settings) if sink is None else _stored(sink))


def _state_in(settings: Config) -> str | None:
    with open_sink(settings.sink_settings()) as sink:
        return _stored(sink)


def _stored(sink: Sink) -> str | None:
    """Return the state of the source in a sink; None for a replica that has not begun."""
    with suppress(SinkError):
        progress = sink.load()
        return None if progress is None else progress.source_state
    return None
