"""When a batch is divided at the next DDLs (``tasks.slicing``): where what it costs is less than what segments would read in vain."""

from collections.abc import Sequence
from typing import Final

from applier.model.position import Ts
from applier.model.segment import slice_holding, slices_of
from applier.spark.batch import Batch
from applier.spark.shuffle import Shuffle
from applier.tasks.plan import PreparePlan

COST_OF_A_BYTE: Final = 2
"""To divide a batch costs at most what reading it so many times does: with 48 MB of rows, it has paid at the fourth segment."""
COST_OF_A_JOB: Final = 48 << 20
"""What one task reads in the time of a further job, at most."""
COST_OF_AN_END: Final = 400
"""The same for each range in the end of each slice of each bucket."""


class Slices:
    """The slices that segments read instead of whole batches. ``_bounds``: where all batches are divided at present."""

    def __init__(self) -> None:
        self._bounds: tuple[Ts, ...] = ()

    def of(self, batches: Sequence[Batch], plan: PreparePlan) -> tuple[list[Shuffle], int] | None:
        """Return where the rows of a small segment lie divided from others, and in which partition; None: it must read the batches."""
        window, bounds = plan.windows[0], self._bounds
        number = slice_holding(bounds, window)
        if number is None:
            bounds = (window.after_ts, window.upto_ts, *plan.later)
            number = slice_holding(bounds, window)
        if number is None or plan.writers or not _is_worth_it(batches, bounds, number, plan.buckets):
            return None
        self._bounds = bounds
        return [batch.divided_at(bounds) for batch in batches], number


def _is_worth_it(batches: Sequence[Batch], bounds: tuple[Ts, ...], number: int, buckets: int) -> bool:
    """Whether reading batches whole, now and for the slices behind ``number`` that they reach into, costs more than dividing them."""
    undivided = [batch for batch in batches if not batch.is_divided_at(bounds)]
    if not undivided:
        return True
    last = len(bounds) - 1
    reached = [min(slice_of_max, last) - number for slice_of_max in slices_of(bounds, [batch.max_ts for batch in undivided])]
    saved = sum(batch.bytes for batch in batches) + sum(batch.bytes * more for batch, more in zip(undivided, reached, strict=True))
    ends = sum(batch.ranges for batch in undivided) * buckets * last
    return saved > COST_OF_A_BYTE * sum(batch.bytes for batch in undivided) + COST_OF_A_JOB + COST_OF_AN_END * ends
