"""How much happens upstream in a history."""

from dataclasses import dataclass

from applier.demo.simulator.history import History
from applier.model.position import Ts


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """Counts of a history. ``middle_ts``: where half of its steps are done."""

    steps: int
    transactions: int
    rows: int
    ddls: int
    middle_ts: Ts
    last_ts: Ts


def volume_of(history: History) -> Volume:
    """Count what happens upstream."""
    steps = [(step.ts, len(step.rows), len(step.ddls)) for step in history]
    return Volume(
        steps=len(steps),
        transactions=sum(rows > 0 for _, rows, _ in steps),
        rows=sum(rows for _, rows, _ in steps),
        ddls=sum(ddls for _, _, ddls in steps),
        middle_ts=steps[len(steps) // 2][0],
        last_ts=steps[-1][0],
    )
