"""What ``applier inspect`` knows of a binlog's records before their events are decoded: transaction, place and time."""

from collections.abc import Iterator
from dataclasses import dataclass

from applier.cli.inspected import LogOrigin, OriginOf
from applier.model.errors import ProtocolError
from applier.model.position import Offset, Stream
from applier.sources.binlog.part import decode_head
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.reader import BinlogRangeReader
from applier.sources.binlog.timeline import StoredTimeline
from applier.sources.port import Record, Source
from applier.telemetry.log import use_timeline


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTransactions:
    """Which transactions are shown. None: no restriction. ``position``: where one begins."""

    gtid: str | None = None
    position: Offset | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def of(self, records: Iterator[tuple[Stream, Record]]) -> Iterator[tuple[Stream, Record]]:
        """Yield the records of these transactions. Stops where no further one can come."""
        for stream, record in records:
            if self.position is not None and record.offset > self.position:
                return
            if self._has(record):
                yield stream, record

    def _has(self, record: Record) -> bool:
        try:
            head = decode_head(record.key)
        except ProtocolError:
            return True
        is_named = self.gtid in {None, head.gtid} and self.position in {None, record.offset}
        time_ms = head.time_us // 1000
        return is_named and (self.since_ms or 0) <= time_ms and (self.until_ms is None or time_ms <= self.until_ms)


def origins_in(source: Source) -> OriginOf:
    """Return what names the transaction of a record; of a topic's record it says nothing."""
    reader = source.reader
    if not isinstance(reader, BinlogRangeReader):
        return lambda _: None
    base_name = reader.base_name
    # Errors about records name their places by it too.
    use_timeline(StoredTimeline(base_name=base_name))

    def origin_of(record: Record) -> LogOrigin | None:
        try:
            head = decode_head(record.key)
        except ProtocolError:
            return None
        return LogOrigin(head.time_us // 1000, BinlogPosition.of(record.offset).text(base_name), head.gtid)

    return origin_of
