"""The operator's settings of the table check: accepted differences (``[sink.accept]``), and the kind of upstream's collations."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from applier.model.events import FoldedName
from applier.planner.table_check.difference import DifferenceKind


@dataclass(frozen=True, slots=True)
class Acceptance:
    """Patterns of ``schema.table`` (``*`` any characters, ``?`` one, without regard to case), and the differences accepted of such tables.

    ``new_collations``: whether upstream has TiDB's new collations (the default since 6.0). Without them it compares all texts byte by
    byte, trailing spaces included, whatever collation its statements name. ``collations``: pairs of an upstream collation and what the
    operator calls it in the sink.
    """

    patterns: Mapping[str, tuple[DifferenceKind, ...]] = field(default_factory=dict)
    new_collations: bool = True
    collations: tuple[tuple[str, str], ...] = ()

    def accepts(self, table: FoldedName, kind: DifferenceKind) -> bool:
        """Return whether the operator accepts differences of this kind on this table."""
        return any(kind in kinds and fits(pattern, table) for pattern, kinds in self.patterns.items())

    def upstream_names(self, collation: str) -> list[str]:
        """Return what a collation of the sink may be called upstream: its own name, and those that the operator has mapped to it."""
        # MariaDB takes uca1400_ai_ci, and shows it with the character set before it.
        own = {collation.casefold(), collation.casefold().removeprefix("utf8mb4_")}
        return [collation, *(upstream for upstream, mapped in self.collations if mapped in own)]


def check_pattern(pattern: str) -> str:
    """Return what is wrong with a pattern, '' if nothing is."""
    schema, dot, table = pattern.partition(".")
    return "" if schema and dot and table else 'is not a table pattern: write "schema.table", with * for any characters'


def fits(pattern: str, table: FoldedName) -> bool:
    """Return whether a table is one of those that a pattern stands for."""
    return _compiled(pattern).fullmatch(str(table)) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # fnmatch would take [ and ] for a set of characters, and they may stand in a name.
    wild = {"*": ".*", "?": "."}
    return re.compile("".join(wild.get(sign) or re.escape(sign) for sign in pattern.casefold()), re.DOTALL)
