"""How far the initial copy of a replica is, as the bookkeeping knows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from applier.model.position import Ts
from applier.model.segment import has_reached


class CopyState(StrEnum):
    """How far the copy is. ``READ``: every row is in the sink, and the stream continues from the start of the copy."""

    PLANNING = "planning"
    """The tables are being made, or those without a key are being copied: a run that takes it up begins again."""
    COPYING = "copying"
    READ = "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRow:
    """The copy of a replica. It is consistent when a checkpoint has reached ``upto_ts``, which counts in the state ``READ`` only."""

    epoch: int
    attempt: int
    state: CopyState
    start_ts: Ts
    upto_ts: Ts
    left_out: Mapping[str, int]
    """How many objects of each kind upstream has that are not copied."""
    began_at: datetime
    read_at: datetime | None

    def is_consistent_at(self, checkpoint_ts: Ts | None) -> bool:
        """Return whether the sink equals upstream at one point in time, if this is its checkpoint."""
        return self.state is CopyState.READ and checkpoint_ts is not None and has_reached(checkpoint_ts, self.upto_ts)
