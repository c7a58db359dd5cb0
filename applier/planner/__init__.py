"""Chunks of events to statements: pure. The sink's catalogue and dialect come in as values."""

from applier.planner.binding import bytes_key_names, key_names
from applier.planner.plan import plan_bucket
from applier.planner.rekey import rekey_of, route
from applier.planner.sieve import STOP, AsidePolicy
from applier.planner.transactions import TransactionSet, count_transactions
from applier.planner.window import SegmentWindow

__all__ = [
    "STOP",
    "AsidePolicy",
    "SegmentWindow",
    "TransactionSet",
    "bytes_key_names",
    "count_transactions",
    "key_names",
    "plan_bucket",
    "rekey_of",
    "route",
]
