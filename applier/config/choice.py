"""The choices that several keys offer, and what each means."""

from enum import StrEnum


class OnRejectedEvent(StrEnum):
    """What happens to an unreadable record, or to a row that the sink rejects."""

    STOP = "stop"
    QUARANTINE = "quarantine"


class Keyless(StrEnum):
    """What happens to rows of tables without a handle key."""

    STOP = "stop"
    BEST_EFFORT = "best_effort"


class Consistency(StrEnum):
    """What a reader of the sink sees (DESIGN.md 8)."""

    TRANSACTION = "transaction"
    ROW = "row"


class DeclaredDispatcher(StrEnum):
    """By what the changefeed chooses a row's partition, as far as ``consistency = "row"`` can use it."""

    TABLE = "table"
    INDEX_VALUE = "index-value"


class DdlPolicy(StrEnum):
    """What happens to a DDL of one type."""

    APPLY = "apply"
    SKIP = "skip"
    STOP = "stop"
