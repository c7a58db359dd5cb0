"""How a row of the changelog says where in a topic its event is. A source that is one log has columns of its own (``SourceKit.extent``)."""

from dataclasses import dataclass
from datetime import datetime

from applier.dataframe.conversion import clean_text
from applier.model.position import RecordPosition, Timeline, Ts, moment_of
from applier.sources.port import Record


@dataclass(frozen=True, slots=True)
class TopicColumns:
    """Implements ``PositionColumns``: a record of a topic. ``timeline``: its timestamps hold their time."""

    timeline: Timeline

    columns = (("topic", "STRING"), ("partition", "INT"), ("offset", "BIGINT"))

    def of(self, _record: Record, position: RecordPosition) -> tuple[str, int, int]:
        """Return topic, partition, offset."""
        return clean_text(position.stream.topic), position.stream.partition, position.offset

    def time(self, ts: Ts, _record: Record) -> datetime | None:
        """Return the timestamp's time."""
        return moment_of(self.timeline.time_ms(ts) or 0)
