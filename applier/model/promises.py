"""What the resolved events of a range say about the rows around them: whether its producer began again, and what it repeats."""

from dataclasses import dataclass

from applier.model.position import NO_TS, Ts


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """Each is 0 if there is no such event or row. Rows below the floor do not count."""

    first_ts: Ts = NO_TS
    """The first resolved event."""
    least_later_ts: Ts = NO_TS
    """The least of the resolved events after the first."""
    unpromised_ts: Ts = NO_TS
    """The greatest commit_ts of the rows before the first resolved event; of all rows, if there is none."""
    behind_ts: Ts = NO_TS
    """No row above it comes after a greater promise of the range."""


NO_PROMISES = Promises()
