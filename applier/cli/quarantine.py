"""``applier quarantine``: what was set aside, and the operator's word on it."""

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from applier.cli import inspect
from applier.cli.ddl import open_sink_of
from applier.cli.option import DEFAULT_CONFIG, AsJson, ConfigPath, read_config
from applier.cli.output import print_json, print_line
from applier.cli.place import EventIndex, RecordOffset, StreamName, parse_stream
from applier.model.errors import ConfigError, FatalSinkError
from applier.telemetry.wording import count, moment, one_line, operator

if TYPE_CHECKING:
    from applier.config import Config
    from applier.model.rejected_event import KeptRecord
    from applier.sinks.bookkeeping.quarantine import QuarantineEntry
    from applier.sinks.port import Sink

app = typer.Typer(help="Show the events that were set aside, and settle them.")

RawFile = Annotated[
    Path | None, typer.Option("--raw", metavar="FILE", help="Write the record's value to FILE, and its key to FILE.key, as they came.")
]


@app.command("list")
def list_entries(
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Also what was skipped, retried or dropped.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the events that wait for the operator."""
    with open_sink_of(read_config(config)) as sink:
        entries = [entry for entry in _entries(sink) if everything or entry.event.state == "held"]
    if as_json:
        print_json([as_object(entry) for entry in entries])
        return
    for entry in entries:
        for line in as_lines(entry):
            print_line(line)
    if not entries:
        print_line("the quarantine holds nothing" if everything else "nothing waits in the quarantine")


@app.command("show")
def show(
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    stream: StreamName,
    offset: RecordOffset,
    event: EventIndex = None,
    raw: RawFile = None,
    as_json: AsJson = False,
) -> None:
    """Show one record of the quarantine, decoded as far as possible."""
    settings = read_config(config)
    with open_sink_of(settings) as sink:
        entries = _chosen(_entries(sink), stream, offset, event)
        record = sink.quarantine.record(entries[0].event.place)
    if raw is not None:
        raw.write_bytes(record.value or b"")
        raw.with_name(f"{raw.name}.key").write_bytes(record.key or b"")
    if as_json:
        print_json(_whole_object(entries, record, _decoded(settings, entries[0], record)))
        return
    for entry in entries:
        for line in as_lines(entry):
            print_line(line)
    print_line(f"record: a key of {_size(record.key)}, a value of {_size(record.value)}")
    for inspected in _decoded(settings, entries[0], record):
        for line in inspect.as_lines(inspected):
            print_line(f"    {line}")


@app.command("drop")
def drop(config: ConfigPath = DEFAULT_CONFIG, *, stream: StreamName, offset: RecordOffset, event: EventIndex = None) -> None:
    """Settle an event without applying it. It stays in the quarantine's history."""
    from applier.model.rejected_event import QuarantineState  # noqa: PLC0415 - --help need not wait for it

    with open_sink_of(read_config(config)) as sink:
        for entry in _waiting(_chosen(_entries(sink), stream, offset, event)):
            sink.quarantine.settle(entry.event.place, QuarantineState.DROPPED, operator())
            print_line(f"dropped: {entry.event.place}")


@app.command("retry")
def retry(config: ConfigPath = DEFAULT_CONFIG, *, stream: StreamName, offset: RecordOffset, event: EventIndex = None) -> None:
    """Apply an event after all, where that is still right: nothing later may have happened to its rows."""
    settings = read_config(config)
    from applier.replica.readmission import Readmission  # noqa: PLC0415 - as above
    from applier.sources.factory import open_source  # noqa: PLC0415 - as above

    with open_sink_of(settings) as sink, open_source(settings.kafka_settings()) as source:
        entries = _waiting(_chosen(_entries(sink), stream, offset, event))
        sink.acquire()
        for entry in entries:
            rows = Readmission(source, sink, operator(), settings.acceptance).readmit(entry.event.place)
            print_line(f"applied: {entry.event.place} ({count(rows, 'row')})")


def as_object(entry: "QuarantineEntry") -> dict[str, Any]:
    """Return an entry for programs."""
    event = entry.event
    return {
        "topic": event.place.stream.topic,
        "partition": event.place.stream.partition,
        "offset": event.place.offset,
        "event": event.place.event if event.place.event >= 0 else None,
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


def as_lines(entry: "QuarantineEntry") -> list[str]:
    """Return an entry for people."""
    event = entry.event
    what = f"{event.schema}.{event.table}  {event.key}" if event.schema else "unknown"
    lines = [f"{event.place}  {moment(event.commit_ts)}  {event.state:8}  {one_line(what)}", f"    {one_line(event.error)}"]
    if entry.settled_at is not None:
        lines.append(f"    {event.state} by {entry.settled_by} at {entry.settled_at:%Y-%m-%d %H:%M:%S}Z")
    return lines


def _whole_object(entries: "Sequence[QuarantineEntry]", record: "KeptRecord", decoded: "Sequence[inspect.Inspected]") -> dict[str, Any]:
    events = [value for inspected in decoded for value in inspect.as_objects(inspected)]
    return {
        "entries": [as_object(entry) for entry in entries],
        "key_b64": _b64(record.key),
        "value_b64": _b64(record.value),
        "events": events,
    }


def _decoded(settings: "Config", entry: "QuarantineEntry", record: "KeptRecord") -> "list[inspect.Inspected]":
    from applier.sources.factory import decoder_of  # noqa: PLC0415 - as above
    from applier.sources.port import Record  # noqa: PLC0415 - as above

    stream, offset, _ = entry.event.place
    return list(inspect.decode(decoder_of(settings.kafka_settings()), [(stream, Record(offset, record.key, record.value))]))


def _b64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")


def _size(data: bytes | None) -> str:
    return "nothing" if data is None else count(len(data), "byte")


def _chosen(entries: "Sequence[QuarantineEntry]", stream: str, offset: int, event: int | None) -> "list[QuarantineEntry]":
    """Return the entries of one record, or one event of it. ConfigError if there is none."""
    wanted = parse_stream(stream)
    chosen = [entry for entry in entries if entry.event.place[:2] == (wanted, offset) and event in {None, entry.event.place.event}]
    if not chosen:
        raise ConfigError(
            "the quarantine does not hold this event", remedy="See: applier quarantine list --all", stream=stream, offset=offset
        )
    return chosen


def _waiting(entries: "Sequence[QuarantineEntry]") -> "list[QuarantineEntry]":
    waiting = [entry for entry in entries if entry.event.state == "held"]
    if not waiting:
        event = entries[0].event
        raise ConfigError(f"the event does not wait any more: it was {event.state}", remedy="There is nothing to settle", place=event.place)
    return waiting


def _entries(sink: "Sink") -> "Sequence[QuarantineEntry]":
    """Read the quarantine; looking at a sink does not create it there."""
    try:
        return sink.quarantine.entries()
    except FatalSinkError as error:
        remedy = f"{error.remedy.rstrip('.')}. If no run of this version has begun here yet: applier migrate makes the tables"
        raise FatalSinkError(error.message, remedy=remedy, **error.facts) from error
