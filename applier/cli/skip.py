"""``applier skip``: the operator's decision that one event is not applied; what is skipped is stored in the quarantine.

A row, a record that cannot be read, a resolved event: the rule is stored, and the next run follows it. A DDL goes to the ledger at once,
as with ``applier ddl skip``: its copies on other partitions and later replays neither run nor stop the replica.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, NamedTuple

import typer

from applier.cli import inspect
from applier.cli.ddl import AFTER_BEGIN, SKIPPED_BY, SKIPPED_UNREAD, is_unfinished, open_sink_of, skip_by_time, write_skipped
from applier.cli.option import (
    AcceptFuture,
    AsJson,
    AtTs,
    ConfigPath,
    EventIndex,
    LogGtid,
    LogPosition,
    OfTable,
    known_sink,
    named_record,
    parse_stream,
    parse_table,
    read_config,
    record_text,
    refuse_future,
    source_kit,
    ts_of_text,
)
from applier.cli.output import DEFAULT_CONFIG, print_entries, print_line
from applier.config import Config
from applier.ddl import identity, same_ddl
from applier.model.errors import ConfigError, Remedy, errors_spelled_by
from applier.model.events import DdlEvent, DdlIdentity, TableName
from applier.model.position import Offset, Stream, Timeline, Ts
from applier.model.rejected_event import WHOLE_RECORD, EventPosition
from applier.model.segment import is_past
from applier.model.topic_name import is_named
from applier.sinks.ledger_entry import DdlState, LedgerEntry
from applier.sinks.port import Sink
from applier.sinks.progress import Progress
from applier.sinks.quarantine import SkipRule
from applier.sources.peek import PeekChoice, peek
from applier.sources.port import Decoder, Placed, Record, Source, Unplaced
from applier.telemetry.log import utc_text
from applier.telemetry.wording import count, one_line, operator, option_and_time, printable

SEE: Final = Remedy("cli.list-skips", "See `applier skip list`")


class Skipped(NamedTuple):
    """One skipped event or DDL. ``entry`` of a DDL in the ledger, ``rule`` of anything else; ``is_passed``: the replica is beyond it."""

    rule: SkipRule | None
    entry: LedgerEntry | None
    is_passed: bool

    @property
    def by(self) -> str:
        """Who has decided it; '' for ``[ddl]`` of the configuration."""
        if self.rule is not None:
            return self.rule.decided_by
        if self.entry is not None and self.entry.error.startswith(SKIPPED_BY):
            return self.entry.error.removeprefix(SKIPPED_BY).removesuffix(AFTER_BEGIN)
        return "an operator" if self.entry is not None and self.entry.ddl.query == SKIPPED_UNREAD else ""

    @property
    def at(self) -> datetime | None:
        """When it was decided, or found."""
        return self.rule.decided_at if self.rule is not None else self.entry.began_at if self.entry is not None else None


def skipped(sink: Sink) -> list[Skipped]:
    """Return what is skipped: the operator's rules, then the DDLs."""
    progress = sink.load()
    rules = [Skipped(rule, None, _is_rule_passed(rule, progress)) for rule in sink.bookkeeping.quarantine.skip_rules()]
    ddls = [entry for entry in sink.bookkeeping.ledger() if entry.state is DdlState.SKIPPED]
    return rules + [Skipped(None, entry, progress is not None and is_past(entry.identity.ts, progress.checkpoint_ts)) for entry in ddls]


def _is_rule_passed(rule: SkipRule, progress: Progress | None) -> bool:
    if progress is None:
        return False
    if rule.position is None:
        return is_past(rule.commit_ts, progress.checkpoint_ts)
    position = progress.positions.get(rule.position.stream)
    return position is not None and rule.position.offset < position.next_offset


def as_object(found: Skipped) -> dict[str, Any]:
    """Return one of them for programs."""
    rule, entry = found.rule, found.entry
    position = rule.position if rule is not None else None
    ts = rule.commit_ts if rule is not None else entry.identity.ts if entry is not None else 0
    table = rule.table if rule is not None else entry.ddl.name if entry is not None else None
    return {
        "stream": None if position is None else str(position.stream),
        "offset": None if position is None else position.offset,
        "event": None if position is None or position.event < 0 else position.event,
        "ts": ts or None,
        "table": None if table is None else str(table),
        "ddl": None if entry is None else entry.ddl.query,
        "by": found.by or "[ddl]",
        "at": None if found.at is None else found.at.isoformat(),
        "passed": found.is_passed,
    }


def as_lines(found: Skipped, timeline: Timeline) -> list[str]:
    """Return one of them for people: what, whether the replica has passed it, and who has decided it."""
    state = "passed " if found.is_passed else "waiting"
    when = f" at {utc_text(found.at)}" if found.at is not None else ""
    who = f"by {found.by}{when}" if found.by else "by [ddl] in the configuration"
    return [f"{state}  {_what(found, timeline)}", f"    {who}"]


def _what(found: Skipped, timeline: Timeline) -> str:
    if found.entry is not None:
        ddl = found.entry.ddl
        return f"{_at(ddl.commit_ts, str(ddl.name), timeline)}  {one_line(ddl.query)}"
    rule = found.rule
    if rule is None or rule.position is None:
        ts = rule.commit_ts if rule is not None else Ts(0)
        return f"{_at(ts, None if rule is None or rule.table is None else str(rule.table), timeline)}  all events"
    event = f" --event {rule.position.event}" if rule.position.event >= 0 else ""
    if timeline.spells_offsets:
        return f"--position {option_and_time(Ts(rule.position.offset), timeline)[0]}{event}"
    return f"--stream {rule.position.stream} --offset {rule.position.offset}{event}"


def _at(ts: Ts, table: str | None, timeline: Timeline) -> str:
    named, when = option_and_time(ts, timeline)
    options = f"--ts {named}" if table is None else f"--ts {named} --table {printable(table)}"
    return f"{options}  {when}" if when else options


def chosen_by_position(sink: Sink, stream: Stream, offset: Offset, event: int | None) -> list[Skipped]:
    """Return the rules about a record (or one event of it); ConfigError if there is none, or the replica has passed it."""
    found = [
        one
        for one in skipped(sink)
        if one.rule is not None
        and one.rule.position is not None
        and one.rule.position[:2] == (stream, offset)
        and event in {None, one.rule.position.event}
    ]
    return _still_open(found)


def chosen_by_time(sink: Sink, ts: Ts, table: TableName | None) -> list[Skipped]:
    """Return the rules and the DDLs of a timestamp (and table); ConfigError as ``chosen_by_position``."""
    name = None if table is None else table.fold()
    found = [one for one in skipped(sink) if _ts_of(one) == ts and (name is None or _table_of(one) == name)]
    policy = [one for one in found if not one.by]
    if found and len(policy) == len(found):
        raise ConfigError(
            "this DDL is skipped by [ddl] in the configuration",
            remedy=Remedy("cli.change-ddl-setting", "Change [ddl], and restart the daemon"),
            ts=ts,
        )
    return _still_open([one for one in found if one.by])


def _ts_of(found: Skipped) -> int:
    if found.entry is not None:
        return found.entry.identity.ts
    return found.rule.commit_ts if found.rule is not None and found.rule.position is None else 0


def _table_of(found: Skipped) -> object:
    if found.entry is not None:
        return found.entry.ddl.name.fold()
    return found.rule.table if found.rule is not None else None


def _still_open(found: Sequence[Skipped]) -> list[Skipped]:
    if not found:
        raise ConfigError("nothing like this is skipped", remedy=SEE)
    begun = [one for one in found if one.entry is not None and one.entry.error.endswith(AFTER_BEGIN)]
    passed = [one for one in found if one.is_passed]
    if begun or len(passed) == len(found):
        remedy = Remedy(
            "cli.apply-from-quarantine",
            "If it is in the quarantine, apply it: `applier quarantine list` shows its position, "
            "`applier quarantine retry --stream … --offset …` applies it. A DDL must be run on the sink by hand",
        )
        raise ConfigError("the replica has passed what was skipped: it cannot be undone", remedy=remedy)
    return [one for one in found if not one.is_passed]


AT_NEXT_START: Final = "effective from the next start (restart a daemon that runs now)"

skip = typer.Typer(invoke_without_command=True)

OfStream = Annotated[str | None, typer.Option("--stream", metavar="TOPIC/PARTITION", help="Stream of the record.")]
AtOffset = Annotated[int | None, typer.Option("--offset", metavar="N", min=0, help="Offset of the record.")]


class Choice(NamedTuple):
    """What the options name: a position, a transaction of a binlog, or a timestamp."""

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
    """Skip an event by its position or its commit timestamp.

    A position is --stream with --offset, and --event for one event of the record; of a binlog, --position or --gtid names a transaction.
    The quarantine stores what was skipped. applier inspect shows positions and timestamps.
    """
    if context.invoked_subcommand is not None:
        _refuse_given(context, context.invoked_subcommand)
        return
    choice = _choice(stream, offset, event, ts, table, (position, gtid))
    if choice.position is not None or choice.gtid is not None:
        settings = read_config(config)
        with known_sink(settings, migrates=True) as known:
            progress = known.sink.load()
        record, timeline = named_record(settings, choice.position, choice.gtid, progress)
        with errors_spelled_by(timeline):
            skip_record(settings, record.stream, record.offset, choice.event)
    elif choice.stream is not None:
        skip_record(read_config(config), choice.stream, choice.offset, choice.event)
    else:
        skip_time(read_config(config), choice.ts, choice.table, accept_future=accept_future)


def _refuse_given(context: typer.Context, command: str) -> None:
    """Refuse options before a subcommand: they would be ignored."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            remedy = Remedy("cli.write-option-after-command", f"Write it after {command}. See `applier skip {command} --help`")
            raise ConfigError(f"--{name.replace('_', '-')} comes before {command}", remedy=remedy)


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
    with known_sink(settings) as known:
        known.sink.bookkeeping.overview()  # refuses a sink without bookkeeping, or with that of another version
        found = skipped(known.sink)
    print_entries(found, as_object if as_json else None, partial(as_lines, timeline=known.timeline), "nothing is skipped")


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
    with known_sink(settings) as (sink, timeline):
        sink.bookkeeping.overview()  # refuses a sink without bookkeeping, or with that of another version
        if choice.position is not None:
            record, _ = named_record(settings, choice.position, None, sink.load())
            found = chosen_by_position(sink, record.stream, record.offset, choice.event)
        elif choice.stream is not None:
            found = chosen_by_position(sink, choice.stream, choice.offset, choice.event)
        else:
            wanted = ts_of_text(settings, choice.ts, sink) or Ts(0)
            found = chosen_by_time(sink, wanted, None if choice.table is None else parse_table(choice.table))
        if any(one.entry is not None for one in found):
            # A run that is alive may be about to read the DDL.
            sink.acquire()
        for one in found:
            if one.rule is not None:
                sink.bookkeeping.quarantine.remove_skip_rule(one.rule)
            elif one.entry is not None:
                sink.bookkeeping.forget_skipped_ddl(one.entry.identity)
            print_line(f"not skipped any more: {as_lines(one, timeline)[0].partition('  ')[2]}; {AT_NEXT_START}")


def skip_record(settings: Config, stream: Stream, offset: Offset, event: int | None) -> None:
    """Skip a record, or one event of it. ConfigError if the replica has passed it, or there is no such event."""
    # Before anything is written: a rule about a record that was applied would never match, and look as if it did.
    _check_not_passed(settings, stream, offset)
    _check_topic(settings, stream)
    kit = source_kit(settings)
    with kit.open(kit.decoder(settings.source.selection())) as source:
        record, decoder, timeline = _record(source, stream, offset, event), source.decoder, source.timeline
        origin_of = kit.origin_of(source)
    with errors_spelled_by(timeline):
        events = _events(decoder, stream, record, event)
    ddls = {index: ddl for index, found in events.items() if (ddl := _ddl_of(found)) is not None}
    for ddl in ddls.values():
        _skip_ddl(settings, ddl, timeline)
    # For a readable DDL the ledger's entry is enough. A listener skips anything else only by a rule.
    left = [index for index, found in events.items() if not isinstance(found, DdlEvent)]
    with open_sink_of(settings) as sink:
        for index in [WHOLE_RECORD] if event is None and not ddls else left:
            sink.bookkeeping.quarantine.add_skip_rule(SkipRule(decided_by=operator(), position=EventPosition(stream, offset, index)))
    print_line(f"skipped: {record_text(stream, offset, timeline)}{'' if event is None else f'#{event}'}; {AT_NEXT_START}")
    for shown in inspect.decode(decoder, [(stream, record)], origin_of):
        for line in inspect.as_lines(shown, timeline):
            print_line(f"    {line}")


def _ddl_of(found: Placed | Unplaced) -> DdlEvent | None:
    """Return the event's DDL, or None. The key of an unreadable one is enough: the ledger identifies a DDL by it."""
    if isinstance(found, DdlEvent):
        return found
    head = found.head if isinstance(found, Unplaced) else None
    if head is None or not head.is_ddl:
        return None
    return DdlEvent(commit_ts=head.ts, schema=head.name.schema, table=head.name.table, query=SKIPPED_UNREAD, ddl_type=0)


def _skip_ddl(settings: Config, ddl: DdlEvent, timeline: Timeline) -> None:
    """Write a DDL into the ledger as skipped. The sink is opened for this alone, because writing needs the replica's lock."""
    key = DdlIdentity(ddl.commit_ts, ddl.name.fold(), None) if ddl.query == SKIPPED_UNREAD else identity(ddl)
    with open_sink_of(settings) as sink:
        # A run may have begun the DDL: its entry is settled, not doubled.
        known = [entry for entry in sink.bookkeeping.ledger() if same_ddl(entry.identity, key)]
        if known and not known[0].state.is_open:
            print_line(f"already {known[0].state}: {one_line(known[0].ddl.query)} (ts {timeline.text(ddl.commit_ts)})")
            return
        write_skipped(sink, ddl, known[0].identity if known else key)
    print_line(f"skipped: {one_line(ddl.query)} (ts {timeline.text(ddl.commit_ts)})")


def skip_time(settings: Config, given: str, table: str | None, *, accept_future: bool) -> None:
    """Settle an unfinished or missed DDL in the ledger; else store a rule that skips all events with this timestamp."""
    if not accept_future and given.isdecimal():
        refuse_future(Ts(int(given)), source_kit(settings).timeline())
    with known_sink(settings, migrates=True) as known:
        sink, timeline = known
        ts = ts_of_text(settings, given, sink) or Ts(0)
        progress = sink.load()
        is_over = progress is not None and is_past(ts, progress.checkpoint_ts)
        if is_unfinished(sink.bookkeeping.ledger(), ts) or (is_over and table is not None):
            skip_by_time(known, ts, table)
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
    named, when = option_and_time(ts, timeline)
    at = f"{named} ({when})" if when else named
    print_line(f"skipped: everything at ts {at}{f' of {table}' if table else ''}; {AT_NEXT_START}")


def _check_not_passed(settings: Config, stream: Stream, offset: Offset) -> None:
    with known_sink(settings, migrates=True) as known:
        progress = known.sink.load()
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
