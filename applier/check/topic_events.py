"""Examines the events of the topics: that they can be read, and that each partition continues to get resolved events."""

import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from applier.check.shared_facts import SharedFacts
from applier.check.time_zone import zone_findings
from applier.config import Config
from applier.config.section import OnRejectedEvent
from applier.coordinator.streams import has_held_records, is_required
from applier.model.errors import ProtocolError, Remedy, SourceError
from applier.model.events import Event, ResolvedEvent, RowEvent, TableName
from applier.model.failure import NEVER_QUARANTINED
from applier.model.finding import CheckFinding, Severity, of_error, ok, problem, warning
from applier.model.position import Listing, Offset, RecordPosition, Stream, Timeline, Ts
from applier.model.range_report import RangeId
from applier.selection import TableSelection
from applier.sinks.progress import Progress
from applier.sources.port import Record, Source
from applier.telemetry.wording import MOST_NAMED, count, named_some, time_text

TIMESTAMP_TYPE: Final = 7
RECORDS: Final = 4_000
"""How many records are read of all streams together."""
MOST_RECORDS, LEAST_RECORDS = 200, 20


@dataclass(slots=True)
class TopicTail:
    """What was seen. ``ahead_s``: by how many seconds TIMESTAMP texts, read as UTC, are after the commit of their row."""

    selection: TableSelection
    timeline: Timeline
    resolved: dict[Stream, Ts] = field(default_factory=dict)
    tables: set[TableName] = field(default_factory=set)
    failures: list[SourceError] = field(default_factory=list)
    ahead_s: list[float] = field(default_factory=list)
    has_claim_checks: bool = False
    has_key_only_rows: bool = False
    records: int = 0

    def read(self, source: Source, ranges: Iterable[tuple[Stream, Offset, Offset]]) -> None:
        """Read the last records of these offsets, and note what they show."""
        chosen = [each for each in ranges if each[1] < each[2]]
        each_reads = min(MOST_RECORDS, max(LEAST_RECORDS, RECORDS // max(1, len(chosen))))
        wanted = [RangeId(stream, Offset(max(start, end - each_reads)), end) for stream, start, end in chosen]
        for range_id, found in source.reader.read(wanted):
            if isinstance(found, SourceError):
                self.failures.append(found)
                continue
            for record in found:
                self._note(source, range_id.stream, record)

    def newest(self, streams: Iterable[Stream]) -> Ts:
        """Return the newest resolved timestamp of some streams; 0: none."""
        return max((self.resolved.get(stream, Ts(0)) for stream in streams), default=Ts(0))

    def _note(self, source: Source, stream: Stream, record: Record) -> None:
        self.records += 1
        try:
            events = source.decoder.events(record, RecordPosition(stream, Offset(record.offset)))
        except ProtocolError as error:
            self.failures.append(error)
            return
        for event in events:
            self._note_event(stream, event)

    def _note_event(self, stream: Stream, event: Event) -> None:
        if isinstance(event, ResolvedEvent):
            self.resolved[stream] = max(self.resolved.get(stream, Ts(0)), event.ts)
        elif isinstance(event, RowEvent):
            self.has_claim_checks |= bool(event.claim_check)
            self.has_key_only_rows |= event.only_handle_key
            name = TableName(event.schema, event.table)
            if self.selection.has(name):
                self.tables.add(self.selection.name(name))
            self.ahead_s += [ahead for text in _timestamps(event) if (ahead := self._ahead_s(text, event.commit_ts)) is not None]

    def _ahead_s(self, text: str, commit_ts: Ts) -> float | None:
        try:
            moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
        except ValueError:  # 0000-00-00 is a value
            return None
        return moment.timestamp() - (self.timeline.time_ms(commit_ts) or 0) / 1000


def _timestamps(event: RowEvent) -> list[str]:
    columns = (event.after or {}).values()
    return [column.value for column in columns if column.mysql_type == TIMESTAMP_TYPE and isinstance(column.value, str)]


READ: Final = "topics: records"
RESOLVED: Final = "topics: resolved events"
LARGE: Final = "topics: large messages"
POLL_S: Final = 0.3
CHANGEFEED_REMEDY: Final = Remedy(
    "check.check-changefeed-writes-topics", "Check that the changefeed runs (cdc cli changefeed query), and that it writes to these topics"
)
STALLED_REMEDY: Final = Remedy(
    "check.check-changefeed-writes-resolved",
    "Check that the changefeed runs: it writes resolved events to each partition that it uses, about one a second",
)
"""The same, as a catch-up reports it that cannot continue."""


def examine_events(
    config: Config, source: Source, shared: SharedFacts, listing: Listing, progress: Progress | None, wait_s: float
) -> Iterator[CheckFinding]:
    """Read the last records of each partition, then wait for new resolved events."""
    limits = config.source.required_partitions()
    streams = {stream: extent for stream, extent in listing.extents.items() if is_required(stream, limits) and has_held_records(extent)}
    if not streams:
        yield warning(READ, "no partition has held a record yet", CHANGEFEED_REMEDY)
        return
    tail = TopicTail(config.source.selection(), source.timeline)
    positions = {} if progress is None else progress.positions
    # A damaged record that the replica has passed is of no interest.
    tail.read(source, [(s, max(e.earliest, positions[s].next_offset if s in positions else e.earliest), e.end) for s, e in streams.items()])
    shared.set_tables(frozenset(tail.tables))
    yield from _read_findings(config, tail)
    yield from _large_findings(config, tail)
    yield from zone_findings(config, tail.ahead_s)
    fresh = _wait(source, {stream: extent.end for stream, extent in streams.items()}, tail, wait_s)
    yield from resolved_findings(streams, fresh, tail, wait_s)


def _read_findings(config: Config, tail: TopicTail) -> Iterator[CheckFinding]:
    tolerated = config.source.on_unreadable is OnRejectedEvent.QUARANTINE
    # A topic of another protocol fails the same way at each record.
    first = {(error.message, error.facts.get("topic")): error for error in reversed(tail.failures)}
    for error in list(reversed(first.values()))[:MOST_NAMED]:
        is_quarantined = tolerated and isinstance(error, ProtocolError) and error.fault not in NEVER_QUARANTINED
        level = Severity.WARNING if is_quarantined else Severity.ERROR
        yield of_error(READ, error, level=level)
    if not tail.failures:
        yield ok(READ, f"{count(tail.records, 'record')} at the ends of the partitions can be read")


def _large_findings(config: Config, tail: TopicTail) -> Iterator[CheckFinding]:
    if tail.has_claim_checks and config.source.claim_check_settings() is None:
        remedy = Remedy(
            "check.set-claim-check-storage", "Set storage under [source.claim_check] to the changefeed's claim-check-storage-uri"
        )
        yield problem(LARGE, "the topics have claim-check messages, and their storage is not configured", remedy)
    if tail.has_key_only_rows and config.source.upstream_settings() is None:
        yield problem(
            LARGE,
            "the topics have handle-key-only messages, and upstream is not configured",
            Remedy("check.set-source-upstream", "Set source.upstream to upstream's TiDB"),
        )


def _wait(source: Source, ends: dict[Stream, Offset], tail: TopicTail, wait_s: float) -> frozenset[Stream]:
    """Return the streams that got a resolved event within ``wait_s``."""
    seen = TopicTail(tail.selection, tail.timeline)
    until = time.monotonic() + wait_s
    while len(seen.resolved) < len(ends) and time.monotonic() < until:
        time.sleep(POLL_S)
        present = {stream: extent.end for stream, extent in source.listing().extents.items() if stream in ends}
        # A stream that has shown one needs no further reading.
        seen.read(source, [(stream, ends[stream], end) for stream, end in present.items() if stream not in seen.resolved])
        ends |= present
    tail.resolved |= {stream: max(ts, tail.resolved.get(stream, Ts(0))) for stream, ts in seen.resolved.items()}
    return frozenset(seen.resolved)


def resolved_findings(streams: Collection[Stream], fresh: frozenset[Stream], tail: TopicTail, wait_s: float) -> Iterator[CheckFinding]:
    """Judge which streams got resolved events. One that gets none while others do holds back the watermark for good."""
    silent = sorted(set(streams) - fresh)
    if not silent:
        yield ok(RESOLVED, f"each of {count(len(streams), 'partition')} got one within {wait_s:g} s")
    elif not fresh:
        newest = tail.newest(streams)
        last = f"the newest one is of {time_text(newest, tail.timeline)}" if newest else "the last records have none"
        yield warning(RESOLVED, f"no partition got one within {wait_s:g} s; {last}", CHANGEFEED_REMEDY)
    else:
        named = named_some([f"{stream} ({_since(tail, stream)})" for stream in silent])
        detail = f"{len(silent)} of {count(len(streams), 'partition')} got none within {wait_s:g} s, and others did: {named}"
        yield problem(RESOLVED, detail, STALLED_REMEDY)


def _since(tail: TopicTail, stream: Stream) -> str:
    newest = tail.resolved.get(stream)
    return "none in its last records" if newest is None else f"last {time_text(newest, tail.timeline)}"
