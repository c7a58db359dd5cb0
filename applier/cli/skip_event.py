"""Carries out ``applier skip``: writes the operator's word where the next run finds it.

A row, a record that cannot be read, a resolved event: the word is heeded by the next run. A DDL goes to the ledger at once, as
``applier ddl skip`` does it, so that its copies on other partitions and later replays neither run nor stop the replica.
"""

from applier.cli import inspect
from applier.cli.ddl import SKIPPED_UNREAD, is_unfinished, open_sink_of, skip_by_time, write_skipped
from applier.cli.option import ConfigPath, read_config
from applier.cli.output import print_line
from applier.cli.place import parse_table
from applier.config import Config
from applier.ddl import identity, same_ddl
from applier.model.errors import ConfigError
from applier.model.events import DdlEvent, DdlIdentity
from applier.model.position import Offset, Place, Stream, Ts
from applier.model.rejected_event import WHOLE_RECORD, EventPlace
from applier.sinks.bookkeeping.quarantine import SkipRule
from applier.sinks.port import DdlState
from applier.sources.factory import open_source
from applier.sources.peek import PeekChoice, peek
from applier.sources.port import Decoder, Placed, Record, Source, Unplaced
from applier.telemetry.wording import count, moment, one_line, operator

AT_NEXT_START = "the next run leaves it out (one that runs now has to be started anew)"


def skip_place(config: ConfigPath, stream: Stream, offset: Offset, event: int | None) -> None:
    """Leave out a record, or one event of it. ConfigError if the replica has passed it, or there is no such event."""
    settings = read_config(config)
    _check_not_passed(settings, stream, offset)
    _check_topic(settings, stream)
    with open_source(settings.kafka_settings()) as source:
        record, decoder = _record(source, stream, offset), source.decoder
    events = _events(decoder, stream, record, event)
    ddls = {index: ddl for index, found in events.items() if (ddl := _ddl_of(found)) is not None}
    for ddl in ddls.values():
        _skip_ddl(settings, ddl)
    # The ledger settles a DDL that can be read; the listeners must be told of anything else.
    left = [index for index, found in events.items() if not isinstance(found, DdlEvent)]
    with open_sink_of(settings) as sink:
        for index in [WHOLE_RECORD] if event is None and not ddls else left:
            sink.quarantine.say(SkipRule(said_by=operator(), place=EventPlace(stream, offset, index)))
    print_line(f"skipped: {Place(stream, offset)}{'' if event is None else f'#{event}'}; {AT_NEXT_START}")
    for shown in inspect.decode(decoder, [(stream, record)]):
        for line in inspect.as_lines(shown):
            print_line(f"    {line}")


def _ddl_of(found: Placed | Unplaced) -> DdlEvent | None:
    """Return the DDL that an event is; one that cannot be read by what its key says, since that is its identity in the ledger."""
    if isinstance(found, DdlEvent):
        return found
    head = found.head if isinstance(found, Unplaced) else None
    if head is None or not head.is_ddl:
        return None
    return DdlEvent(commit_ts=head.ts, schema=head.name.schema, table=head.name.table, query=SKIPPED_UNREAD, ddl_type=0)


def _skip_ddl(settings: Config, ddl: DdlEvent) -> None:
    """Write a DDL into the ledger as skipped, by a sink of its own: it owns the replica just for that."""
    key = DdlIdentity(ddl.commit_ts, ddl.name.fold(), None) if ddl.query == SKIPPED_UNREAD else identity(ddl)
    with open_sink_of(settings) as sink:
        known = [entry for entry in sink.ledger() if same_ddl(entry.identity, key)]
        if known and known[0].state is not DdlState.INTENT:
            print_line(f"{known[0].state} already: {one_line(known[0].ddl.query)} (ts {ddl.commit_ts})")
            return
        write_skipped(sink, ddl, known[0].identity if known else key)
    print_line(f"skipped: {one_line(ddl.query)} (ts {ddl.commit_ts})")


def skip_time(config: ConfigPath, ts: Ts, table: str | None) -> None:
    """A DDL that was begun, or was missed, is settled in the ledger; whatever else has this timestamp will be left out."""
    with open_sink_of(read_config(config)) as sink:
        sink.migrate()
        progress = sink.load()
        is_past = progress is not None and ts < progress.checkpoint_ts
        if is_unfinished(sink.ledger(), ts) or (is_past and table is not None):
            skip_by_time(sink, ts, table)
            return
        if is_past:
            raise ConfigError(
                "the replica has applied this timestamp: only a DDL that it has missed can be skipped there",
                remedy="Say which one with --table",
                ts=ts,
            )
        name = None if table is None else parse_table(table).fold()
        sink.quarantine.say(SkipRule(said_by=operator(), commit_ts=ts, table=name))
    print_line(f"skipped: everything at ts {ts} ({moment(ts)}){f' of {table}' if table else ''}; {AT_NEXT_START}")


def _check_not_passed(settings: Config, stream: Stream, offset: Offset) -> None:
    with open_sink_of(settings) as sink:
        sink.migrate()
        progress = sink.load()
    position = progress.positions.get(stream) if progress is not None else None
    if position is not None and offset < position.next_offset:
        raise ConfigError("the replica has passed this record", remedy="There is nothing to skip", offset=offset, next=position.next_offset)


def _check_topic(settings: Config, stream: Stream) -> None:
    if stream.topic not in settings.source.topics:
        raise ConfigError(f"{stream.topic} is not among source.topics", remedy=f"They are: {', '.join(settings.source.topics)}")


def _record(source: Source, stream: Stream, offset: Offset) -> Record:
    choice = PeekChoice(topic=stream.topic, partition=stream.partition, start=offset, limit=1)
    found = next((record for _, record in peek(source, choice) if record.offset == offset), None)
    if found is None:
        raise ConfigError("there is no record at this offset", remedy="See: applier inspect", stream=str(stream), offset=offset)
    return found


def _events(decoder: Decoder, stream: Stream, record: Record, event: int | None) -> dict[int, Placed | Unplaced]:
    """Return the events that are meant, by index. ConfigError if the record does not have that one."""
    found = dict(decoder.placer(stream).place_each(record.offset, record.key, record.value))
    if event is None:
        return found
    if event in found:
        return {event: found[event]}
    remedy = "Leave --event out: it cannot be taken apart" if WHOLE_RECORD in found else f"It has {count(len(found), 'event')}"
    raise ConfigError(f"the record has no event {event}", remedy=remedy, stream=str(stream), offset=record.offset)
