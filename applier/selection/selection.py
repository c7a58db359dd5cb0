"""What the replica has of upstream: the table filter, the event filters, and the routes.

Event filters: kinds of events of chosen tables that are skipped, as in a changefeed's ``[[filter.event-filters]]``.

The sink then lacks the excluded rows: the operator asks for that.

Routes: the names that tables have in the sink. The first route that matches a table counts; without one it keeps its name.

Tables that gh-ost and pt-online-schema-change make while they change a table: copies, and tables without a use for a replica.

The rules are TiDB DM's (``shadow-table-rules``, ``trash-table-rules``): a regular expression that matches the whole name of such a
table, and whose one group is the name of the table that the tool changes.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from applier.ddl import ddl_type_name
from applier.ddl.policy import DDL_TYPE_NAMES
from applier.model.errors import Remedy
from applier.model.events import DdlEvent, RowOperation, Shape, TableName
from applier.selection.table_filter import ALL_TABLES, PatternError, SchemaPart, TableFilter, TablePattern, compiled, parse_pattern

ALL_ROWS: Final = "all_dml"
ALL_DDLS: Final = "all_ddl"

KINDS: Final = frozenset({*RowOperation, ALL_ROWS, ALL_DDLS, *DDL_TYPE_NAMES.values()})
"""What ``ignore`` may name: kinds of rows and DDL types. TiCDC's spelling, with blanks for the underscores, is read too."""

_REMEDY: Final = Remedy("selection.name-event-types", "Name insert, update, delete, all_dml, all_ddl or a DDL type, as under [ddl]")


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Excludes events of some tables. ``ignored``: of KINDS. ``statements``: of DDLs, found anywhere in the text."""

    tables: TableFilter
    ignored: frozenset[str] = frozenset()
    statements: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def parse(cls, tables: TableFilter, ignored: Iterable[str], statements: Iterable[str] = ()) -> "EventFilter":
        """Read one filter. PatternError."""
        kinds = frozenset(kind.strip().lower().replace(" ", "_") for kind in ignored)
        for kind in sorted(kinds - KINDS):
            raise PatternError(f"has an unknown kind of event: {kind!r}", _REMEDY)
        try:
            return cls(tables, kinds, tuple(map(compiled, statements)))
        except re.error as error:
            raise PatternError(
                f"has a regular expression that cannot be read ({error})", Remedy("selection.correct-ignore-sql", "Correct ignore_sql")
            ) from None

    def ignored_rows(self, table: TableName) -> frozenset[RowOperation]:
        """Return which row changes of a table are skipped."""
        if not self.tables.has(table):
            return frozenset()
        return frozenset(RowOperation) if ALL_ROWS in self.ignored else frozenset(kind for kind in RowOperation if kind in self.ignored)

    def ignores(self, ddl: DdlEvent, tables: Iterable[TableName]) -> bool:
        """Return whether a DDL that touches ``tables`` is skipped."""
        if not (self.ignored & {ALL_DDLS, ddl_type_name(ddl.ddl_type)} or any(one.search(ddl.query) for one in self.statements)):
            return False
        return any(self.tables.has(table) for table in tables)


_PIECE: Final = re.compile(r"\{(schema|table)\}|`((?:``|[^`])+)`|([0-9A-Za-z_$\x80-\U0010FFFF-]+)")

_TO_REMEDY: Final = Remedy(
    "selection.write-route",
    'Write "schema.table" with {schema} and {table} for upstream\'s names: "archive.{table}", "copy_{schema}.{table}"',
)


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
        """Match a name that the template could have made; the groups are upstream's names in it, if they can be told apart."""
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


COPIES: Final = (r"^_(.+)_(?:new|gho)$",)
LEFTOVERS: Final = (r"^_(.+)_(?:ghc|ghk|del|old)$",)
MAX_NAME: Final = 64
"""The characters of a table's name. Both tools shorten the table's name inside of a longer one."""
_MIN_SHORTENED: Final = 32
_TIMESTAMP: Final = re.compile(r"_\d{14}", re.ASCII)
"""What gh-ost's --timestamp-old-table appends to the table's name."""


class OnlineDdlMode(StrEnum):
    """What happens to tables of these tools."""

    FILTERED = "filtered"
    """Where the table filter excludes the copy, the cut-over is applied as the ALTER TABLE of the copy."""
    ALWAYS = "always"
    """All of these tables are skipped, whatever the table filter says."""
    OFF = "off"
    """They are treated as other tables."""


@dataclass(frozen=True, slots=True)
class OnlineDdl:
    """The rules. ``leftovers``: tables that are neither the changed table nor its copy."""

    mode: OnlineDdlMode = OnlineDdlMode.OFF
    copies: tuple[re.Pattern[str], ...] = ()
    leftovers: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def parse(cls, mode: OnlineDdlMode, copies: Iterable[str] = COPIES, leftovers: Iterable[str] = LEFTOVERS) -> "OnlineDdl":
        """Read the rules. PatternError."""
        return cls(mode, tuple(map(_rule, copies)), tuple(map(_rule, leftovers)))

    def leaves_out(self, table: TableName) -> bool:
        """Return whether a table is skipped because one of these tools makes it."""
        return self.mode is OnlineDdlMode.ALWAYS and any(rule.fullmatch(table.table) for rule in (*self.copies, *self.leftovers))

    def is_copy(self, other: TableName, table: TableName) -> bool:
        """Return whether ``other`` is named as the copy of a table."""
        return self.mode is not OnlineDdlMode.OFF and _is_of(self.copies, other, table)

    def is_leftover(self, other: TableName, table: TableName) -> bool:
        """Return whether ``other`` has the name that a tool gives to a table that it has changed."""
        return self.mode is not OnlineDdlMode.OFF and _is_of(self.leftovers, other, table)


NO_ONLINE_DDL: Final = OnlineDdl()


def _rule(text: str) -> re.Pattern[str]:
    try:
        rule = compiled(text)
    except re.error as error:
        message = f"has a regular expression that cannot be read: {text!r} ({error})"
        raise PatternError(message, Remedy("selection.correct-name-expression", "Correct the expression")) from None
    if rule.groups != 1:
        remedy = Remedy(
            "selection.put-name-into-group", r"Put the changed table's name into one group, the others into (?:…): ^_(.+)_(?:new|gho)$"
        )
        raise PatternError(f"has a regular expression without exactly one group: {text!r}", remedy)
    return rule


def _is_of(rules: Iterable[re.Pattern[str]], other: TableName, table: TableName) -> bool:
    if other.fold().schema != table.fold().schema:
        return False
    found = (rule.fullmatch(other.table) for rule in rules)
    return any(_names(match[1].casefold(), table.table.casefold(), len(other.table)) for match in found if match is not None)


def _names(found: str, table: str, length: int) -> bool:
    """Return whether the name that a rule has found is the table's. ``length``: of the name around it."""
    # pt-online-schema-change puts more underscores before a name that is taken.
    if found == table or (found.endswith(table) and not found.removesuffix(table).strip("_")):
        return True
    if found.startswith(table) and _TIMESTAMP.fullmatch(found.removeprefix(table)):
        return True
    return len(found) >= _MIN_SHORTENED and length - len(found) + len(table) > MAX_NAME and table.startswith(found)


@dataclass(frozen=True, slots=True)
class SelectedTable:
    """The selection's decision about one table of upstream: known as soon as the table of a row is read.

    ``ignored``: row changes that an event filter excludes; ``is_filtered``: the table filter excludes the table, and the report of a range
    excludes some; ``is_out``: none of its rows is applied.
    """

    name: TableName
    sink_name: TableName
    ignored: frozenset[RowOperation]
    is_filtered: bool
    is_out: bool

    @property
    def is_routed(self) -> bool:
        """Whether the table has another name in the sink."""
        return self.sink_name != self.name

    def routed(self, shape: Shape) -> Shape:
        """Return a shape of the table under its name in the sink."""
        if not self.is_routed:
            return shape
        schema, table = self.sink_name
        return shape._replace(schema=schema, table=table, routed_from=self.name)


@dataclass(frozen=True, slots=True)
class TableSelection:
    """Frozen and picklable: it crosses to executors as a part of the decoder."""

    tables: TableFilter = ALL_TABLES
    routes: tuple[Route, ...] = ()
    event_filters: tuple[EventFilter, ...] = ()
    online: OnlineDdl = NO_ONLINE_DDL

    def table(self, name: TableName) -> SelectedTable:
        """Return the selection's decision about a table of upstream. It matches patterns: ask once per table, not per row."""
        is_filtered, ignored = not self.has(name), self.ignored_rows(name)
        return SelectedTable(name, self.name(name), ignored, is_filtered, is_out=is_filtered or len(ignored) == len(RowOperation))

    @property
    def is_everything(self) -> bool:
        """Whether all events of all tables pass as they are."""
        return not (self.tables.rules or self.routes or self.event_filters or self.online.mode is OnlineDdlMode.ALWAYS)

    def has(self, table: TableName) -> bool:
        """Return whether the replica has a table of upstream."""
        return self.tables.has(table) and not self.online.leaves_out(table)

    def name(self, table: TableName) -> TableName:
        """Return the name of a table in the sink."""
        for route in self.routes:
            if route.pattern.matches(table):
                return route.of(table)
        return table

    def ignored_rows(self, table: TableName) -> frozenset[RowOperation]:
        """Return which row changes of a table are skipped."""
        return frozenset[RowOperation]().union(*(one.ignored_rows(table) for one in self.event_filters))

    def ignores(self, ddl: DdlEvent, tables: Iterable[TableName]) -> bool:
        """Return whether an event filter excludes a DDL that touches ``tables``."""
        names = tuple(tables)
        return any(one.ignores(ddl, names) for one in self.event_filters)

    # --- schemas ---------------------------------------------------------------------------------------------------

    def part_of(self, schema: str) -> SchemaPart:
        """Return how much of a schema the replica has."""
        return self.tables.part_of(schema)

    def schema_name(self, schema: str) -> str:
        """Return the schema of the sink for statements about a schema: that of the route that takes it whole, else its own."""
        for route in self.routes:
            if route.pattern.schema.matches(schema) and route.takes_whole_schemas:
                return route.schema.of(TableName(schema, ""))
        return schema

    def is_apart(self, schema: str) -> bool:
        """Return whether the sink's schema of a schema holds all of its tables and none of others, by their names."""
        target = self.schema_name(schema)
        for route in self.routes:
            is_whole = route.takes_whole_schemas
            if route.pattern.schema.matches(schema):
                # The first route that takes all of it is the one of ``schema_name``; one before it takes tables elsewhere.
                if is_whole:
                    break
                return False
        return not any(route.may_fill(target, schema) for route in self.routes) and (
            target.casefold() == schema.casefold() or self._leaves(target)
        )

    def _leaves(self, schema: str) -> bool:
        """Return whether upstream's own schema of this name has no table there: it is skipped, or routed elsewhere."""
        return self.part_of(schema) is SchemaPart.NONE or self.schema_name(schema).casefold() != schema.casefold()


EVERYTHING: Final = TableSelection()
