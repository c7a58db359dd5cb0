"""The window (A, W]: the checkpoint of the sink, and the promises of the streams."""

from applier.model.position import Ts
from applier.model.segment import floor_ts, has_moved, has_reached, is_open


class Window:
    """A and W. With ``until_ts`` the watermark stops there."""

    __slots__ = ("_closed_ts", "_start_ts", "_until_ts", "checkpoint_ts", "is_fresh")

    def __init__(self, checkpoint_ts: Ts, start_ts: Ts, until_ts: Ts | None) -> None:
        self.checkpoint_ts = self._closed_ts = checkpoint_ts
        self._start_ts, self._until_ts = start_ts, until_ts
        self.is_fresh = False
        """Whether the partitions were listed after the last report."""

    @property
    def watermark(self) -> Ts:
        """W, at the latest list of partitions."""
        return max(self._closed_ts, self.checkpoint_ts)

    @property
    def is_open(self) -> bool:
        """Whether there is anything between A and W."""
        return is_open(self.checkpoint_ts, self.watermark)

    @property
    def floor_ts(self) -> Ts:
        """Rows with a smaller commit_ts are replays."""
        return floor_ts(self.checkpoint_ts, self._start_ts)

    @property
    def has_history(self) -> bool:
        """Whether the replica has applied anything: rows at A are its own, and a new topic may have missed something."""
        return has_moved(self.checkpoint_ts, self._start_ts)

    @property
    def is_done(self) -> bool:
        """Whether everything up to ``until_ts`` may be applied."""
        return self.is_beyond_need(self.watermark)

    def is_beyond_need(self, resolved_ts: Ts) -> bool:
        """Whether a stream that has promised ``resolved_ts`` need not be read further."""
        return self._until_ts is not None and has_reached(resolved_ts, self._until_ts)

    def at_most(self, ts: Ts) -> Ts:
        """Return ``ts``, or ``until_ts`` if that is less."""
        return ts if self._until_ts is None else min(ts, self._until_ts)

    def close(self, least_resolved_ts: Ts) -> None:
        """Move W to the least promise of all streams. The partitions were listed after these promises were read."""
        # It may be below A after a restart, when streams have not promised again what they had: ``watermark`` hides that.
        self._closed_ts = least_resolved_ts if self._until_ts is None else min(least_resolved_ts, self._until_ts)
        self.is_fresh = True
