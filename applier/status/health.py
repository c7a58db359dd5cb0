"""Whether a replica is well, in one word and one number: for monitoring, and as the first line for people. Pure."""

from enum import IntEnum
from typing import NamedTuple

from applier.sinks.overview import OwnerState
from applier.status.replica_status import ReplicaStatus
from applier.telemetry.wording import duration


class Health(IntEnum):
    """How a replica is. The number is the exit code of ``applier status``."""

    HEALTHY = 0
    LAGGING = 1
    STOPPED = 2
    HINDERED = 3
    """It runs, and something keeps it from getting on that may need a person."""


class Verdict(NamedTuple):
    """How a replica is, and why."""

    health: Health
    reason: str


def verdict_of(status: ReplicaStatus, max_lag_s: float | None = None) -> Verdict:
    """Judge a replica; ``max_lag_s``: the greatest lag that is well (None: any)."""
    live, owner = status.live, status.overview.owner
    if live is None and (owner is None or owner.state is OwnerState.DEAD):
        return Verdict(Health.STOPPED, "stopped: no run owns the replica" if owner is None else "stopped: the run that owns it has died")
    if owner is not None and owner.state is OwnerState.FROZEN:
        return Verdict(Health.HINDERED, "frozen: the run that owns it has shown no heartbeat for longer than its lease")
    if (hindrance := _hindrance(status)) is not None:
        return Verdict(Health.HINDERED, hindrance)
    if max_lag_s is not None and (status.lag_s is None or status.lag_s > max_lag_s):
        lag = "unknown" if status.lag_s is None else duration(status.lag_s)
        return Verdict(Health.LAGGING, f"lagging: its lag is {lag}, and --max-lag {duration(max_lag_s)}")
    return Verdict(Health.HEALTHY, "healthy")


def _hindrance(status: ReplicaStatus) -> str | None:
    live = status.live or {}
    stall = live.get("stall") or {}
    found = {
        "wrong: the checkpoint is in the future, so rows are dropped as applied already": status.lag_s is not None and status.lag_s < 0,
        "fenced: the run that answers has lost the replica": live.get("is_fenced"),
        "failing: something fails and is retried": live.get("failing_since"),
        "paused: nothing is applied until it is resumed": status.overview.pause or live.get("paused_since"),
        "hanging: the run that answers makes no progress": live.get("is_alive") is False,
        f"stalled: {stall.get('stream')} shows no resolved event": stall,
        "waiting: a DDL has failed, and its outcome is to be decided": any(entry.error for entry in status.overview.undecided),
    }
    return next((reason for reason, is_so in found.items() if is_so), None)
