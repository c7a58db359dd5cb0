"""A list of the partitions of all topics with the offsets that they hold, as the source returns it."""

from dataclasses import dataclass

from applier.model.position import Offset, Stream


@dataclass(frozen=True, slots=True)
class PartitionExtent:
    """The offsets that one partition holds: ``earliest`` <= offset < ``end``."""

    earliest: Offset
    end: Offset


@dataclass(frozen=True, slots=True)
class Listing:
    """All partitions of the topics with their extents, at one time."""

    extents: dict[Stream, PartitionExtent]
