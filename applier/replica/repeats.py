"""Where rows of tables without a key begin to repeat, by the reports of all ranges since the last reload (``planner.keyless``)."""

from collections import defaultdict
from typing import Final

from applier.model.position import NO_TS, Stream, Ts
from applier.model.range_report import RangeReport, RepeatPoint
from applier.model.segment import is_applied, is_behind_promise
from applier.planner.keyless import Repeats

KEPT_POINTS: Final = 16
"""Points of a stream, or twice those that were left before, from which on those that concern applied rows only are looked for, to be
forgotten. Few: there may be ten thousand streams, and each segment asks for the points of all of them."""


class RepeatLog:
    """The points of all streams. Not thread-safe."""

    def __init__(self) -> None:
        """Begin without points."""
        self._points: defaultdict[Stream, list[RepeatPoint]] = defaultdict(list)
        self._left: dict[Stream, int] = {}
        self.unordered_ts = NO_TS
        """``PartitionGrowth.listed``, of the last list of partitions."""

    def add(self, report: RangeReport, checkpoint_ts: Ts) -> None:
        """Add a range."""
        points = self._points[report.range.stream]
        points += report.repeats
        if len(points) > max(KEPT_POINTS, 2 * self._left.get(report.range.stream, 0)):
            points[:] = _open_points(points, checkpoint_ts)
            self._left[report.range.stream] = len(points)

    def since(self, checkpoint_ts: Ts) -> Repeats:
        """Return the points that concern rows above a checkpoint, in the order of their offsets."""
        points = {
            stream: tuple(open_points) for stream, points in self._points.items() if (open_points := _open_points(points, checkpoint_ts))
        }
        return Repeats(points, self.unordered_ts)

    def clear(self) -> None:
        """Forget all of them: everything is read again."""
        self._points.clear()
        self._left.clear()
        self.unordered_ts = NO_TS


def _open_points(points: list[RepeatPoint], checkpoint_ts: Ts) -> list[RepeatPoint]:
    """Return the points that concern rows above a checkpoint, and the last one, by which the next one is judged."""
    found: list[RepeatPoint] = []
    last = Ts(0)
    for point in sorted(points, key=lambda point: point[:3]):
        # A range knows only its own promises: whether its first one steps back shows here.
        steps_back = point.ts != NO_TS and is_behind_promise(point.ts, last)
        found.append(point._replace(is_return=True) if steps_back else point)
        last = point.ts or last
    return [point for point in found[:-1] if point.is_return or not is_applied(point.ts, checkpoint_ts)] + found[-1:]
