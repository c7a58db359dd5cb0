"""``applier inspect``: show the events that the source holds, without applying them. After an unreadable record it continues.

A record is shown as lines or a table for people, as JSON objects for programs.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from textwrap import wrap
from types import MappingProxyType
from typing import Annotated, Any, Final, assert_never

import typer

from applier.cli.option import AsJson, ConfigPath, LogGtid, LogPosition, ms_of_time, parse_table, read_config, source_kit, tso
from applier.cli.output import DEFAULT_CONFIG, print_json, print_line, stderr_console
from applier.config import Config
from applier.model.errors import ConfigError, NeedsOperator, ProtocolError, Remedy, errors_spelled_by
from applier.model.event_json import event_to_json
from applier.model.events import AdminEvent, DdlEvent, Event, Image, ResolvedEvent, RowEvent, TableName, Value
from applier.model.position import DIGITS, RecordPosition, Stream, Timeline, Ts, moment_of
from applier.model.segment import is_asked_for
from applier.model.topic_name import is_named
from applier.sources.kit import AskedRecords, OriginOf, RecordOrigin, Records, SourceKit
from applier.sources.peek import PeekChoice, follow, present_ranges, read_range
from applier.sources.port import Decoder, Record, Source
from applier.telemetry.log import utc_text
from applier.telemetry.wording import count, one_line, time_text

KEY_ONLY: Final = "  (handle key only)"


@dataclass(frozen=True, slots=True)
class Inspected:
    """One record: its events, or why it cannot be read. ``origin``: of a binlog's record."""

    position: RecordPosition
    content: Sequence[Event] | ProtocolError | NeedsOperator
    origin: RecordOrigin | None = None


def _of_a_topic(record: Record) -> None:
    del record


def decode(decoder: Decoder, records: Iterable[tuple[Stream, Record]], origin_of: OriginOf = _of_a_topic) -> Iterator[Inspected]:
    """Decode records one by one. A record that cannot be decoded gives its error instead of its events."""
    for stream, record in records:
        position = RecordPosition(stream, record.offset)
        try:
            yield Inspected(position, decoder.events(record, position), origin_of(record))
        except (ProtocolError, NeedsOperator) as error:
            # Someone inspects a topic because of such a record: what follows it matters as much.
            yield Inspected(position, error, origin_of(record))


def as_objects(inspected: Inspected) -> Iterator[dict[str, Any]]:
    """Return the events as JSON objects (tests/data/vectors has the form) with the position of their record."""
    where = inspected.position.facts
    if (origin := inspected.origin) is not None:
        time = moment_of(origin.time_ms).isoformat(timespec="milliseconds")
        where = where | {"position": origin.position, "gtid": origin.gtid or None, "time": time}
    if isinstance(inspected.content, ProtocolError | NeedsOperator):
        yield {"error": inspected.content.facts.get("kind", "protocol"), **where, "message": inspected.content.message}
    else:
        for event in inspected.content:
            yield event_to_json(event) | where


def as_lines(inspected: Inspected, timeline: Timeline) -> Iterator[str]:
    """Return the events as lines for people: position, time of the ts, kind, table, key."""
    if isinstance(inspected.content, ProtocolError | NeedsOperator):
        yield f"{inspected.position}  {unreadable_text(inspected.content)}"
    elif not inspected.content:
        yield f"{inspected.position}  no events"
    else:
        for event in inspected.content:
            yield f"{inspected.position}  {_line(event, timeline)}"


def unreadable_text(error: ProtocolError | NeedsOperator) -> str:
    """Say why a record cannot be read."""
    return f"unreadable ({error.facts.get('kind')}): {one_line(error.message)}"


def _line(event: Event, timeline: Timeline) -> str:
    match event:
        case RowEvent():
            return f"{time_text(event.commit_ts, timeline)}  {event.operation:8}  {table_text(event)}  {row_text(event)}"
        case DdlEvent():
            return f"{time_text(event.commit_ts, timeline)}  ddl       {table_text(event)}  {one_line(event.query)}"
        case ResolvedEvent():
            return f"{time_text(event.ts, timeline)}  resolved"
        case AdminEvent():
            return f"{time_text(event.ts, timeline)}  admin     {count(event.partition, 'partition')}"
        case _:
            assert_never(event)


def table_text(event: RowEvent | DdlEvent) -> str:
    """Name the event's table; the schema alone if there is no table."""
    return one_line(f"{event.schema}.{event.table}" if event.table else event.schema)


def row_text(event: RowEvent) -> str:
    """Show the row's handle key; all columns of a table without one."""
    # A delete has only the image before.
    image = event.after or event.before or {}
    columns = handle_key(image)
    shown = columns or {name: column.value for name, column in image.items()}
    notes = f"  (claim check: {one_line(event.claim_check)})" if event.claim_check else KEY_ONLY if event.only_handle_key else ""
    return one_line(("" if columns else "no key: ") + ", ".join(f"{name}={_value(value)}" for name, value in shown.items())) + notes


def handle_key(image: Image | None) -> dict[str, Value]:
    """Return the values of the handle key; empty if there is none, or the format does not tell it."""
    return {name: column.value for name, column in (image or {}).items() if column.is_key}


def _value(value: Value) -> str:
    return repr(value) if isinstance(value, str) else plain_text(value)


def plain_text(value: Value) -> str:
    """Write a value without quotes: as ``--key`` names it."""
    if value is None:
        return "NULL"
    return f"0x{value.hex()}" if isinstance(value, bytes) else str(value)


COLOURS: Final[Mapping[str, str]] = MappingProxyType(
    {"insert": "green", "update": "yellow", "delete": "red", "ddl": "cyan", "resolved": "bright_black", "error": "bright_red"}
)
TIME_WIDTH: Final = 24
TS_WIDTH: Final = 18
OPERATION_WIDTH: Final = 8
MAX_TABLE_WIDTH: Final = 40
WIDE: Final = 120
"""From this width on each line has the date. On a narrower terminal the date has a line of its own, where it changes."""
WHOLE: Final = frozenset({"error", "ddl"})
"""What is never cut: a text that does not fit is below its line. Of a row, the first part of its key tells enough."""
INDENT: Final = " " * 4
DATE_LENGTH: Final = len("2025-01-01 ")


@dataclass(slots=True)
class EventTable:
    """Makes the lines, one event after the other. ``width``: of the terminal; None: the output is not a terminal and is never cut."""

    width: int | None = None
    position_width: int = 0
    of_log: bool = False
    """Whether the events are a binlog's: positions are ``FILE:POSITION``, and GTIDs stand where a topic's events have their TSO."""
    timeline: Timeline = DIGITS
    """What timestamps mean, of events whose record does not name its transaction."""
    _table_width: int = 12
    _date: str = ""
    _colours: bool = field(default=False)

    @classmethod
    def of_terminal(cls, timeline: Timeline, *, of_log: bool = False) -> "EventTable":
        """Make the table for the present standard output."""
        is_terminal = sys.stdout.isatty()
        width = os.get_terminal_size(sys.stdout.fileno()).columns if is_terminal else None
        return cls(width or None, of_log=of_log, timeline=timeline, _colours=is_terminal and not os.environ.get("NO_COLOR"))

    @property
    def _is_narrow(self) -> bool:
        return self.width is not None and self.width < WIDE

    def header(self) -> str:
        """Return the names of the columns."""
        names = ("GTID", "OP", "POSITION") if self.of_log else ("TSO", "OP", "PLACE")
        return self._cut(self._joined("TIME (UTC)", *names, "TABLE", "KEY"))

    def lines(self, inspected: Inspected) -> Iterator[str]:
        """Yield the lines of one record."""
        origin = inspected.origin
        position = str(inspected.position) if origin is None else origin.position
        if isinstance(inspected.content, ProtocolError | NeedsOperator):
            ts = inspected.content.facts.get("commit_ts")
            yield from self._of_event(_when(origin, ts, self.timeline), "error", position, "", unreadable_text(inspected.content))
        elif not inspected.content:
            yield from self._of_event(_when(origin, None, self.timeline), "-", position, "", "no events")
        else:
            for event in inspected.content:
                ts = event.ts if isinstance(event, ResolvedEvent | AdminEvent) else event.commit_ts
                yield from self._of_event(_when(origin, ts, self.timeline), *_cells(event, position))

    def _of_event(self, when: tuple[str, str], operation: str, position: str, table: str, text: str) -> Iterator[str]:
        time, ts = when
        if self._is_narrow and time:
            date, _, time = time.partition(" ")
            if date != self._date:
                self._date = date
                yield date
        head = time, ts, operation, position, table
        lines = [self._joined(*head, text)]
        if self.width is not None and operation in WHOLE and len(lines[0]) > self.width:
            lines = [self._joined(*head, ""), *wrap(text, self.width, initial_indent=INDENT, subsequent_indent=INDENT)]
        colour = COLOURS.get(operation)
        for line in map(self._cut, lines):
            yield typer.style(line, fg=colour) if self._colours and colour else line

    def _joined(self, time: str, ts: str, operation: str, position: str, table: str, text: str) -> str:
        time_width = TIME_WIDTH - DATE_LENGTH if self._is_narrow else TIME_WIDTH
        self.position_width = max(self.position_width, len(position))
        self._table_width = max(self._table_width, min(len(table), MAX_TABLE_WIDTH))
        head = f"{time:{time_width}} {ts:{TS_WIDTH}} {operation:{OPERATION_WIDTH}} {position:{self.position_width}}"
        return f"{head} {table:{self._table_width}} {text}".rstrip()

    def _cut(self, line: str) -> str:
        return line if self.width is None or len(line) <= self.width else line[: self.width - 1] + "…"


def _when(origin: RecordOrigin | None, ts: int | None, timeline: Timeline) -> tuple[str, str]:
    """Return an event's time, and its TSO or its GTID."""
    if origin is not None:
        return utc_text(moment_of(origin.time_ms)), origin.gtid
    return ("", "") if ts is None else (time_text(Ts(ts), timeline), str(ts))


def _cells(event: Event, position: str) -> tuple[str, str, str, str]:
    match event:
        case RowEvent():
            return event.operation.value, position, table_text(event), row_text(event)
        case DdlEvent():
            return "ddl", position, table_text(event), one_line(event.query)
        case ResolvedEvent():
            return "resolved", position, "", ""
        case AdminEvent():
            return "admin", position, "", count(event.partition, "partition")
        case _:
            assert_never(event)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEvents:
    """What an event must be. None and (): no restriction. ``keys``: VALUE of a key of one column, or COLUMN=VALUE of all of them."""

    table: TableName | None = None
    keys: tuple[str, ...] = ()
    ts: Ts | None = None
    since: Ts | None = None
    until: Ts | None = None
    resolved: bool = False

    def of(self, inspected: Inspected) -> Inspected | None:
        """Return the record with the chosen events alone; None if there are none."""
        if isinstance(inspected.content, ProtocolError | NeedsOperator):
            return inspected if self._may_be(inspected.content) else None
        chosen = [event for event in inspected.content if self._has(event)]
        # A record without an event is strange: it is shown where nothing is looked for.
        is_shown = chosen or not (inspected.content or self.is_search)
        return replace(inspected, content=chosen) if is_shown else None

    @property
    def is_search(self) -> bool:
        """Whether particular events are looked for."""
        return not (self.table is None and not self.keys and self.ts is None and self.since is None and self.until is None)

    def _may_be(self, error: ProtocolError | NeedsOperator) -> bool:
        """Whether a record that cannot be read may be one of them, by what is known of it."""
        schema, table, ts = (error.facts.get(name) for name in ("schema", "table", "commit_ts"))
        is_named = schema is None or self.table is None or TableName(schema, table or "").fold() == self.table.fold()
        return is_named and (ts is None or self._is_at(Ts(ts)))

    def _has(self, event: Event) -> bool:
        match event:
            case RowEvent():
                return self._is_at(event.commit_ts) and self._is_of(TableName(event.schema, event.table)) and self._has_key(event)
            case DdlEvent():
                return not self.keys and self._is_at(event.commit_ts) and self._is_of(event.name)
            case ResolvedEvent():
                return self.resolved and not self.keys and self.table is None and self._is_at(event.ts)
            case AdminEvent():
                return not self.keys and self.table is None and self._is_at(event.ts)
            case _:
                assert_never(event)

    def _is_at(self, ts: Ts) -> bool:
        return self.ts in {None, ts} and is_asked_for(ts, self.since, self.until)

    def _is_of(self, table: TableName) -> bool:
        return self.table is None or table.fold() == self.table.fold()

    def _has_key(self, event: RowEvent) -> bool:
        # Both: an update may have changed the key.
        return not self.keys or _is_key(event.after, self.keys) or _is_key(event.before, self.keys)


def _is_key(image: Image | None, wanted: Iterable[str]) -> bool:
    columns = {name.casefold(): plain_text(value) for name, value in handle_key(image).items()}
    if not columns:
        return False
    return all(_is_value(columns, text) for text in wanted)


def _is_value(columns: dict[str, str], text: str) -> bool:
    name, equals, value = text.partition("=")
    is_named = bool(equals) and columns.get(name.casefold()) == value
    return is_named or (len(columns) == 1 and text in columns.values())


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
    """What is read, and what of it is shown. ``records`` passes the chosen ones. ``limit``: shown records of each stream, None: all."""

    choice: PeekChoice
    shown: ShownEvents
    records: Callable[[Records], Records] = iter
    limit: int | None = None
    follows: bool = False


def inspection_of(settings: Config, options: InspectOptions) -> Inspection:
    """Return what is read and shown. ConfigError: an option is wrong, or of the other kind of source."""
    topics = settings.source.topics
    if options.topic is not None and not is_named(options.topic, topics):
        raise ConfigError(
            f"--topic {options.topic} is not in source.topics",
            remedy=Remedy("cli.list-topics-to-inspect", f"The topics are: {', '.join(topics)}"),
        )
    since_ms = None if options.since is None else ms_of_time(options.since, "--since")
    chosen = source_kit(settings).records(
        AskedRecords(
            start=options.start,
            ts=None if options.ts is None else Ts(options.ts),
            position=options.position,
            gtid=options.gtid,
            since_ms=since_ms,
            until_ms=None if options.until is None else ms_of_time(options.until, "--until"),
        )
    )
    return Inspection(
        choice=PeekChoice(topic=options.topic, partition=options.partition, start=chosen.start, since_ms=since_ms),
        shown=ShownEvents(
            table=None if options.table is None else parse_table(options.table),
            keys=options.keys,
            ts=None if options.ts is None else Ts(options.ts),
            since=chosen.since,
            until=chosen.until,
            resolved=options.resolved,
        ),
        records=chosen.of,
    )


__all__ = ["Inspected", "as_lines", "as_objects", "decode", "inspect", "read"]

PATIENCE_S: Final = 10.0
"""Shorter than in a run: a person waits for the answer."""
LIMIT: Final = 20
"""Records of each partition that a person is shown without ``--limit``. A program (``--json``) gets all."""


def inspect(  # noqa: PLR0913 - one option each
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    topic: Annotated[str | None, typer.Option(metavar="T", help="Show only this topic.")] = None,
    partition: Annotated[int | None, typer.Option(metavar="P", min=0, help="Show only this partition.")] = None,
    start: Annotated[str | None, typer.Option("--from", metavar="O", help="Start at this offset; of a binlog, FILE:POS.")] = None,
    table: Annotated[str | None, typer.Option(metavar="SCHEMA.TABLE", help="Show only rows and DDLs of this table.")] = None,
    key: Annotated[
        list[str] | None, typer.Option(metavar="[COLUMN=]VALUE", help="Show only rows with this key; once for each column of the key.")
    ] = None,
    ts: Annotated[int | None, typer.Option(metavar="TSO", parser=tso, help="Show only events of this commit timestamp.")] = None,
    position: LogPosition = None,
    gtid: LogGtid = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Show only events from this time on, as 2025-06-01T12:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Show only events up to this time.")] = None,
    resolved: Annotated[bool, typer.Option("--resolved", help="Show resolved events too. With --json they are always shown.")] = False,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help=f"Show at most N records of each partition; 0: all. Default: {LIMIT}, with --json all."),
    ] = None,
    follows: Annotated[bool, typer.Option("--follow", "-f", help="Wait for new events and show them, until Ctrl-C.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the events of the source without applying them."""
    settings = read_config(config)
    options = InspectOptions(
        topic=topic,
        partition=partition,
        start=start,
        table=table,
        keys=tuple(key or ()),
        ts=ts,
        position=position,
        gtid=gtid,
        since=since,
        until=until,
        resolved=resolved or as_json,
    )
    if follows and limit:
        raise ConfigError("--follow and --limit exclude one another", remedy=Remedy("cli.remove-one-inspect-option", "Remove one of them"))
    inspection = inspection_of(settings, options)
    default = None if follows or as_json else LIMIT
    _show(settings, replace(inspection, limit=default if limit is None else limit or None, follows=follows), as_json)


def _show(settings: Config, inspection: Inspection, as_json: bool) -> None:  # noqa: FBT001 - the option's value
    kit = source_kit(settings)
    of_log = not kit.has_partitions
    table, unreadable, records = EventTable.of_terminal(kit.timeline(), of_log=of_log), 0, 0
    left_out: dict[Stream, bool] = {}
    write = _write_objects if as_json else _lines_of(table)
    try:
        for inspected in read_shown(settings, inspection, left_out):
            records += 1
            unreadable += isinstance(inspected.content, ProtocolError | NeedsOperator)
            write(inspected)
    except KeyboardInterrupt:
        if not inspection.follows:
            raise
    except BrokenPipeError:
        # `applier inspect | head`: who reads has seen enough. Python must not try to write again when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    if not as_json:
        # Not on standard output, which holds events only: it may be piped into another program.
        problems = f", {unreadable:,} unreadable" if unreadable else ""
        of_each = "" if of_log else " of each partition"
        more = f" (the first {inspection.limit}{of_each}; --limit 0 shows all)" if any(left_out.values()) else ""
        # A topic that is quiet holds resolved events alone.
        is_all = inspection.shown.resolved or inspection.shown.is_search or of_log
        hidden = "" if records or is_all else "; --resolved shows resolved events too"
        stderr_console().print(f"{count(records, 'record')}{problems}{more}{hidden}", highlight=False, soft_wrap=True)


def _write_objects(inspected: Inspected) -> None:
    for value in as_objects(inspected):
        print_json(value)


def _lines_of(table: EventTable) -> Callable[[Inspected], None]:
    has_header = False

    def write(inspected: Inspected) -> None:
        nonlocal has_header
        lines = list(table.lines(inspected))
        if not has_header:
            # After the first lines are made: the columns are as wide as they need.
            print_line(table.header())
            has_header = True
        for line in lines:
            print_line(line)

    return write


def read(settings: Config, choice: PeekChoice, patience_s: float = PATIENCE_S) -> Iterator[Inspected]:
    """Read and decode the chosen records; SourceError if nothing comes from Kafka for ``patience_s``."""
    yield from read_shown(settings, Inspection(choice=choice, shown=ShownEvents(resolved=True)), {}, patience_s)


def read_shown(
    settings: Config, inspection: Inspection, left_out: dict[Stream, bool], patience_s: float = PATIENCE_S
) -> Iterator[Inspected]:
    """Yield what is shown, stream by stream. ``left_out`` gets the streams that have more than ``limit``."""
    kit = source_kit(settings).with_patience(patience_s)
    # What the selection excludes stops no run, and no look at a log either.
    decoder = None if kit.has_partitions else kit.decoder(settings.source.selection())
    with errors_spelled_by(kit.timeline()), kit.open(decoder) as source, errors_spelled_by(source.timeline):
        decoded = partial(_decoded, kit, source, inspection)
        ranges = present_ranges(source, inspection.choice)
        is_tail = inspection.follows and inspection.choice.start is None and inspection.choice.since_ms is None
        for range_id in [] if is_tail else ranges:
            yield from _first(decoded(read_range(source, range_id)), range_id.stream, inspection, left_out)
        if inspection.follows:
            ends = {one.stream: one.end for one in ranges}
            yield from filter(None, map(inspection.shown.of, decoded(follow(source, inspection.choice, ends))))


def _first(found: Iterator[Inspected], stream: Stream, inspection: Inspection, left_out: dict[Stream, bool]) -> Iterator[Inspected]:
    """Yield the first records of a range that are shown; read no further."""
    number = 0
    for inspected in found:
        chosen = inspection.shown.of(inspected)
        if chosen is None:
            continue
        number += 1
        if inspection.limit is not None and number > inspection.limit:
            left_out[stream] = True
            return
        yield chosen


def _decoded(kit: SourceKit, source: Source, inspection: Inspection, records: Records) -> Iterator[Inspected]:
    return decode(source.decoder, inspection.records(records), kit.origin_of(source))
