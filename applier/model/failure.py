"""What kinds of failures decide how a run continues: try again, reload the state from the sink's checkpoint, or stop.

The kind of an error is a value of its own; its facts are for people only. What a kind does is said once, in ``REACTIONS``. A kind that is
not there stops the run. Whether an error of the sink or of Spark is transient is said by its class (``applier.model.errors``).
"""

from enum import Enum, StrEnum, auto
from typing import Final, Literal, TypeAlias


class FailureKind(StrEnum):
    """Why an operation failed. The texts are shown as ``kind=…``."""

    # The other side may answer later.
    UNREACHABLE = "unreachable"
    LISTENER_DIED = "listener_died"
    # The log is another one, or its beginning is gone.
    OTHER_SERVER = "other_server"
    OTHER_LOG = "other_log"
    PURGED = "purged"
    # What is read is gone, or is not what was read before.
    RETENTION = "retention"
    COMPACTED = "compacted"
    RECREATED = "recreated"
    DAMAGED = "damaged"
    CHECKSUM = "checksum"
    GAP = "gap"
    MISSED_TOPIC = "missed_topic"
    MISSED_DDL = "missed_ddl"
    NOT_EMPTY = "not_empty"
    EMPTY_TOPIC = "empty_topic"
    NO_RESOLVED_EVENT = "no_resolved_event"
    UNKNOWN_TOPIC = "unknown_topic"
    UNKNOWN_PARTITION = "unknown_partition"
    EXCLUDED_PARTITION = "excluded_partition"
    # The other side refuses.
    REFUSED = "refused"
    UNAUTHORIZED = "unauthorized"
    REQUIREMENT = "requirement"
    NO_BINLOG = "no_binlog"
    UPSTREAM = "upstream"
    CLAIM_CHECK_STORAGE = "claim_check_storage"
    # An event that cannot be applied as it is.
    EVENT = "event"
    POSITION = "position"
    XA = "xa"
    TOO_MANY_BAD_EVENTS = "too_many_bad_events"
    EQUAL_ROWS = "equal_rows"
    SELECTION = "selection"
    CUT_OVER = "cut_over"
    DDL_ORDER = "ddl_order"
    DISPATCHER = "dispatcher"
    RAW_KEY_CHANGE = "raw_key_change"
    OVERTAKEN_DDL = "overtaken_ddl"
    UNKNOWN_COLUMN = "unknown_column"
    COLUMN_VALUE = "column_value"
    # Of the run and its configuration.
    PAUSED = "paused"
    ADDRESS = "address"
    IN_USE = "in_use"
    VALUE = "value"

    @property
    def is_transient(self) -> bool:
        """Whether a later attempt may succeed without an operator."""
        return REACTIONS.get(self, Reaction.STOP) is not Reaction.STOP

    @property
    def must_resume(self) -> bool:
        """Whether a run must begin again at the sink's checkpoint before it continues."""
        return REACTIONS.get(self) is Reaction.RELOAD


RecordFault: TypeAlias = Literal[
    "avro", "base64", "charset", "checksum", "claim_check", "column_type", "compression", "count_mismatch", "empty_row", "escape",
    "event_type", "field_type", "flags", "framing", "handle_key_only", "incident", "json", "old_times", "partial_key", "partial_row",
    "protocol", "query", "row_image", "rows_event", "schema", "statement", "table_map", "time_zone", "timestamp", "value_type", "version",
]  # fmt: skip
"""Why a record cannot be read: ``ProtocolError.fault``, all of them. None is in ``REACTIONS``: it stops the run, or the record is
quarantined. Plain texts, which mypy compares with this list: a decoder writes many."""
OTHER_PROTOCOL: Final[RecordFault] = "protocol"
OTHER_ZONE: Final[RecordFault] = "time_zone"
NEVER_QUARANTINED: Final[frozenset[RecordFault]] = frozenset({OTHER_PROTOCOL, OTHER_ZONE})
"""The record is whole, and the configuration or the changefeed is wrong: all records that follow fail alike."""


class Reaction(Enum):
    """What the engine and the daemon do about a failure."""

    RETRY = auto()
    RELOAD = auto()
    """Load the state from the sink's checkpoint, then try again: the position must be found again, if it can."""
    STOP = auto()


REACTIONS: Final = {
    FailureKind.UNREACHABLE: Reaction.RETRY,
    FailureKind.LISTENER_DIED: Reaction.RETRY,
    FailureKind.OTHER_SERVER: Reaction.RELOAD,
    FailureKind.OTHER_LOG: Reaction.RELOAD,
    FailureKind.PURGED: Reaction.RELOAD,
}
