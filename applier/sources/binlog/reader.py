"""Reads ranges of the log on an executor, each exactly. A process keeps a connection, which goes on where the next range follows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from applier.model.errors import SourceError
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId
from applier.sources.binlog.idle_stream import IdleStreams
from applier.sources.binlog.one_group import LogLookup, numbered
from applier.sources.binlog.range_reading import Log, RangeReading
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.binlog.skipped_groups import NONE_SKIPPED, SkippedGroups
from applier.sources.port import Record
from applier.sources.whole_range import read_whole

Found: TypeAlias = tuple[RangeId, list[Record] | SourceError]

IDLE: Final = IdleStreams()
"""The connections of this process that nobody reads with."""


@dataclass(frozen=True, slots=True)
class BinlogRangeReader:
    """Implements ``RangeReader``.

    ``prepared``: for each xid where it was prepared, ascending, as far as a commit may still be read. ``server``: its identity; a range
    fails with "other_server" where another one answers. ``skipped``: groups that are executed already.
    """

    settings: BinlogSettings = field(repr=False)
    base_name: str
    prepared: Mapping[str, tuple[int, ...]]
    server: str = ""
    skipped: SkippedGroups = NONE_SKIPPED

    def records_at(self, stream: Stream, offset: Offset) -> Iterator[tuple[int, Record]]:
        """Yield the parts of the group that begins at ``offset``. SourceError of kind "position": none begins there."""
        wanted = RangeId(stream, offset, LogLookup(self.settings, self.base_name).end_of(offset))
        return numbered((records for _, records in read_whole(self, [wanted])), offset)

    def read(self, ranges: Sequence[RangeId]) -> Iterator[Found]:
        """Yield the ranges' records, one range after another."""
        log = Log(self.settings, self.base_name, self.prepared, self.server, self.skipped)
        # Taken out while it is used: a caller that has not finished an earlier call gets another one.
        key = self.settings, self.server
        stream = IDLE.take(key)
        failure: SourceError | None = None
        try:
            for wanted in sorted(ranges, key=lambda each: each.start):
                reading = RangeReading(log, wanted.start, wanted.end, stream)
                try:
                    # A server that did not answer for one range is not waited for again for each of the others.
                    if failure is None:
                        for records in reading.batches():
                            yield wanted, records
                    else:
                        yield wanted, failure
                except SourceError as error:
                    failure = error if error.facts.get("kind") == "unreachable" else None
                    yield wanted, error
                finally:
                    stream = reading.stream
        finally:
            if stream is not None:
                IDLE.keep(key, stream)
