"""``applier quarantine``: the quarantined events, and the operator's decisions about them."""

from base64 import b64encode
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from applier.cli import inspect
from applier.cli.command_group import COMMANDS
from applier.cli.option import (
    AsJson,
    ConfigPath,
    EventIndex,
    KnownSink,
    LogPosition,
    RecordOffset,
    StreamName,
    event_text,
    known_sink,
    named_record,
    parse_stream,
    read_config,
    record_text,
    source_kit,
)
from applier.cli.output import DEFAULT_CONFIG, print_entries, print_json, print_line
from applier.config import Config
from applier.model.errors import ConfigError, FatalSinkError, Remedy
from applier.model.position import Offset, RecordPosition, Timeline
from applier.model.rejected_event import KeptRecord, QuarantineState
from applier.replica.quarantine_retry import QuarantineRetry
from applier.run.assembly import decoder_for, tables_of_upstream
from applier.sinks.port import Sink
from applier.sinks.quarantine import QuarantineEntry
from applier.sources.port import Record
from applier.telemetry.wording import count, one_line, operator, printable, time_text

quarantine = typer.Typer(help=COMMANDS["quarantine"])

RawFile = Annotated[Path | None, typer.Option("--raw", metavar="FILE", help="Write the raw value to FILE and the raw key to FILE.key.")]


@quarantine.command("list")
def list_entries(
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Also show skipped, retried and dropped events.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the events that need a decision."""
    settings = read_config(config)
    with known_sink(settings) as known:
        entries = [entry for entry in _entries(known.sink) if everything or entry.event.state == "held"]
    if_none = "the quarantine is empty" if everything else "no quarantined event needs a decision"
    write, timeline = partial(as_object, timeline=known.timeline), known.timeline
    print_entries(entries, write if as_json else None, partial(as_lines, timeline=timeline), if_none)


@quarantine.command("show")
def show(  # noqa: PLR0913 - one parameter per option of the command line
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    stream: StreamName = None,
    offset: RecordOffset = None,
    position: LogPosition = None,
    event: EventIndex = None,
    raw: RawFile = None,
    as_json: AsJson = False,
) -> None:
    """Show one quarantined record, decoded as far as possible."""
    settings = read_config(config)
    with known_sink(settings) as known:
        sink = known.sink
        entries = _chosen(_entries(sink), _record(settings, known, stream, offset, position), event)
        record = sink.bookkeeping.quarantine.record(entries[0].event.position)
    # Both files are needed to decode the record elsewhere: the key holds the table, the value the images.
    if raw is not None:
        raw.write_bytes(record.value or b"")
        raw.with_name(f"{raw.name}.key").write_bytes(record.key or b"")
    if as_json:
        decoded = _decoded(settings, entries[0], record)
        print_json(_whole_object([as_object(entry, known.timeline) for entry in entries], record, decoded))
        return
    for entry in entries:
        for line in as_whole_lines(entry, known.timeline):
            print_line(line)
    print_line(f"record: a key of {_size(record.key)}, a value of {_size(record.value)}")
    for inspected in _decoded(settings, entries[0], record):
        for line in inspect.as_lines(inspected, known.timeline):
            print_line(f"    {line}")


@quarantine.command("drop")
def drop(
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    stream: StreamName = None,
    offset: RecordOffset = None,
    position: LogPosition = None,
    event: EventIndex = None,
) -> None:
    """Settle an event without applying it. It stays in the history."""
    settings = read_config(config)
    with known_sink(settings) as known:
        sink = known.sink
        for entry in _undecided(_chosen(_entries(sink), _record(settings, known, stream, offset, position), event)):
            sink.bookkeeping.quarantine.settle(entry.event.position, QuarantineState.DROPPED, operator())
            print_line(f"dropped: {event_text(entry.event.position, known.timeline)}")


@quarantine.command("retry")
def retry(
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    stream: StreamName = None,
    offset: RecordOffset = None,
    position: LogPosition = None,
    event: EventIndex = None,
) -> None:
    """Apply an event now. Refused if a later event changed the same row."""
    settings = read_config(config)
    opened = source_kit(settings).open(decoder_for(settings), tables=tables_of_upstream(settings))
    with known_sink(settings) as known, opened as source:
        sink = known.sink
        entries = _undecided(_chosen(_entries(sink), _record(settings, known, stream, offset, position), event))
        # A run that is alive could apply a later version of the row at the same time.
        sink.acquire()
        for entry in entries:
            rows = QuarantineRetry(source, sink, operator(), settings.acceptance).retry(entry.event.position)
            print_line(f"applied: {event_text(entry.event.position, known.timeline)} ({count(rows, 'row')})")


def as_object(entry: QuarantineEntry, timeline: Timeline) -> dict[str, Any]:
    """Return an entry for programs."""
    event = entry.event
    return {
        "topic": event.position.stream.topic,
        "partition": event.position.stream.partition,
        "offset": event.position.offset,
        # Of a binlog, as --position takes it.
        **({"position": record_text(event.position.stream, event.position.offset, timeline)} if timeline.spells_offsets else {}),
        "event": event.position.event if event.position.event >= 0 else None,
        "state": str(event.state),
        "commit_ts": event.commit_ts or None,
        "schema": event.schema,
        "table": event.table,
        "key": event.key,
        "error": event.error,
        "found_at": entry.found_at.isoformat(),
        "settled_at": None if entry.settled_at is None else entry.settled_at.isoformat(),
        "settled_by": entry.settled_by,
    }


def as_lines(entry: QuarantineEntry, timeline: Timeline) -> list[str]:
    """Return an entry for people."""
    event = entry.event
    what = f"{event.schema}.{event.table}  {event.key}" if event.schema else "unknown"
    lines = [
        f"{event_text(event.position, timeline)}  {time_text(event.commit_ts, timeline)}  {event.state:8}  {one_line(what)}",
        f"    {one_line(event.error)}",
    ]
    if entry.settled_at is not None:
        lines.append(f"    {event.state} by {entry.settled_by} at {entry.settled_at:%Y-%m-%d %H:%M:%S}Z")
    return lines


def as_whole_lines(entry: QuarantineEntry, timeline: Timeline) -> list[str]:
    """Return an entry for people, with all of its error and of its key."""
    first, _, *rest = as_lines(entry, timeline)
    event = entry.event
    key = [f"    key: {printable(event.key)}"] if event.key else []
    error = [printable(line.expandtabs()) for line in event.error.splitlines()] or [""]
    return [first, *key, f"    error: {error[0]}", *(f"           {line}" for line in error[1:]), *rest]


def _whole_object(entries: Sequence[dict[str, Any]], record: KeptRecord, decoded: Sequence[inspect.Inspected]) -> dict[str, Any]:
    events = [value for inspected in decoded for value in inspect.as_objects(inspected)]
    return {
        "entries": entries,
        # Base64: what is quarantined is often no text at all.
        "key_b64": _b64(record.key),
        "value_b64": _b64(record.value),
        "events": events,
    }


def _decoded(settings: Config, entry: QuarantineEntry, record: KeptRecord) -> list[inspect.Inspected]:
    stream, offset, _ = entry.event.position
    return list(inspect.decode(source_kit(settings).decoder(), [(stream, Record(offset, record.key, record.value))]))


def _b64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")


def _size(data: bytes | None) -> str:
    return "nothing" if data is None else count(len(data), "byte")


def _record(settings: Config, known: KnownSink, stream: str | None, offset: int | None, position: str | None) -> RecordPosition:
    """Return the record that the options name. ConfigError if they name none."""
    if position is not None and stream is None and offset is None:
        return named_record(settings, position, None, known.sink.load())[0]
    if stream is not None and offset is not None and position is None:
        return RecordPosition(parse_stream(stream), Offset(offset))
    raise ConfigError(
        "the options do not name one record",
        remedy=Remedy("cli.give-stream-and-offset", "Give --stream and --offset; of a binlog, --position"),
    )


def _chosen(entries: Sequence[QuarantineEntry], record: RecordPosition, event: int | None) -> list[QuarantineEntry]:
    """Return the entries of one record, or one event of it. ConfigError if there is none."""
    chosen = [entry for entry in entries if entry.event.position[:2] == record[:2] and event in {None, entry.event.position.event}]
    if not chosen:
        facts: dict[str, Any] = {"stream": str(record.stream), "offset": record.offset}
        raise ConfigError(
            "this event is not in the quarantine", remedy=Remedy("cli.list-quarantine", "See `applier quarantine list --all`"), **facts
        )
    return chosen


def _undecided(entries: Sequence[QuarantineEntry]) -> list[QuarantineEntry]:
    undecided = [entry for entry in entries if entry.event.state == "held"]
    if not undecided:
        event = entries[0].event
        raise ConfigError(
            f"the event is settled already: it was {event.state}",
            remedy=Remedy("cli.list-quarantine-of-state", "See `applier quarantine list --all`"),
            position=event.position,
        )
    return undecided


def _entries(sink: Sink) -> Sequence[QuarantineEntry]:
    """Read the quarantine, which a read does not create."""
    try:
        return sink.bookkeeping.quarantine.entries()
    except FatalSinkError as error:
        remedy = Remedy(
            "cli.create-quarantine-table",
            f"{error.remedy.rstrip('.')}. If no run of this version has used this sink yet, create the tables with `applier migrate`",
        )
        raise FatalSinkError(error.message, remedy=remedy, **error.facts) from error
