"""What a server's log holds at one time, for queries: its ends, its files, and how a record says where it is."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Self

from applier.model.errors import Remedy, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Offset, RecordPosition, Stream, Ts, moment_of
from applier.model.range_report import RangeId
from applier.sources.binlog.part import decode_head
from applier.sources.binlog.position import FIRST_POSITION, STREAM, BinlogPosition, file_name, split_file_name
from applier.sources.binlog.reader import BinlogRangeReader
from applier.sources.binlog.server import Server
from applier.sources.binlog.settings import BinlogSettings
from applier.sources.port import Record

MICROSECONDS: Final = 1_000


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """Implements ``PositionColumns``: the file and the position at which a group of events begins, and its GTID."""

    base_name: str

    columns = (("file", "STRING"), ("position", "BIGINT"), ("gtid", "STRING"))

    def of(self, record: Record, position: RecordPosition) -> tuple[str, int, str | None]:
        """Return file, position, and GTID (NULL without)."""
        at = BinlogPosition.of(position.offset)
        return file_name(self.base_name, at.file), at.position, decode_head(record.key).gtid or None

    def time(self, _ts: Ts, record: Record) -> datetime:
        """Return the time that upstream has written with the group."""
        return moment_of(decode_head(record.key).time_us // MICROSECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinlogExtent:
    """Implements ``LogExtent``."""

    settings: BinlogSettings = field(repr=False)
    identity: str
    base_name: str
    first_file: int
    end: Offset

    @classmethod
    def of(cls, settings: BinlogSettings) -> Self:
        """Ask the server. SourceError: it does not answer, or writes no binlog."""
        with Server(settings) as server:
            end = server.end()
            if end is None:
                remedy = Remedy("dataframe.set-log-bin", "Set log_bin in the configuration of the server, and start it again")
                raise SourceError("the server writes no binlog", remedy=remedy, kind=FailureKind.REFUSED)
            position = Offset(BinlogPosition(0, end.number, end.position).number)
            first = server.files()[0].number
            return cls(settings=settings, identity=server.identity(), base_name=end.base_name, first_file=first, end=position)

    @property
    def stream(self) -> Stream:
        """The one stream."""
        return STREAM

    @property
    def earliest(self) -> Offset:
        """The beginning of its first file."""
        return Offset(BinlogPosition(0, self.first_file, FIRST_POSITION).number)

    @property
    def columns(self) -> GroupColumns:
        """The columns of a group."""
        return GroupColumns(self.base_name)

    def reader(self) -> BinlogRangeReader:
        """Return the reader of its ranges."""
        return BinlogRangeReader(self.settings, self.base_name, {}, self.identity)

    def offset(self, text: str) -> Offset | None:
        """Read ``FILE:POSITION``; None: it is not of that form."""
        file, colon, position = text.rpartition(":")
        if not (colon and position.isdecimal()):
            return None
        try:
            return Offset(BinlogPosition(0, split_file_name(file)[1], int(position)).number)
        except ValueError:
            return None

    def text(self, offset: Offset) -> str:
        """Spell an offset as ``FILE:POSITION``."""
        return BinlogPosition.of(offset).text(self.base_name)

    def parts(self, whole: RangeId) -> Iterator[RangeId]:
        """Yield the parts of a range, one for each file; nothing for an empty one."""
        _, start, end = whole
        while start < end:
            following = _file_behind(start, 1)
            yield RangeId(STREAM, start, min(following, end))
            start = following

    def end_of_files(self, start: Offset, files: int) -> Offset:
        """Return where so many files end, the one at ``start`` included."""
        return min(self.end, _file_behind(start, files))


def _file_behind(offset: Offset, files: int) -> Offset:
    at = BinlogPosition.of(offset)
    return Offset(BinlogPosition(at.generation, at.file + files, FIRST_POSITION).number)
