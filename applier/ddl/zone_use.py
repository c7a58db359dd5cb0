"""Finds the parts of a DDL whose meaning depends on the time zone of the session in which it ran upstream. Pure.

TIMESTAMP columns hold points in time; a literal or another type is the time that a session sees. So a DDL needs the zone where it makes
one of the other. What is not known to be independent counts as dependent: functions, definitions and statements that are not understood.

Nothing here is about later rows: those come with their values. So a CREATE TABLE needs the zone for literals of TIMESTAMPs and bounds
of partitions only; expressions of indexes and of VIRTUAL columns are evaluated by sessions that write and read, in no DDL.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

from applier.ddl.column_type import ColumnType, TypeFamily
from applier.ddl.parser import parse_or_none
from applier.ddl.table_draft import ColumnDefinition, Default, DefaultKind, parse_column
from applier.ddl.tokens import DdlSyntaxError, Token, scan
from applier.ddl.tree import (
    AlterClause,
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    ElementKind,
    Span,
    Tree,
)
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent

TIME_ZONE: Final = "time_zone"
"""The variable of ``DdlEvent.session``."""
ZONE_REMEDY: Final = Remedy(
    "ddl.set-ddl-time-zone",
    "Set source.ddl_time_zone to the zone of upstream's sessions (there: SELECT @@GLOBAL.time_zone, and @@GLOBAL.system_time_zone if "
    "that is SYSTEM: of an abbreviation such as EST, the name of its zone, America/New_York), and start again",
)

Types = Mapping[str, ColumnType] | None
"""The types of a table's columns before the DDL, by casefolded name; None: not known."""

INDEPENDENT: Final = frozenset(
    {
        # Texts, numbers and JSON.
        "ABS", "ASCII", "BIN", "BIT_LENGTH", "CEIL", "CEILING", "CHAR", "CHAR_LENGTH", "COALESCE", "CONCAT", "CONCAT_WS", "CONV", "CRC32",
        "ELT", "FIELD", "FLOOR", "GREATEST", "HEX", "IF", "IFNULL", "INET6_ATON", "INET6_NTOA", "INET_ATON", "INET_NTOA", "INSTR",
        "JSON_ARRAY", "JSON_EXTRACT", "JSON_LENGTH", "JSON_OBJECT",
        "JSON_TYPE", "JSON_UNQUOTE", "JSON_VALID", "JSON_VALUE", "LCASE", "LEAST", "LEFT", "LENGTH", "LOCATE", "LOWER", "LPAD", "LTRIM",
        "MD5", "MID", "MOD", "NULLIF", "OCT", "ORD", "POSITION", "POW", "POWER", "RAND", "REPEAT", "REPLACE", "REVERSE", "RIGHT", "ROUND",
        "RPAD", "RTRIM", "SHA1", "SHA2", "SIGN", "SPACE", "SQRT", "STRCMP", "SUBSTR", "SUBSTRING", "SUBSTRING_INDEX", "TRIM", "TRUNCATE",
        "UCASE", "UNHEX", "UPPER", "UUID", "UUID_TO_BIN",
        # Parts of a date that is written there, or of a column that is no TIMESTAMP.
        "ADDDATE", "BINARY", "CAST", "CONVERT", "DATE", "DATEDIFF", "DATE_ADD", "DATE_FORMAT", "DATE_SUB", "DATETIME", "DAY", "DAYOFMONTH",
        "DAYOFWEEK", "DAYOFYEAR", "DECIMAL", "EXTRACT", "HOUR", "LAST_DAY", "MAKEDATE", "MAKETIME", "MICROSECOND", "MINUTE", "MONTH",
        "QUARTER", "SECOND", "STR_TO_DATE", "SUBDATE", "TIME", "TIMESTAMPDIFF", "TO_DAYS", "TO_SECONDS", "WEEK", "WEEKDAY", "WEEKOFYEAR",
        "YEAR", "YEARWEEK",
    }
)  # fmt: skip
"""Functions whose result does not depend on the zone, of arguments that do not."""

_BEFORE_PARENTHESIS: Final = frozenset(
    {
        "THAN",
        "IN",
        "RANGE",
        "LIST",
        "HASH",
        "KEY",
        "COLUMNS",
        "PARTITION",
        "SUBPARTITION",
        "BY",
        "INTERVAL",
        "INTO",
        "AND",
        "OR",
        "NOT",
        "AS",
        "VALUES",
    }
)
"""Words of partitions and of expressions that come before a parenthesis and are not functions."""
_NOW: Final = frozenset({"CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP", "NOW", "CURDATE", "CURTIME"})
_OF_TIME: Final = frozenset({"TIMESTAMP", "DATETIME", "DATE", "TIME", "UNIX_TIMESTAMP", "FROM_UNIXTIME", "SYSDATE", *_NOW})
_TYPES_OF_ROWS: Final = (ClauseKind.MODIFY, ClauseKind.CHANGE)
_OF_PARTITIONS: Final = (ClauseKind.ADD_PARTITION, ClauseKind.PARTITIONING)
_TIMES: Final = (TypeFamily.DATETIME, TypeFamily.DATE, TypeFamily.TIME)
_OFFSET: Final = re.compile(r"\d[+-]\d{2}:\d{2}'$")
_ZERO: Final = frozenset("0-: .'")


class ZoneUse(NamedTuple):
    """What depends on the zone: always (``rows`` None), or if there are rows (''), or rows with a value in the column ``rows``."""

    what: str
    rows: str | None = None


def zone_uses(query: str, types: Types = None) -> list[ZoneUse]:
    """Return the parts of a DDL that depend on its session's zone. ``types``: of its table; without them, what may depend."""
    tree = parse_or_none(query)
    if tree is None:
        return [ZoneUse("a statement that the applier does not understand")] if _speaks_of_time(query) else []
    match tree.node:
        case CreateTableStatement():
            return list(_of_table(tree, tree.node))
        case AlterTableStatement():
            return [use for clause in tree.node.clauses for use in _of_clause(tree, clause, types)]
        case _:
            return []


def in_zone_of_need(ddl: DdlEvent, types_of: Callable[[], Types], holds: Callable[[str], bool]) -> DdlEvent:
    """Return the DDL with its zone if it depends on it, else without. NeedsOperator: it depends on it, and the zone is not known.

    ``types_of``: asks for the types of its table's columns; ``holds``: whether a row has a value in a column, or with ''
    whether there is a row. Asked only if they matter.
    """
    # A log says the zone of each statement.
    if ddl.is_of_log:
        return ddl
    uses = zone_uses(ddl.query) and zone_uses(ddl.query, types_of())
    needed = next((use for use in sorted(uses, key=_is_of_rows) if use.rows is None or holds(use.rows)), None)
    if needed is None:
        return replace(ddl, session=tuple(pair for pair in ddl.session if pair[0] != TIME_ZONE))
    if TIME_ZONE in dict(ddl.session):
        return ddl
    facts: dict[str, Any] = {"table": str(ddl.name), "commit_ts": ddl.commit_ts, "query": ddl.query}
    message = f"the DDL depends on the time zone of upstream's session, which is not known: {needed.what}"
    raise NeedsOperator(message, remedy=ZONE_REMEDY, **facts)


def _is_of_rows(use: ZoneUse) -> bool:
    return use.rows is not None


def _speaks_of_time(query: str) -> bool:
    try:
        return not _OF_TIME.isdisjoint(token.keyword for token in scan(query))
    except DdlSyntaxError:
        return True


def _of_table(tree: Tree, node: CreateTableStatement) -> Iterator[ZoneUse]:
    for element in node.elements:
        if element.kind is ElementKind.COLUMN and element.name is not None:
            yield from _of_new_column(tree, (element.body, element.span[1]), element.name.text, {}, is_added=False)
    yield from _of_bounds(tree, node.partitioning)


def _of_clause(tree: Tree, clause: AlterClause, types: Types) -> Iterator[ZoneUse]:
    if clause.kind in _TYPES_OF_ROWS and clause.name is not None:
        yield from _of_changed_column(tree, clause, clause.name.text, types)
    elif clause.kind is ClauseKind.ALTER_COLUMN and clause.name is not None:
        yield from _of_changed_default(tree, clause, clause.name.text, types)
    elif clause.kind in _OF_PARTITIONS:
        yield from _of_bounds(tree, clause.span)
    for element in clause.elements:
        if element.kind is ElementKind.COLUMN and element.name is not None:
            yield from _of_new_column(tree, (element.body, element.span[1]), element.name.text, types, is_added=True)


# Columns


def _definition(tree: Tree, body: Span, name: str) -> ColumnDefinition | None:
    try:
        return parse_column(tree.part(*body), name).definition
    except DdlSyntaxError:
        return None


def _of_new_column(tree: Tree, body: Span, name: str, types: Types, *, is_added: bool) -> Iterator[ZoneUse]:
    column = _definition(tree, body, name)
    if column is None:
        if not _OF_TIME.isdisjoint(token.keyword for token in tree.tokens[body[0] : body[1] + 1]):
            yield ZoneUse(f"the definition of {name}, which the applier does not understand")
        return
    yield from _of_literal(column)
    if is_added:
        yield from _of_values_of_old_rows(column, types)


def _of_literal(column: ColumnDefinition) -> Iterator[ZoneUse]:
    if not _is_a_time(column.default):
        return
    if column.type.family is TypeFamily.TIMESTAMP:
        yield ZoneUse(f"the default of the TIMESTAMP column {column.name}")
    # A literal with an offset is brought to the session's zone.
    elif column.type.family in _TIMES and column.default is not None and _OFFSET.search(column.default.text):
        yield ZoneUse(f"the default of {column.name}, which names an offset")


def _is_a_time(default: Default | None) -> bool:
    # '0000-00-00 00:00:00' is no point in time: it is the same in each zone.
    return default is not None and default.kind is DefaultKind.LITERAL and not set(default.text) <= _ZERO


def _of_values_of_old_rows(column: ColumnDefinition, types: Types) -> Iterator[ZoneUse]:
    is_timestamp = column.type.family is TypeFamily.TIMESTAMP
    if column.generated and column.stored and (is_timestamp or _depends(scan(column.generated), types)):
        yield ZoneUse(f"the values of the generated column {column.name} in old rows", rows="")
    if column.default is None:
        return
    # The current time of a TIMESTAMP is a point in time, whatever the zone is.
    is_now = column.default.kind is DefaultKind.NOW and not is_timestamp
    is_expression = column.default.kind is DefaultKind.EXPRESSION
    if is_now or (is_expression and (is_timestamp or _depends(scan(column.default.text), types))):
        yield ZoneUse(f"the default of {column.name} in old rows", rows="")


def _of_changed_column(tree: Tree, clause: AlterClause, name: str, types: Types) -> Iterator[ZoneUse]:
    column = _definition(tree, (clause.body, clause.span[1]), name)
    before = None if types is None else types.get(name.casefold())
    if types is not None and before is None:
        return  # no such column: nothing is converted, or the statement fails
    if column is None:
        yield ZoneUse(f"the definition of {name}, which the applier does not understand")
        return
    yield from _of_literal(column)
    families = {column.type.family} | ({TypeFamily.TIMESTAMP, TypeFamily.DATETIME} if before is None else {before.family})
    if TypeFamily.TIMESTAMP in families and len(families) > 1:
        yield ZoneUse(f"the times of {name} in old rows, converted from or to TIMESTAMP", rows=name)


def _of_changed_default(tree: Tree, clause: AlterClause, name: str, types: Types) -> Iterator[ZoneUse]:
    before = None if types is None else types.get(name.casefold())
    is_timestamp = types is None or (before is not None and before.family is TypeFamily.TIMESTAMP)
    given = [token for token in tree.tokens[clause.body : clause.span[1] + 1] if token.kind == "string"]
    if is_timestamp and any(not set(token.text) <= _ZERO for token in given):
        yield ZoneUse(f"the default of the TIMESTAMP column {name}")


# Expressions


def _of_bounds(tree: Tree, span: Span) -> Iterator[ZoneUse]:
    tokens = _without_known_points(tree.tokens[span[0] : span[1] + 1])
    # Columns of a partition's expression are TIMESTAMPs in UNIX_TIMESTAMP only, which gives the same number in each zone.
    if _depends(tokens, {}):
        yield ZoneUse("bounds of partitions")


def _without_known_points(tokens: Sequence[Token]) -> list[Token]:
    """Skip UNIX_TIMESTAMP of a column: the column is a TIMESTAMP there, and its number of seconds the same in each zone."""
    kept, at = [], 0
    while at < len(tokens):
        ahead = tokens[at : at + 4]
        is_point = [token.keyword for token in ahead[:2]] == ["UNIX_TIMESTAMP", "("] and len(ahead) == 4 and ahead[3].kind == ")"
        if is_point and ahead[2].is_name:
            at += 4
            continue
        kept.append(tokens[at])
        at += 1
    return kept


def _depends(tokens: Sequence[Token], types: Types) -> bool:
    """Return whether an expression may depend on the zone: a function that is not known to be independent, or a TIMESTAMP column."""
    if any(token.keyword in _NOW for token in tokens):
        return True
    if any(after.kind == "(" and _may_call(before) for before, after in pairwise(tokens)):
        return True
    names = [token.text.casefold() for token, after in pairwise([*tokens, *tokens[-1:]]) if token.is_name and after.kind != "("]
    if types is None:
        return bool(names)
    return any(name in types and types[name].family is TypeFamily.TIMESTAMP for name in names)


def _may_call(token: Token) -> bool:
    return token.is_name and token.keyword not in INDEPENDENT and token.keyword not in _BEFORE_PARENTHESIS
