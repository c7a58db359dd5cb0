"""What the ends of the topics show: their last records, decoded one by one."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from applier.model.errors import ProtocolError, SourceError
from applier.model.events import Event, ResolvedEvent, RowEvent, TableName
from applier.model.position import Offset, Place, Stream, Ts
from applier.model.range_report import RangeId
from applier.selection import TableSelection
from applier.sources.kafka.tso import physical_ms
from applier.sources.port import Record, Source

TIMESTAMP_TYPE: Final = 7
RECORDS: Final = 4_000
"""How many records are read of all streams together."""
MOST_RECORDS, LEAST_RECORDS = 200, 20


@dataclass(slots=True)
class TopicTail:
    """What was seen. ``ahead_s``: by how many seconds TIMESTAMP texts, read as UTC, are after the commit of their row."""

    selection: TableSelection
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
            events = source.decoder.events(record, Place(stream, Offset(record.offset)))
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
            self.ahead_s += [ahead for text in _timestamps(event) if (ahead := _ahead_s(text, event.commit_ts)) is not None]


def _timestamps(event: RowEvent) -> list[str]:
    columns = (event.after or {}).values()
    return [column.value for column in columns if column.mysql_type == TIMESTAMP_TYPE and isinstance(column.value, str)]


def _ahead_s(text: str, commit_ts: Ts) -> float | None:
    try:
        moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:  # 0000-00-00 is a value
        return None
    return moment.timestamp() - physical_ms(commit_ts) / 1000
