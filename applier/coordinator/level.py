"""How far in upstream time all streams can be read together with a number of bytes.

Streams that advance together close windows with what was read, and little is cached ahead of W. By equal shares, a stream with few rows
would be read days ahead of one with many; its rows would lie among those of the others in the same chunks, and every segment would
pass over them again.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple


class Course(NamedTuple):
    """One stream: from which time on it is read, bytes per unit of time, and how many bytes there are to read."""

    begins: int
    rate: float
    size: float


def level_of(courses: Iterable[Course], size: float) -> float:
    """Return the time up to which all streams have ``size`` bytes together. Rates are above 0, and all together have more than ``size``."""
    waiting = sorted(courses, reverse=True)
    ends: list[tuple[float, float]] = []
    level, rate = float(waiting[-1].begins), 0.0
    while waiting or ends:
        # Up to the next time at which a stream joins, or has been read to its end, the bytes grow evenly.
        at = min(waiting[-1].begins if waiting else ends[0][0], ends[0][0] if ends else waiting[-1].begins)
        passed = rate * (at - level)
        if passed >= size:
            break
        level, size = at, size - passed
        if ends and ends[0][0] == at:
            rate -= heappop(ends)[1]
        else:
            course = waiting.pop()
            rate += course.rate
            heappush(ends, (course.begins + course.size / course.rate, course.rate))
    return level + size / rate if rate > 0 else level
