"""Checks of a list of partitions: which ones count, and which contradict what the replica has read before."""

from collections.abc import Mapping
from typing import Any

from applier.coordinator.starting_point import FROM_DUMP_TO_REPLICA
from applier.model.errors import NeedsOperator
from applier.model.listing import PartitionExtent
from applier.model.position import Offset, Stream
from applier.model.topic_name import PartitionLimits


def is_required(stream: Stream, partitions: Mapping[str, int] | PartitionLimits | None) -> bool:
    """Whether a partition counts: all do, unless ``partitions`` gives its topic a smaller number."""
    return partitions is None or stream.partition < partitions.get(stream.topic, stream.partition + 1)


def has_held_records(extent: PartitionExtent) -> bool:
    """Whether a record was ever written to a partition. One that has never held any is not required."""
    # Not ``earliest < end``: a partition that retention has emptied has held records too.
    return extent.end > 0


def check_excluded(stream: Stream, extent: PartitionExtent) -> None:
    """Refuse a record in a partition that the configuration excludes."""
    if extent.earliest < extent.end:
        raise _stop(
            stream,
            "excluded_partition",
            "the partition holds records, but source.partitions excludes it",
            "Raise source.partitions, or remove the setting",
            offset=extent.earliest,
        )


def check_known(stream: Stream, extent: PartitionExtent, next_offset: Offset, seen_end: Offset) -> None:
    """Check that what is to be read next of a stream is still there, and that the stream is the one that was read before.

    ``seen_end`` is the end that an earlier list has shown: if it steps back, what lay between is gone, and would be waited for.
    """
    if next_offset < extent.earliest:
        raise _stop(
            stream,
            "retention",
            "records expired before the replica applied them",
            f"Give the topic a longer retention. {FROM_DUMP_TO_REPLICA}",
            missing_offsets=f"{next_offset}..{extent.earliest - 1}",
        )
    # A recreated topic counts its offsets from 0 again: its records would look like some that were read already.
    if extent.end < max(next_offset, seen_end) or not has_held_records(extent):
        raise _stop(
            stream,
            "recreated",
            "the partition ends before an offset that was already seen: the topic was recreated or truncated",
            FROM_DUMP_TO_REPLICA,
            next_offset=next_offset,
            seen_end=seen_end,
            end_offset=extent.end,
        )


def check_new(stream: Stream, extent: PartitionExtent) -> None:
    """Refuse a partition that appeared while the replica runs and has lost its beginning already."""
    if extent.earliest > 0:
        raise _stop(
            stream,
            "gap",
            "the beginning of a new partition expired before it was read",
            f"Give the topic a longer retention. {FROM_DUMP_TO_REPLICA}",
            missing_offsets=f"0..{extent.earliest - 1}",
        )


def missing(stream: Stream) -> NeedsOperator:
    """Make the error for a partition that was read before and is not there any more."""
    return _stop(
        stream,
        "recreated",
        "a partition that the replica has read is gone: its topic was removed from the configuration, recreated or shrunk",
        f"Put the topic back into source.topics, or create the replica again. {FROM_DUMP_TO_REPLICA}",
    )


def _stop(stream: Stream, kind: str, message: str, remedy: str, **facts: Any) -> NeedsOperator:
    return NeedsOperator(message, remedy=remedy, kind=kind, topic=stream.topic, partition=stream.partition, **facts)
