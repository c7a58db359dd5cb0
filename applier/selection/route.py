"""Routes: the names that tables have in the sink. The first route that matches a table counts; without one it keeps its name."""

import re
from dataclasses import dataclass
from typing import Final

from applier.model.events import TableName
from applier.selection.pattern import PatternError, TablePattern, parse_pattern

_PIECE: Final = re.compile(r"\{(schema|table)\}|`((?:``|[^`])+)`|([0-9A-Za-z_$\x80-\U0010FFFF-]+)")

_TO_REMEDY: Final = 'Write "schema.table" with {schema} and {table} for upstream\'s names: "archive.{table}", "copy_{schema}.{table}"'


@dataclass(frozen=True, slots=True)
class NameTemplate:
    """How a name is made. ``pieces`` are texts, and (True, "schema" or "table") for upstream's names."""

    pieces: tuple[tuple[bool, str], ...]

    def of(self, name: TableName) -> str:
        """Return the name for a table of upstream."""
        return "".join(getattr(name, text) if is_name else text for is_name, text in self.pieces)

    def uses(self, part: str) -> bool:
        """Whether upstream's schema or table is a part of the name."""
        return (True, part) in self.pieces

    def found_in(self, name: str) -> re.Match[str] | None:
        """Match a name that the template could have made; the groups are upstream's names in it, as far as they can be told apart."""
        expression = "".join("(.+)" if is_name else re.escape(text) for is_name, text in self.pieces)
        return re.fullmatch(expression, name, re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Route:
    """Tables that match ``pattern`` have other names in the sink."""

    pattern: TablePattern
    schema: NameTemplate
    table: NameTemplate

    @classmethod
    def parse(cls, pattern: str, to: str) -> "Route":
        """Read a route. PatternError."""
        schema, rest = _template(to)
        if not rest.startswith("."):
            raise PatternError(f"is not a name for tables: {to!r}", _TO_REMEDY)
        table, rest = _template(rest[1:])
        if rest or not schema.pieces or not table.pieces:
            raise PatternError(f"is not a name for tables: {to!r}", _TO_REMEDY)
        return cls(parse_pattern(pattern), schema, table)

    @property
    def takes_whole_schemas(self) -> bool:
        """Whether it takes all tables of the schemas that it matches, each schema into one."""
        return self.pattern.table.is_any and not self.schema.uses("table")

    def of(self, name: TableName) -> TableName:
        """Return the sink's name of a table."""
        return TableName(self.schema.of(name), self.table.of(name))

    def may_fill(self, target: str, but: str) -> bool:
        """Return whether it may give the sink's schema ``target`` to tables of another schema of upstream than ``but``."""
        found = self.schema.found_in(target)
        if found is None:
            return False
        if self.schema.uses("schema") and len(found.groups()) == 1:
            return found[1].casefold() != but.casefold() and self.pattern.schema.matches(found[1])
        return not (self.pattern.schema.is_literal and self.pattern.schema.matches(but))


def _template(text: str) -> tuple[NameTemplate, str]:
    pieces, at = list[tuple[bool, str]](), 0
    while (found := _PIECE.match(text, at)) is not None:
        pieces.append((True, found[1]) if found[1] else (False, found[3] or found[2].replace("``", "`")))
        at = found.end()
    return NameTemplate(tuple(pieces)), text[at:]
