"""Chunks of events to statements: pure. The sink's catalogue and dialect come in as values."""

from applier.model.segment import SegmentWindow
from applier.planner.binding import bytes_key_names, key_names
from applier.planner.plan import plan_bucket
from applier.planner.rejected_rows import STOP, QuarantinePolicy
from applier.planner.rekey import rekey_of, route
from applier.planner.transactions import TransactionSet, count_transactions

__all__ = [
    "STOP",
    "QuarantinePolicy",
    "SegmentWindow",
    "TransactionSet",
    "bytes_key_names",
    "count_transactions",
    "key_names",
    "plan_bucket",
    "rekey_of",
    "route",
]
