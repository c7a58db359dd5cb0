"""The durable progress of a replica, the fence that guards it (DESIGN.md section 8), and how a write ended.

Outcomes are values: tasks on executors report, they do not raise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from applier.model.events import FoldedName
from applier.model.position import Stream, StreamPosition, Ts
from applier.model.rejected_event import RejectedEvent


@dataclass(frozen=True, slots=True)
class Fence:
    """What a write must find in the progress row. Each commit increments ``window_id``."""

    epoch: int
    window_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The durable progress of one replica, as the sink holds it."""

    fence: Fence
    checkpoint_ts: Ts
    start_ts: Ts
    positions: dict[Stream, StreamPosition]
    topic_ids: dict[str, str]
    known_tables: frozenset[FoldedName]
    ahead_tables: frozenset[FoldedName] = frozenset()
    """The known tables whose rows are written ahead of the checkpoint, up to their stream's ``applied_ts``."""
    source_state: str | None = None
    """What the source has said of the checkpoint (``Source.state_at``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressCommit:
    """How a transaction moves the progress. ``positions`` are the changed ones, ``known_tables`` are recorded.

    ``topic_ids``: Kafka's ids of topics, if known.

    ``locations``: upstream's tables whose location in the sink has changed; ('', ''): skipped; None: it does not have one any more.
    ``ahead_tables``: known tables whose rows are written ahead of the checkpoint from now on (True), or no longer (False).
    ``source_state``: what the source says of the checkpoint; None: what is stored stays.
    """

    checkpoint_ts: Ts
    positions: dict[Stream, StreamPosition]
    known_tables: frozenset[FoldedName] = frozenset()
    topic_ids: dict[str, str] = field(default_factory=dict)
    locations: Mapping[FoldedName, FoldedName | None] = field(default_factory=dict)
    ahead_tables: dict[FoldedName, bool] = field(default_factory=dict)
    source_state: str | None = None

    def applied_to(self, progress: Progress) -> Progress:
        """Return what is stored once this is committed, except the progress row itself."""
        topics = {stream.topic for stream in self.positions}
        return replace(
            progress,
            positions=progress.positions | self.positions,
            topic_ids=progress.topic_ids | {topic: topic_id for topic, topic_id in self.topic_ids.items() if topic in topics},
            known_tables=progress.known_tables | self.known_tables,
        )

    def including(self, before: "ProgressCommit") -> "ProgressCommit":
        """Return this commit with what ``before`` records: no transaction of its own does."""
        return replace(
            self,
            positions=before.positions | self.positions,
            known_tables=before.known_tables | self.known_tables,
            topic_ids=before.topic_ids | self.topic_ids,
            locations={**before.locations, **self.locations},
            ahead_tables=before.ahead_tables | self.ahead_tables,
        )


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
