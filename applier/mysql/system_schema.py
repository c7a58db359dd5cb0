"""The schemas in which MySQL, MariaDB and TiDB keep themselves."""

from typing import Final

SYSTEM_SCHEMAS: Final = frozenset({"mysql", "information_schema", "performance_schema", "sys", "metrics_schema", "inspection_schema"})
"""Casefolded. TiCDC never sends events on them."""
