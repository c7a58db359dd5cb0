"""How a write to the sink ended. A value: tasks on executors report, they do not raise."""

from dataclasses import dataclass
from enum import StrEnum

from applier.model.rejected_event import RejectedEvent


class WriteState(StrEnum):
    """How a write ended."""

    COMMITTED = "committed"
    ALREADY = "already"
    """An earlier attempt of the same write had committed."""
    FENCED = "fenced"
    """Another epoch owns the replica."""
    RELOAD = "reload"
    """The fencing token has another window, or the outcome of COMMIT is unknown: the driver reloads its state."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOutcome:
    """What a writer reports, as a value: tasks do not raise."""

    state: WriteState
    rows: int = 0
    transactions: int = 0
    quarantined: tuple[RejectedEvent, ...] = ()
    """What this transaction stored in the quarantine."""
    absent: tuple[tuple[str, int], ...] = ()
    """By table: how many rows it deleted upstream that the sink did not have."""
    error: Exception | None = None
    """An ApplierError, with ``FAILED`` and ``RELOAD``; RetryableSinkError if a retry may succeed."""
