"""Where rows begin to repeat, as one range shows it: only tables without a key need to know (``planner.keyless``)."""

from collections.abc import Iterable

from applier.model.position import Offset, Ts
from applier.model.range_report import EVERYTHING, RepeatPoint
from applier.model.segment import is_behind_promise
from applier.sources.port import PlacedRows


class RepeatPoints:
    """Collects the points of one range, at most one between two rows of tables without a key."""

    __slots__ = ("_has_rows", "_open", "_points", "_promised")

    def __init__(self) -> None:
        """Begin before the first event."""
        self._points: list[RepeatPoint] = []
        self._open: RepeatPoint | None = None
        self._promised = Ts(0)
        self._has_rows = False

    def promise(self, offset: int, ts: Ts) -> None:
        """Take in a resolved event."""
        went_back = is_behind_promise(ts, self._promised)
        self._promised = max(self._promised, ts)
        self._note(offset, EVERYTHING if went_back else ts)

    def rows(self) -> None:
        """Take in that rows of tables without a key have come."""
        self._has_rows = True
        if self._open is not None:
            self._points.append(self._open)
            self._open = None

    def replays(self, rows: PlacedRows, kept: Iterable[bool]) -> None:
        """Take in rows of which some are below the floor. Those were sent and applied before: their table is sent again from there on."""
        keyless = [not shape.handle_key for shape in rows.shapes]
        after_kept = True
        for offset, shape, is_kept in zip(rows.offset, rows.shape, kept, strict=True):
            if not keyless[shape]:
                continue
            if after_kept and not is_kept:
                self.rows()
                self._points.append(RepeatPoint(Offset(offset), EVERYTHING))
            after_kept = is_kept

    def _note(self, offset: int, ts: Ts) -> None:
        # Between the two points no row came that the first one could concern alone.
        self._open = RepeatPoint(Offset(offset), ts if self._open is None else max(ts, self._open.ts))

    def found(self) -> tuple[RepeatPoint, ...]:
        """Return the points; none where no table is without a key."""
        if not self._has_rows:
            return ()
        return tuple(self._points) if self._open is None else (*self._points, self._open)
