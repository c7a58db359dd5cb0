"""The schemas of the server itself: what happens in them is its own, and never upstream's data."""

from typing import Final

SYSTEM_SCHEMAS: Final = frozenset({"mysql", "sys", "performance_schema", "information_schema"})
"""Folded names."""


def is_system_schema(schema: str) -> bool:
    """Return whether a schema is the server's own."""
    return schema.casefold() in SYSTEM_SCHEMAS
