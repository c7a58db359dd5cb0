"""Collects what ``Promises`` says of a range, while the range is read."""

from collections.abc import Sequence

from applier.model.position import NO_TS, Ts
from applier.model.promises import Promises
from applier.model.row_window import behind_promise


class RangePromises:
    """The resolved events of one range. ``resolved_ts``: the greatest so far."""

    __slots__ = ("_behind_ts", "_first_ts", "_least_later_ts", "_unpromised_ts", "resolved_ts")

    def __init__(self) -> None:
        self.resolved_ts = NO_TS
        self._first_ts = self._least_later_ts = self._unpromised_ts = self._behind_ts = NO_TS

    def rows(self, times: Sequence[int]) -> None:
        """Take in rows that follow one another without a resolved event between them."""
        if not self._first_ts:
            self._unpromised_ts = max(self._unpromised_ts, Ts(max(times)))
        else:
            self._behind_ts = max(self._behind_ts, behind_promise(min(times), max(times), self.resolved_ts))

    def resolved(self, ts: Ts) -> None:
        """Take in a resolved event."""
        if self._first_ts:
            self._least_later_ts = min(self._least_later_ts or ts, ts)
        self._first_ts = self._first_ts or ts
        self.resolved_ts = max(self.resolved_ts, ts)

    def found(self) -> Promises:
        """Return what was found."""
        return Promises(
            first_ts=self._first_ts,
            least_later_ts=self._least_later_ts,
            unpromised_ts=self._unpromised_ts,
            behind_ts=self._behind_ts,
        )
