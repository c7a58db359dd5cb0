"""``applier inspect``: show the events that the topics hold, without applying them. After an unreadable record it continues."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, assert_never

import typer

from applier.cli.option import DEFAULT_CONFIG, AsJson, ConfigPath, read_config
from applier.cli.output import print_json, print_line, stderr_console
from applier.config import Config
from applier.model.errors import ConfigError, ProtocolError
from applier.model.event_json import event_to_json
from applier.model.events import AdminEvent, DdlEvent, Event, Flag, ResolvedEvent, RowEvent, Value
from applier.model.position import Offset, Place, Stream
from applier.model.topic_name import is_named
from applier.sources.factory import open_source
from applier.sources.peek import PeekChoice, peek
from applier.sources.port import Decoder, Record
from applier.telemetry.wording import count, one_line, time_text

KEY_ONLY: Final = "  (handle key only)"
PATIENCE_S: Final = 10.0
"""Shorter than in a run: a person waits for the answer."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """One record: its events, or why it cannot be read."""

    place: Place
    content: Sequence[Event] | ProtocolError


def inspect(
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    topic: Annotated[str | None, typer.Option(metavar="T", help="Show only this topic.")] = None,
    partition: Annotated[int | None, typer.Option(metavar="P", min=0, help="Show only this partition.")] = None,
    start: Annotated[int | None, typer.Option("--from", metavar="O", min=0, help="Start at this offset.")] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", min=1, help="Show at most N records of each partition.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the events in the topics without applying them."""
    settings = read_config(config)
    if topic is not None and not is_named(topic, settings.source.topics):
        raise ConfigError(f"--topic {topic} is not in source.topics", remedy=f"They are: {', '.join(settings.source.topics)}")
    choice = PeekChoice(topic=topic, partition=partition, start=None if start is None else Offset(start), limit=limit)
    unreadable = records = 0
    for inspected in read(settings, choice):
        records += 1
        unreadable += isinstance(inspected.content, ProtocolError)
        if as_json:
            for value in as_objects(inspected):
                print_json(value)
        else:
            for line in as_lines(inspected):
                print_line(line)
    if not as_json:
        # Not on standard output, which holds events only: it may be piped into another program.
        problems = f", {unreadable:,} unreadable" if unreadable else ""
        stderr_console().print(f"{count(records, 'record')}{problems}", highlight=False)


def read(settings: Config, choice: PeekChoice, patience_s: float = PATIENCE_S) -> Iterator[Inspected]:
    """Read and decode the chosen records; SourceError if nothing comes from Kafka for ``patience_s``."""
    with open_source(replace(settings.kafka_settings(), unreachable_after_s=patience_s)) as source:
        yield from decode(source.decoder, peek(source, choice))


def decode(decoder: Decoder, records: Iterable[tuple[Stream, Record]]) -> Iterator[Inspected]:
    """Decode records one by one. A record that cannot be decoded gives its error instead of its events."""
    for stream, record in records:
        place = Place(stream, record.offset)
        try:
            yield Inspected(place, decoder.events(record, place))
        except ProtocolError as error:
            # Somebody inspects a topic because of such a record: what follows it matters as much.
            yield Inspected(place, error)


def as_objects(inspected: Inspected) -> Iterator[dict[str, Any]]:
    """Return the events as JSON objects (tests/data/vectors has the form) with the place of their record."""
    where = inspected.place.facts
    if isinstance(inspected.content, ProtocolError):
        yield {"error": inspected.content.facts.get("kind", "protocol"), **where, "message": inspected.content.message}
    else:
        for event in inspected.content:
            yield event_to_json(event) | where


def as_lines(inspected: Inspected) -> Iterator[str]:
    """Return the events as lines for people: place, time of the ts, kind, table, key."""
    if isinstance(inspected.content, ProtocolError):
        yield f"{inspected.place}  unreadable ({inspected.content.facts.get('kind')}): {one_line(inspected.content.message)}"
    elif not inspected.content:
        yield f"{inspected.place}  no events"
    else:
        for event in inspected.content:
            yield f"{inspected.place}  {_line(event)}"


def _line(event: Event) -> str:
    match event:
        case RowEvent():
            notes = f"  (claim check: {one_line(event.claim_check)})" if event.claim_check else KEY_ONLY if event.only_handle_key else ""
            return f"{time_text(event.commit_ts)}  {event.operation:8}  {_name(event)}  {_key(event)}{notes}"
        case DdlEvent():
            return f"{time_text(event.commit_ts)}  ddl       {_name(event)}  {one_line(event.query)}"
        case ResolvedEvent():
            return f"{time_text(event.ts)}  resolved"
        case AdminEvent():
            return f"{time_text(event.ts)}  admin     {count(event.partition, 'partition')}"
        case _:
            assert_never(event)


def _name(event: RowEvent | DdlEvent) -> str:
    return one_line(f"{event.schema}.{event.table}" if event.table else event.schema)


def _key(event: RowEvent) -> str:
    """Show the row's handle key; all columns of a table that has none."""
    # A delete has only the image before.
    image = event.after or event.before or {}
    columns = {name: column.value for name, column in image.items() if column.flags & Flag.HANDLE_KEY}
    shown = columns or {name: column.value for name, column in image.items()}
    return one_line(("" if columns else "no key: ") + ", ".join(f"{name}={_value(value)}" for name, value in shown.items()))


def _value(value: Value) -> str:
    if value is None:
        return "NULL"
    return f"0x{value.hex()}" if isinstance(value, bytes) else repr(value)
