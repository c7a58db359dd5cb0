"""A record as it is shown: its events, or why it cannot be read; as lines for people and as JSON objects."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, assert_never

from applier.model.errors import NeedsOperator, ProtocolError
from applier.model.event_json import event_to_json
from applier.model.events import AdminEvent, DdlEvent, Event, Flag, Image, ResolvedEvent, RowEvent, Value
from applier.model.position import Place, Stream
from applier.model.timeline import moment_of
from applier.sources.port import Decoder, Record
from applier.telemetry.wording import count, one_line, time_text

KEY_ONLY: Final = "  (handle key only)"


class LogOrigin(NamedTuple):
    """The transaction of a binlog that a record belongs to: its time, where it begins (``FILE:POSITION``), and its GTID, '' without."""

    time_ms: int
    position: str
    gtid: str


@dataclass(frozen=True, slots=True)
class Inspected:
    """One record: its events, or why it cannot be read. ``origin``: of a binlog's record."""

    place: Place
    content: Sequence[Event] | ProtocolError | NeedsOperator
    origin: LogOrigin | None = None


OriginOf: TypeAlias = Callable[[Record], LogOrigin | None]


def _of_a_topic(record: Record) -> None:
    del record


def decode(decoder: Decoder, records: Iterable[tuple[Stream, Record]], origin_of: OriginOf = _of_a_topic) -> Iterator[Inspected]:
    """Decode records one by one. A record that cannot be decoded gives its error instead of its events."""
    for stream, record in records:
        place = Place(stream, record.offset)
        try:
            yield Inspected(place, decoder.events(record, place), origin_of(record))
        except (ProtocolError, NeedsOperator) as error:
            # Somebody inspects a topic because of such a record: what follows it matters as much.
            yield Inspected(place, error, origin_of(record))


def as_objects(inspected: Inspected) -> Iterator[dict[str, Any]]:
    """Return the events as JSON objects (tests/data/vectors has the form) with the place of their record."""
    where = inspected.place.facts
    if (origin := inspected.origin) is not None:
        time = moment_of(origin.time_ms).isoformat(timespec="milliseconds")
        where = where | {"position": origin.position, "gtid": origin.gtid or None, "time": time}
    if isinstance(inspected.content, ProtocolError | NeedsOperator):
        yield {"error": inspected.content.facts.get("kind", "protocol"), **where, "message": inspected.content.message}
    else:
        for event in inspected.content:
            yield event_to_json(event) | where


def as_lines(inspected: Inspected) -> Iterator[str]:
    """Return the events as lines for people: place, time of the ts, kind, table, key."""
    if isinstance(inspected.content, ProtocolError | NeedsOperator):
        yield f"{inspected.place}  {unreadable_text(inspected.content)}"
    elif not inspected.content:
        yield f"{inspected.place}  no events"
    else:
        for event in inspected.content:
            yield f"{inspected.place}  {_line(event)}"


def unreadable_text(error: ProtocolError | NeedsOperator) -> str:
    """Say why a record cannot be read."""
    return f"unreadable ({error.facts.get('kind')}): {one_line(error.message)}"


def _line(event: Event) -> str:
    match event:
        case RowEvent():
            return f"{time_text(event.commit_ts)}  {event.operation:8}  {table_text(event)}  {row_text(event)}"
        case DdlEvent():
            return f"{time_text(event.commit_ts)}  ddl       {table_text(event)}  {one_line(event.query)}"
        case ResolvedEvent():
            return f"{time_text(event.ts)}  resolved"
        case AdminEvent():
            return f"{time_text(event.ts)}  admin     {count(event.partition, 'partition')}"
        case _:
            assert_never(event)


def table_text(event: RowEvent | DdlEvent) -> str:
    """Name the event's table; the schema alone where it has none."""
    return one_line(f"{event.schema}.{event.table}" if event.table else event.schema)


def row_text(event: RowEvent) -> str:
    """Show the row's handle key; all columns of a table that has none."""
    # A delete has only the image before.
    image = event.after or event.before or {}
    columns = handle_key(image)
    shown = columns or {name: column.value for name, column in image.items()}
    notes = f"  (claim check: {one_line(event.claim_check)})" if event.claim_check else KEY_ONLY if event.only_handle_key else ""
    return one_line(("" if columns else "no key: ") + ", ".join(f"{name}={_value(value)}" for name, value in shown.items())) + notes


def handle_key(image: Image | None) -> dict[str, Value]:
    """Return the values of the handle key; empty if the table has none."""
    return {name: column.value for name, column in (image or {}).items() if column.flags & Flag.HANDLE_KEY}


def _value(value: Value) -> str:
    return repr(value) if isinstance(value, str) else plain_text(value)


def plain_text(value: Value) -> str:
    """Write a value without quotes: as ``--key`` names it."""
    if value is None:
        return "NULL"
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)
