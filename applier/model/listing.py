"""A list of the partitions of all topics with the offsets that they hold, as the source returns it."""

from dataclasses import dataclass
from typing import NamedTuple

from applier.model.position import Offset, Stream


class Cut(NamedTuple):
    """An offset at which a range may end, and how many bytes lie between the cut before it and this one.

    Without any, nothing lies before it, and a range ends there: at the beginning of the log of another server.
    """

    offset: Offset
    size: int


@dataclass(frozen=True, slots=True)
class PartitionExtent:
    """The offsets that one partition holds: ``earliest`` <= offset < ``end``.

    ``cuts``: where ranges may end, ascending, as far as that is known; the last one may lie before ``end``. Offsets between two of them
    count nothing. None: a range may end anywhere, and an offset counts a record.
    """

    earliest: Offset
    end: Offset
    cuts: tuple[Cut, ...] | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """All partitions of the topics with their extents, at one time."""

    extents: dict[Stream, PartitionExtent]
