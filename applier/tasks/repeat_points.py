"""Where rows begin to repeat, as one range shows it: only tables without a key need to know (``planner.keyless``)."""

from collections.abc import Iterable

from applier.model.events import FoldedName
from applier.model.position import Offset, Ts
from applier.model.range_report import RepeatPoint
from applier.model.segment import is_behind_promise
from applier.sources.port import PlacedRows


class RepeatPoints:
    """Collects the points of one range: few between two rows of tables without a key."""

    __slots__ = ("_last", "_open", "_points", "_returned")

    def __init__(self) -> None:
        """Begin before the first event."""
        self._points: list[RepeatPoint] = []
        self._open: list[RepeatPoint] = []
        self._last = Ts(0)
        self._returned: set[FoldedName] = set()
        """The tables of which no row has come since their last return: of several returns without one between them, the first says all."""

    def promise(self, offset: int, ts: Ts) -> None:
        """Add a resolved event."""
        point = RepeatPoint(Offset(offset), ts, is_behind_promise(ts, self._last))
        self._last = ts
        # Of several promises without such a row between them, the first shows whether the range begins below what was promised before
        # it, and the last is the greatest.
        if len(self._open) > 1 and self._open[-1].is_return == point.is_return:
            self._open.pop()
        self._open.append(point)

    def rows(self) -> None:
        """Record that rows of tables without a key have come."""
        self._points += self._open
        self._open.clear()
        self._returned.clear()

    def replays(self, rows: PlacedRows, kept: Iterable[bool]) -> None:
        """Add rows of which some are below the floor. They were sent and applied before: their table is sent again from there on."""
        tables = [None if shape.handle_key else shape.name.fold() for shape in rows.shapes]
        for offset, shape, is_kept in zip(rows.offset, rows.shape, kept, strict=True):
            if (table := tables[shape]) is None:
                continue
            if is_kept:
                self._returned.discard(table)
            elif table not in self._returned:
                self._points += self._open
                self._open.clear()
                self._points.append(RepeatPoint(Offset(offset), Ts(0), is_return=True, table=table))
                self._returned.add(table)

    def found(self) -> tuple[RepeatPoint, ...]:
        """Return the points."""
        return (*self._points, *self._open)
