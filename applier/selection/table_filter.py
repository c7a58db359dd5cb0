"""The table filter: rules in TiDB's syntax, of which the last one that matches a table counts; a table that none matches is left out."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from applier.model.events import TableName
from applier.selection.pattern import PatternError, TablePattern, parse_pattern

ReadLines = Callable[[str], Iterable[str]]
"""Reads the lines of a file that a rule names by ``@``."""


class SchemaPart(Enum):
    """How much of a schema the replica has."""

    NONE = "none"
    SOME = "some"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. ``includes``: whether it takes tables in, or (``!``) leaves them out."""

    pattern: TablePattern
    includes: bool


@dataclass(frozen=True, slots=True)
class TableFilter:
    """Decides about tables by name. Without rules every table is in."""

    rules: tuple[Rule, ...] = ()

    @classmethod
    def parse(cls, lines: Iterable[str], read_lines: ReadLines | None = None) -> "TableFilter":
        """Read rules; blank lines and those that begin with ``#`` say nothing. PatternError.

        ``@file`` stands for the rules in a file, which may not name further files.
        """
        rules = list[Rule]()
        for line in map(str.strip, lines):
            if line.startswith("@"):
                if read_lines is None:
                    raise PatternError(f"names a file inside of a file: {line!r}", "Name it in the configuration")
                rules += cls.parse(read_lines(line[1:])).rules
            elif line and not line.startswith("#"):
                rules.append(Rule(parse_pattern(line.removeprefix("!")), not line.startswith("!")))
        return cls(tuple(rules))

    def has(self, table: TableName) -> bool:
        """Return whether the replica has a table."""
        if not self.rules:
            return True
        return next((rule.includes for rule in reversed(self.rules) if rule.pattern.matches(table)), False)

    def part_of(self, schema: str) -> SchemaPart:
        """Return how much of a schema the replica has, as far as names can tell."""
        if not self.rules:
            return SchemaPart.ALL
        seen = set[bool]()
        for rule in reversed(self.rules):
            if rule.pattern.schema.matches(schema):
                seen.add(rule.includes)
                if rule.pattern.table.is_any:
                    break
        else:
            seen.add(False)  # a table that no rule matches is left out
        return SchemaPart.SOME if len(seen) > 1 else SchemaPart.ALL if True in seen else SchemaPart.NONE


ALL_TABLES: Final = TableFilter()
