"""How a row of the changelog says where its event is, and when it was committed: each source has columns of its own for that."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from applier.dataframe.conversion import clean_text
from applier.model.position import RecordPosition, Ts
from applier.model.timeline import moment_of
from applier.sources.binlog.part import decode_head
from applier.sources.binlog.position import BinlogPosition, file_name
from applier.sources.factory import stored_timeline
from applier.sources.port import Record

MICROSECONDS: Final = 1_000


class PositionColumns(Protocol):
    """The columns between ``commit_time`` and ``event``. Frozen and picklable: it crosses to executors."""

    @property
    def columns(self) -> Sequence[tuple[str, str]]:
        """Return their names and Spark types."""
        ...

    def of(self, record: Record, position: RecordPosition) -> tuple[Any, ...]:
        """Return their values for the events of a record."""
        ...

    def time(self, ts: Ts, record: Record) -> datetime | None:
        """Return when an event of a record was committed."""
        ...


@dataclass(frozen=True, slots=True)
class TopicColumns:
    """A record of a topic; its timestamps hold their time."""

    columns = (("topic", "STRING"), ("partition", "INT"), ("offset", "BIGINT"))

    def of(self, _record: Record, position: RecordPosition) -> tuple[Any, ...]:
        """Return topic, partition, offset."""
        return clean_text(position.stream.topic), position.stream.partition, position.offset

    def time(self, ts: Ts, _record: Record) -> datetime | None:
        """Return the timestamp's time."""
        return moment_of(stored_timeline(None).time_ms(ts) or 0)


@dataclass(frozen=True, slots=True)
class BinlogColumns:
    """A group of events of a binlog: the file and the position at which it begins, and its GTID. ``base_name``: of the files."""

    base_name: str

    columns = (("file", "STRING"), ("position", "BIGINT"), ("gtid", "STRING"))

    def of(self, record: Record, position: RecordPosition) -> tuple[Any, ...]:
        """Return file, position, and GTID (NULL without)."""
        at = BinlogPosition.of(position.offset)
        return file_name(self.base_name, at.file), at.position, decode_head(record.key).gtid or None

    def time(self, _ts: Ts, record: Record) -> datetime:
        """Return the time that upstream has written beside the group."""
        return moment_of(decode_head(record.key).time_us // MICROSECONDS)
