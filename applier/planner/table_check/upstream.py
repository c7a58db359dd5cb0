"""Upstream's own tables, where the source can ask for them: what its events do not show. Statements that are older than the replica, too.

They are asked as they are now, which is later than the rows that are applied. So they explain a difference, and never make one.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from applier.model.events import FoldedName


@dataclass(frozen=True, slots=True)
class UpstreamKeys:
    """The keys of a table of upstream, and what its columns compare texts with. All names are casefolded."""

    unique_keys: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Columns of each unique index, by its name; expressions are left out."""
    collations: Mapping[str, str] = field(default_factory=dict)
    """By column."""


class UpstreamTables(Protocol):
    """Answers for upstream's tables under the names that they have in the sink. Driver side; SourceError: upstream does not answer."""

    def definitions(self, tables: Collection[FoldedName]) -> Mapping[FoldedName, UpstreamKeys]:
        """Return what upstream has of these tables; missing ones are left out. Asked where the check would stop the replica."""
        ...

    def check_names(self, tables: Collection[FoldedName]) -> None:
        """Raise NeedsOperator if upstream has two tables of one of these names, apart from case. Asked before a table's first row."""
        ...

    def is_left_out(self, table: FoldedName) -> bool:
        """Return whether upstream's table of this name is not a part of the replica."""
        ...

    def forget(self) -> None:
        """Forget what was answered: a DDL may have changed it."""
        ...
