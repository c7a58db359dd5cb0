"""The table check: what a table of the sink has that upstream's lacks, and that would lose or alter rows without a word.

Pure. The sinks say how their tables are (``SinkTable``), the wire's flags and upstream's own statements say how they must be, and the
configuration says which differences an operator accepts. See DESIGN.md 7.
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
    "unique_index_difference",
]
