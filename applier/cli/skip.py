"""``applier skip``: the operator's decision that one event is not applied; what is skipped is stored in the quarantine.

A row, a record that cannot be read, a resolved event: the rule is stored, and the next run follows it. A DDL goes to the ledger at once,
as with ``applier ddl skip``: its copies on other partitions and later replays neither run nor stop the replica.
"""

from typing import Annotated, Final, NamedTuple

import typer

from applier.cli import inspect, skip_list
from applier.cli.ddl import SKIPPED_UNREAD, is_unfinished, open_sink_of, skip_by_time, write_skipped
from applier.cli.option import (
    AcceptFuture,
    AsJson,
    AtTs,
    ConfigPath,
    EventIndex,
    OfTable,
    parse_stream,
    parse_table,
    read_config,
    refuse_future,
)
from applier.cli.output import print_entries, print_line
from applier.cli.position import LogGtid, LogPosition, named_record, record_text, source_kit, ts_of_text, use_places_of
from applier.cli.remedy import DEFAULT_CONFIG
from applier.config import Config
from applier.ddl import identity, same_ddl
from applier.model.errors import ConfigError
from applier.model.events import DdlEvent, DdlIdentity
from applier.model.position import Offset, Stream, Ts
from applier.model.rejected_event import WHOLE_RECORD, EventPlace
from applier.model.remedy import Remedy
from applier.model.segment import is_past
from applier.model.topic_name import is_named
from applier.sinks.progress import Progress
from applier.sinks.quarantine import SkipRule
from applier.sources.peek import PeekChoice, peek
from applier.sources.port import Decoder, Placed, Record, Source, Unplaced
from applier.telemetry.log import timeline_in_use, use_timeline
from applier.telemetry.wording import count, one_line, operator, option_and_time

AT_NEXT_START: Final = "effective from the next start (restart a daemon that runs now)"

skip = typer.Typer(invoke_without_command=True)

OfStream = Annotated[str | None, typer.Option("--stream", metavar="TOPIC/PARTITION", help="Stream of the record.")]
AtOffset = Annotated[int | None, typer.Option("--offset", metavar="N", min=0, help="Offset of the record.")]


class Choice(NamedTuple):
    """What the options name: a place, a transaction of a binlog, or a timestamp."""

    stream: Stream | None
    offset: Offset
    event: int | None
    ts: str
    table: str | None
    position: str | None = None
    gtid: str | None = None


@skip.callback(invoke_without_command=True)
def add(  # noqa: PLR0913 - one parameter per option of the command line
    context: typer.Context,
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    stream: OfStream = None,
    offset: AtOffset = None,
    event: EventIndex = None,
    ts: AtTs = None,
    table: OfTable = None,
    position: LogPosition = None,
    gtid: LogGtid = None,
    accept_future: AcceptFuture = False,
) -> None:
    """Skip an event by its place or its commit timestamp.

    A place is --stream with --offset, and --event for one event of the record; of a binlog, --position or --gtid names a transaction. The
    quarantine stores what was skipped. applier inspect shows places and timestamps.
    """
    if context.invoked_subcommand is not None:
        _refuse_given(context, context.invoked_subcommand)
        return
    choice = _choice(stream, offset, event, ts, table, (position, gtid))
    if choice.position is not None or choice.gtid is not None:
        settings = read_config(config)
        place = named_record(settings, choice.position, choice.gtid, _progress(settings))
        skip_place(settings, place.stream, place.offset, choice.event)
    elif choice.stream is not None:
        skip_place(read_config(config), choice.stream, choice.offset, choice.event)
    else:
        skip_time(read_config(config), choice.ts, choice.table, accept_future=accept_future)


def _refuse_given(context: typer.Context, command: str) -> None:
    """Refuse options before a subcommand: they would be ignored."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            remedy = Remedy("cli.write-option-after-command", f"Write it behind {command}. See `applier skip {command} --help`")
            raise ConfigError(f"--{name.replace('_', '-')} stands before {command}", remedy=remedy)


def _choice(
    stream: str | None,
    offset: int | None,
    event: int | None,
    ts: str | None,
    table: str | None,
    of_log: tuple[str | None, str | None] = (None, None),
) -> Choice:
    position, gtid = of_log
    if (position is None) != (gtid is None) and stream is None and offset is None and ts is None and table is None:
        return Choice(None, Offset(0), event, "", None, position, gtid)
    if position is not None or gtid is not None:
        raise ConfigError(
            "--position or --gtid names a transaction alone",
            remedy=Remedy("cli.give-one-event", "Give one of them, and --event for one of its events"),
        )
    if stream is not None and offset is not None and ts is None and table is None:
        return Choice(parse_stream(stream), Offset(offset), event, "", None)
    if ts is not None and stream is None and offset is None and event is None:
        return Choice(None, Offset(0), None, ts, table)
    raise ConfigError(
        "the options do not name one event",
        remedy=Remedy("cli.give-record-or-ddl", "Give --stream and --offset (and --event), or --ts (and --table)"),
    )


@skip.command("list")
def list_skipped(config: ConfigPath = DEFAULT_CONFIG, *, as_json: AsJson = False) -> None:
    """Show what is skipped, and by whom.

    "passed": the replica is beyond it. "waiting": it is still to come, and applier skip undo can undo it.
    """
    settings = read_config(config)
    with open_sink_of(settings) as sink:
        sink.bookkeeping.overview()  # refuses a sink without bookkeeping, or with that of another version
        use_places_of(settings, sink)
        found = skip_list.skipped(sink)
    print_entries(found, skip_list.as_object if as_json else None, skip_list.as_lines, "nothing is skipped")


@skip.command("undo")
def undo(  # noqa: PLR0913 - one parameter per option of the command line
    config: ConfigPath = DEFAULT_CONFIG,
    *,
    stream: OfStream = None,
    offset: AtOffset = None,
    event: EventIndex = None,
    ts: AtTs = None,
    table: OfTable = None,
    position: LogPosition = None,
) -> None:
    """Undo a skip that the replica has not passed yet.

    Give the options that applier skip list shows.
    """
    choice, settings = _choice(stream, offset, event, ts, table, (position, None)), read_config(config)
    with open_sink_of(settings) as sink:
        sink.bookkeeping.overview()  # refuses a sink without bookkeeping, or with that of another version
        use_places_of(settings, sink)
        if choice.position is not None:
            place = named_record(settings, choice.position, None, sink.load())
            found = skip_list.chosen_by_place(sink, place.stream, place.offset, choice.event)
        elif choice.stream is not None:
            found = skip_list.chosen_by_place(sink, choice.stream, choice.offset, choice.event)
        else:
            wanted = ts_of_text(settings, choice.ts, sink) or Ts(0)
            found = skip_list.chosen_by_time(sink, wanted, None if choice.table is None else parse_table(choice.table))
        if any(one.entry is not None for one in found):
            # A run that is alive may be about to read the DDL.
            sink.acquire()
        for one in found:
            if one.rule is not None:
                sink.bookkeeping.quarantine.remove_skip_rule(one.rule)
            elif one.entry is not None:
                sink.bookkeeping.forget_skipped_ddl(one.entry.identity)
            print_line(f"not skipped any more: {skip_list.as_lines(one)[0].partition('  ')[2]}; {AT_NEXT_START}")


def skip_place(settings: Config, stream: Stream, offset: Offset, event: int | None) -> None:
    """Skip a record, or one event of it. ConfigError if the replica has passed it, or there is no such event."""
    # Before anything is written: a rule about a record that was applied would never match, and look as if it did.
    _check_not_passed(settings, stream, offset)
    _check_topic(settings, stream)
    kit = source_kit(settings)
    with kit.open(kit.decoder(settings.source.selection())) as source:
        record, decoder = _record(source, stream, offset, event), source.decoder
        origin_of = kit.origin_of(source)
        use_timeline(source.timeline)
    events = _events(decoder, stream, record, event)
    ddls = {index: ddl for index, found in events.items() if (ddl := _ddl_of(found)) is not None}
    for ddl in ddls.values():
        _skip_ddl(settings, ddl)
    # For a readable DDL the ledger's entry is enough. A listener skips anything else only by a rule.
    left = [index for index, found in events.items() if not isinstance(found, DdlEvent)]
    with open_sink_of(settings) as sink:
        for index in [WHOLE_RECORD] if event is None and not ddls else left:
            sink.bookkeeping.quarantine.add_skip_rule(SkipRule(decided_by=operator(), place=EventPlace(stream, offset, index)))
    print_line(f"skipped: {record_text(stream, offset, timeline_in_use())}{'' if event is None else f'#{event}'}; {AT_NEXT_START}")
    for shown in inspect.decode(decoder, [(stream, record)], origin_of):
        for line in inspect.as_lines(shown):
            print_line(f"    {line}")


def _ddl_of(found: Placed | Unplaced) -> DdlEvent | None:
    """Return the event's DDL, or None. The key of an unreadable one is enough: the ledger identifies a DDL by it."""
    if isinstance(found, DdlEvent):
        return found
    head = found.head if isinstance(found, Unplaced) else None
    if head is None or not head.is_ddl:
        return None
    return DdlEvent(commit_ts=head.ts, schema=head.name.schema, table=head.name.table, query=SKIPPED_UNREAD, ddl_type=0)


def _skip_ddl(settings: Config, ddl: DdlEvent) -> None:
    """Write a DDL into the ledger as skipped. The sink is opened for this alone, because writing needs the replica's lock."""
    key = DdlIdentity(ddl.commit_ts, ddl.name.fold(), None) if ddl.query == SKIPPED_UNREAD else identity(ddl)
    with open_sink_of(settings) as sink:
        # A run may have begun the DDL: its entry is settled, not doubled.
        known = [entry for entry in sink.bookkeeping.ledger() if same_ddl(entry.identity, key)]
        if known and not known[0].state.is_open:
            print_line(f"already {known[0].state}: {one_line(known[0].ddl.query)} (ts {timeline_in_use().text(ddl.commit_ts)})")
            return
        write_skipped(sink, ddl, known[0].identity if known else key)
    print_line(f"skipped: {one_line(ddl.query)} (ts {timeline_in_use().text(ddl.commit_ts)})")


def skip_time(settings: Config, given: str, table: str | None, *, accept_future: bool) -> None:
    """Settle an unfinished or missed DDL in the ledger; else store a rule that skips all events with this timestamp."""
    if not accept_future and given.isdecimal():
        refuse_future(Ts(int(given)), source_kit(settings).timeline())
    with open_sink_of(settings) as sink:
        sink.migrate()
        use_places_of(settings, sink)
        ts = ts_of_text(settings, given, sink) or Ts(0)
        progress = sink.load()
        is_over = progress is not None and is_past(ts, progress.checkpoint_ts)
        if is_unfinished(sink.bookkeeping.ledger(), ts) or (is_over and table is not None):
            skip_by_time(sink, ts, table)
            return
        # Below the checkpoint nothing is read again, except DDLs that were missed.
        if is_over:
            raise ConfigError(
                "the checkpoint is above this timestamp: only a missed DDL can be skipped there",
                remedy=Remedy("cli.name-ddl-table", "Name the DDL's table with --table"),
                ts=ts,
            )
        name = None if table is None else parse_table(table).fold()
        sink.bookkeeping.quarantine.add_skip_rule(SkipRule(decided_by=operator(), commit_ts=ts, table=name))
    named, when = option_and_time(ts, timeline_in_use())
    at = f"{named} ({when})" if when else named
    print_line(f"skipped: everything at ts {at}{f' of {table}' if table else ''}; {AT_NEXT_START}")


def _check_not_passed(settings: Config, stream: Stream, offset: Offset) -> None:
    progress = _progress(settings)
    position = progress.positions.get(stream) if progress is not None else None
    if position is not None and offset < position.next_offset:
        raise ConfigError(
            "the replica has already passed this record",
            remedy=Remedy("cli.skip-unread-records", "Skip only records that the replica has not read past"),
            offset=offset,
            next=position.next_offset,
        )


def _check_topic(settings: Config, stream: Stream) -> None:
    if not is_named(stream.topic, settings.source.topics):
        raise ConfigError(
            f"{stream.topic} is not in source.topics",
            remedy=Remedy("cli.list-topics-to-skip", f"The topics are: {', '.join(settings.source.topics)}"),
        )


def _progress(settings: Config) -> Progress | None:
    with open_sink_of(settings) as sink:
        sink.migrate()
        use_places_of(settings, sink)
        return sink.load()


def _record(source: Source, stream: Stream, offset: Offset, event: int | None) -> Record:
    """Return the record at an offset. A large transaction has several: the one with the event, or the first if none is named."""
    found: Record | None = None
    if source.timeline.spells_offsets:
        for first_event, record in source.reader.records_at(stream, offset):
            if found is not None and first_event > (event or 0):
                break
            found = record
    else:
        choice = PeekChoice(topic=stream.topic, partition=stream.partition, start=offset, limit=1)
        found = next((record for _, record in peek(source, choice) if record.offset == offset), None)
    if found is None:
        raise ConfigError(
            "there is no record at this offset",
            remedy=Remedy("cli.inspect-offsets", "`applier inspect` shows the records and their offsets"),
            stream=str(stream),
            offset=offset,
        )
    return found


def _events(decoder: Decoder, stream: Stream, record: Record, event: int | None) -> dict[int, Placed | Unplaced]:
    """Return the chosen events by index. ConfigError if the record has no such event."""
    found = dict(decoder.placer(stream).place_each(record.offset, record.key, record.value))
    if event is None:
        return found
    if event in found:
        return {event: found[event]}
    remedy = (
        Remedy("cli.omit-event", "Omit --event: the record cannot be split into events")
        if WHOLE_RECORD in found
        else Remedy("cli.show-event-count", f"It has {count(len(found), 'event')}")
    )
    raise ConfigError(f"the record has no event {event}", remedy=remedy, stream=str(stream), offset=record.offset)
