"""Which checkpoints get a line in the log. Pure: time is passed in."""

from applier.model.position import NO_TS, Ts


class CheckpointLog:
    """Which checkpoints get a line: the newest, each once."""

    def __init__(self) -> None:
        self._ts: Ts | None = None
        self._at_s: float | None = None

    def is_due(self, checkpoint_ts: Ts, now_s: float, *, at_least_s: float) -> bool:
        """Return whether a line about ``checkpoint_ts`` is due: the last one is ``at_least_s`` old, and about another."""
        is_old = self._at_s is None or now_s - self._at_s >= at_least_s
        if checkpoint_ts in {NO_TS, self._ts} or not is_old:
            return False
        self._ts, self._at_s = checkpoint_ts, now_s
        return True
