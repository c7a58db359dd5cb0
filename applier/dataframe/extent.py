"""From ``start`` and ``end`` to offset ranges (earliest, latest, a time, offsets as JSON), and the position of a streaming query.

Spark keeps that position in the query's checkpoint: ``{"topics": {TOPIC: {"id": …, "next": {"0": 12}}}}``. ``id`` is that of the topic:
one that was deleted and created again is noticed. ``first`` holds the first offsets of partitions that are new in a batch, so that a
batch that is repeated after a crash has the same rows.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from applier.dataframe.options import EARLIEST, LATEST, ChangelogOptions
from applier.model.errors import ConfigError, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Listing, Offset, PartitionExtent, Stream
from applier.model.range_report import RangeId
from applier.model.remedy import Remedy
from applier.model.timeline import EPOCH, MILLISECOND
from applier.sources.port import Source

RESTART = Remedy(
    "dataframe.start-new-spark-checkpoint", "Start the query with a new checkpoint directory; what it has written stays as it is"
)


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
            raise SourceError("the topic was deleted and created again", remedy=RESTART, kind=FailureKind.RECREATED, topic=topic)
    for stream, offset in offsets_in(document).items():
        extent = extents.get(stream)
        if extent is None:
            raise SourceError(
                "a partition that was read does not exist any more", remedy=RESTART, kind=FailureKind.RECREATED, **stream._asdict()
            )
        if extent.end < offset:
            remedy = Remedy("dataframe.start-after-recreated-topic", f"The topic was created again, or its records were deleted. {RESTART}")
            raise SourceError(
                "the partition ends before what was read of it", remedy=remedy, kind=FailureKind.RECREATED, **stream._asdict()
            )


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


FORMS: Final = Remedy(
    "dataframe.write-position-in-topic",
    'Write earliest, latest, a time such as 2025-06-01T12:00:00Z, or offsets such as {"changefeed": {"0": 1200, "1": 87}}',
)


def chosen_extents(options: ChangelogOptions, listing: Listing) -> dict[Stream, PartitionExtent]:
    """Return the partitions that the options choose. SourceError: one of them is in no topic."""
    chosen = {s: e for s, e in sorted(listing.extents.items()) if options.partitions is None or s.partition in options.partitions}
    # A partition that was skipped in silence would be rows that no one misses.
    unknown = (options.partitions or frozenset()) - {stream.partition for stream in chosen}
    if unknown or not chosen:
        names, wanted = ", ".join(map(str, sorted(listing.extents))), ", ".join(map(str, sorted(unknown)))
        message = f"the option partition names what no topic has: {wanted}" if unknown else "there is no partition to read"
        raise SourceError(
            message, remedy=Remedy("dataframe.show-partitions", f"The partitions are: {names}"), kind=FailureKind.UNKNOWN_PARTITION
        )
    return chosen


def range_of(options: ChangelogOptions, source: Source) -> list[RangeId]:
    """Return the range of each chosen stream from ``start`` to ``end``. ConfigError, SourceError (retention)."""
    extents = chosen_extents(options, source.listing())
    starts = begin_offsets(options, source, extents)
    ends = _offsets("end", options.end, source, extents)
    return [RangeId(stream, start, max(start, ends.get(stream, extents[stream].end))) for stream, start in starts.items()]


def begin_offsets(options: ChangelogOptions, source: Source, extents: Mapping[Stream, PartitionExtent]) -> dict[Stream, Offset]:
    """Return where each stream begins."""
    given = _offsets("start", options.start, source, extents)
    return {stream: given.get(stream, extent.earliest) for stream, extent in extents.items()}


def divided(ranges: Collection[RangeId], at_most: int) -> Iterator[RangeId]:
    """Yield the ranges in pieces of ``at_most`` offsets; nothing of an empty one."""
    for stream, start, end in ranges:
        for at in range(start, end, at_most):
            yield RangeId(stream, Offset(at), Offset(min(at + at_most, end)))


def _offsets(name: str, text: str, source: Source, extents: Mapping[Stream, PartitionExtent]) -> dict[Stream, Offset]:
    """Return the offsets that an option names; a stream that is not named has its default."""
    if text.lower() == EARLIEST:
        return {stream: extent.earliest for stream, extent in extents.items()}
    if text.lower() == LATEST:
        return {stream: extent.end for stream, extent in extents.items()}
    if text.lstrip().startswith("{"):
        return _given_offsets(name, text, extents)
    return dict(source.times.offsets_at(list(extents), _time_ms(name, text)))


def _time_ms(name: str, text: str) -> int:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"the option {name} cannot be read: {text!r}", remedy=FORMS) from None
    if when.tzinfo is None:
        raise ConfigError(f"the option {name} has no offset from UTC: {text!r}", remedy=FORMS)
    return (when - EPOCH) // MILLISECOND


def _given_offsets(name: str, text: str, extents: Mapping[Stream, PartitionExtent]) -> dict[Stream, Offset]:
    try:
        document = json.loads(text)
        found = {Stream(topic, int(number)): Offset(int(at)) for topic, offsets in document.items() for number, at in offsets.items()}
    except (ValueError, TypeError, AttributeError):
        raise ConfigError(f"the option {name} cannot be read: {text!r}", remedy=FORMS) from None
    for stream, offset in found.items():
        extent = extents.get(stream)
        if extent is None:
            remedy = Remedy("dataframe.show-unknown-partitions", f"The partitions are: {', '.join(map(str, extents))}")
            raise SourceError(
                f"the option {name} names a partition that is not read",
                remedy=remedy,
                kind=FailureKind.UNKNOWN_PARTITION,
                **stream._asdict(),
            )
        if not extent.earliest <= offset <= extent.end:
            raise SourceError(
                f"the option {name} names an offset that the partition does not hold",
                remedy=Remedy("dataframe.show-offset-extent", f"It holds the offsets from {extent.earliest} to {extent.end}"),
                kind=FailureKind.RETENTION,
                **stream._asdict(),
                offset=offset,
            )
    return found
