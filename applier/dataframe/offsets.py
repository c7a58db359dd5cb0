"""The position of a streaming query, as Spark keeps it in the query's checkpoint: ``{"topics": {TOPIC: {"id": …, "next": {"0": 12}}}}``.

``id`` is that of the topic: one that was deleted and created again is noticed. ``first`` holds the first offsets of partitions that are
new in a batch, so that a batch that is repeated after a crash has the same rows.
"""

from collections.abc import Collection, Mapping
from typing import Any

from applier.model.errors import SourceError
from applier.model.listing import PartitionExtent
from applier.model.position import Offset, Stream
from applier.model.range_report import RangeId

RESTART = "Start the query with a new checkpoint directory; what it has written stays as it is"


def position_document(
    offsets: Mapping[Stream, Offset], ids: Mapping[str, str], first: Mapping[Stream, Offset] | None = None
) -> dict[str, Any]:
    """Return a position as a JSON document."""
    topics: dict[str, Any] = {}
    for name, values in (("next", offsets), ("first", first or {})):
        for stream, offset in sorted(values.items()):
            topic = topics.setdefault(stream.topic, {"id": ids[stream.topic]} if stream.topic in ids else {})
            topic.setdefault(name, {})[str(stream.partition)] = int(offset)
    return {"topics": topics}


def offsets_in(document: Mapping[str, Any], name: str = "next") -> dict[Stream, Offset]:
    """Return the offsets of a position."""
    topics = document.get("topics", {})
    return {Stream(topic, int(number)): Offset(at) for topic, held in topics.items() for number, at in held.get(name, {}).items()}


def check_topics(document: Mapping[str, Any], ids: Mapping[str, str], extents: Mapping[Stream, PartitionExtent]) -> None:
    """SourceError if a topic was deleted and created again since, or a partition ends before the stored offset."""
    for topic, held in document.get("topics", {}).items():
        known, now = held.get("id"), ids.get(topic)
        if known is not None and now is not None and known != now:
            raise SourceError("the topic was deleted and created again", remedy=RESTART, kind="recreated", topic=topic)
    for stream, offset in offsets_in(document).items():
        extent = extents.get(stream)
        if extent is None:
            raise SourceError("a partition that was read does not exist any more", remedy=RESTART, kind="recreated", **stream._asdict())
        if extent.end < offset:
            remedy = f"The topic was created again, or its records were deleted. {RESTART}"
            raise SourceError("the partition ends before what was read of it", remedy=remedy, kind="recreated", **stream._asdict())


def ranges_between(start: Mapping[str, Any], end: Mapping[str, Any]) -> list[RangeId]:
    """Return what lies between two positions: always the same, whenever it is asked."""
    begun = offsets_in(end, "first") | offsets_in(start)
    return [RangeId(stream, begun[stream], offset) for stream, offset in offsets_in(end).items() if begun[stream] < offset]


def limited(begun: Mapping[Stream, Offset], ends: Mapping[Stream, Offset], at_most: int | None) -> dict[Stream, Offset]:
    """Return ends that are together about ``at_most`` offsets away: each stream gets its share of what waits, and one at least."""
    waiting = {stream: max(0, end - begun[stream]) for stream, end in ends.items()}
    total = sum(waiting.values())
    if at_most is None or total <= at_most:
        return {stream: Offset(begun[stream] + left) for stream, left in waiting.items()}
    return {stream: Offset(begun[stream] + min(left, max(1, left * at_most // total))) for stream, left in waiting.items()}


def new_streams(start: Mapping[str, Any], streams: Collection[Stream]) -> set[Stream]:
    """Return the streams that a position does not have."""
    return set(streams) - offsets_in(start).keys()
