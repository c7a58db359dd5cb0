"""The table check: finds differences between the sink's tables and upstream's that would lose or alter rows silently (DESIGN.md 7).

Pure. The sinks describe their tables (``SinkTable``). The wire's flags (``difference``) and upstream's own statements (``evidence``) show
what upstream has. The configuration says which differences the operator accepts (``acceptance``). It may import ``applier.ddl`` and
``applier.model``. Read ``difference`` first.
"""

from applier.planner.table_check.acceptance import Acceptance, check_pattern
from applier.planner.table_check.difference import (
    Difference,
    DifferenceKind,
    FoldingColumn,
    SinkTable,
    UniqueIndex,
    differences_of,
    extra_unique_index,
    generated_difference,
    unique_index_difference,
)
from applier.planner.table_check.evidence import Evidence

__all__ = [
    "Acceptance",
    "Difference",
    "DifferenceKind",
    "Evidence",
    "FoldingColumn",
    "SinkTable",
    "UniqueIndex",
    "check_pattern",
    "differences_of",
    "extra_unique_index",
    "generated_difference",
    "unique_index_difference",
]
