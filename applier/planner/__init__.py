"""Rows to statements: the planner turns the cached chunks of one bucket into whole SQL statements. Pure.

Imports model and ddl. The sink's catalogue, its dialect and the source's decoders come in as values (``port``, ``catalogue``). The way of a
row: ``compaction`` keeps the last version of each key, ``column_match`` finds the sink's column for each value, ``rendering`` writes the
literals, ``plan`` puts DELETEs before REPLACEs. Read ``plan`` first. ``table_check`` compares the sink's tables with upstream's.
"""

from applier.model.segment import SegmentWindow
from applier.planner.column_match import bytes_key_names, key_names, reported_key, unique_names
from applier.planner.compaction import TransactionSet, count_transactions
from applier.planner.division import Moved, route, sink_key_of, sliced
from applier.planner.final_rows import STOP, QuarantinePolicy
from applier.planner.plan import NO_KEY, NO_KEY_REMEDY, Planned, PlanTarget, plan_bucket, plan_segments

__all__ = [
    "NO_KEY",
    "NO_KEY_REMEDY",
    "STOP",
    "Moved",
    "PlanTarget",
    "Planned",
    "QuarantinePolicy",
    "SegmentWindow",
    "TransactionSet",
    "bytes_key_names",
    "count_transactions",
    "key_names",
    "plan_bucket",
    "plan_segments",
    "reported_key",
    "route",
    "sink_key_of",
    "sliced",
    "unique_names",
]
