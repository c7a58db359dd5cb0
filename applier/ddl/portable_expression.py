"""Expressions that every database of a sink computes as upstream does: one list for all sinks.

A generated column or a functional index is computed by the sink itself, so nothing would correct a wrong value. What is not on the list is
not portable: text functions (case folding, collations), JSON (formats of numbers and objects), division, functions of dates and times,
FLOAT and DOUBLE as text, TIMESTAMP (its text is that of the session's time zone), arithmetic with DECIMAL, comparisons of texts. Pure.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from applier.ddl.column_type import UTF8_CHARSETS, ColumnType, TypeFamily

Columns: TypeAlias = Mapping[str, ColumnType]
"""The columns that an expression may name, by casefolded name."""


class Kind(StrEnum):
    """What a value is."""

    NUMBER = "number"
    TEXT = "text"


class PortableExpression(NamedTuple):
    """``sources``: the types of the columns whose values it may be, as they are."""

    tree: exp.Expr
    kind: Kind
    sources: frozenset[ColumnType]


MAX_SIGNED: Final = 2**63 - 1
_EMPTY_JSON: Final = frozenset({"json_array", "json_object"})
_TODAY: Final = frozenset({"current_date", "curdate"})
"""The day of the session's time and zone, which are upstream's."""
_WORDS: Final = frozenset({"null", "true", "false"})
_SIGNED: Final = re.compile(r"[-+] *\d+(\.\d*)?")
"""Constants as defaults, without parentheses. A number without a sign is a literal."""
_TEXT_FAMILIES: Final = (
    TypeFamily.CHARACTER,
    TypeFamily.DECIMAL,
    TypeFamily.DATE,
    TypeFamily.DATETIME,
    TypeFamily.TIME,
    TypeFamily.ENUM,
    TypeFamily.SET,
)
COMPUTED: Final = ColumnType(base="varchar")
"""Represents values that are not a column's."""
ARITHMETIC: Final[Mapping[type[exp.Expr], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
COMPARISON: Final[Mapping[type[exp.Expr], str]] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.NullSafeEQ: "IS",
}  # fmt: skip
LOGIC: Final[Mapping[type[exp.Expr], str]] = {exp.And: "AND", exp.Or: "OR"}


def portable(expression: str, columns: Columns, stored_as: ColumnType | None = None) -> PortableExpression | None:
    """Return a MySQL expression over ``columns`` if it is portable, else None.

    ``stored_as``: the type of the generated column, which converts the value; None where nothing stores it.
    """
    tree = parsed(expression)
    kind = None if tree is None else _kind(tree, columns)
    if tree is None or kind is None:
        return None
    found = PortableExpression(tree, kind, _sources(tree, columns))
    return found if stored_as is None or _is_stored_exactly(found, stored_as) else None


def is_portable_default(expression: str, columns: Columns, stored_as: ColumnType) -> bool:
    """Return whether each server gives old rows the same by a default in parentheses: it is portable, or one of some constants."""
    words = expression.casefold().strip("( )")
    if words in _EMPTY_JSON:
        return stored_as.base in {"json", "longtext"}
    if words in _TODAY:
        return stored_as.family is TypeFamily.DATE
    if words in _WORDS or _SIGNED.fullmatch(words):
        return True
    return portable(expression, columns, stored_as) is not None


def parsed(expression: str) -> exp.Expr | None:
    """Return the syntax tree; None if the text cannot be read."""
    try:
        return sqlglot.parse_one(expression, read="mysql")
    except SqlglotError:
        return None


def named_columns(expression: str) -> frozenset[str] | None:
    """Return the casefolded names of the columns in an expression; None if it cannot be read."""
    tree = parsed(expression)
    return None if tree is None else frozenset(column.name.casefold() for column in tree.find_all(exp.Column))


# The list


def _kind(node: exp.Expr, columns: Columns) -> Kind | None:
    """Return the kind of an expression's value; None if it is not on the list."""
    kind_of = _KINDS.get(type(node))
    return kind_of(node, columns) if kind_of is not None else _operation(node, columns)


def _paren(node: exp.Expr, columns: Columns) -> Kind | None:
    return _kind(node.this, columns)


def _negative(node: exp.Expr, columns: Columns) -> Kind | None:
    return Kind.NUMBER if _kind(node.this, columns) is Kind.NUMBER else None


def _column(node: exp.Expr, columns: Columns) -> Kind | None:
    column = columns.get(node.name.casefold())
    # As text it has zeros in front, which a sink may not keep.
    if column is None or column.zerofill:
        return None
    # BIGINT UNSIGNED goes beyond what signed arithmetic can do.
    if column.family is TypeFamily.INTEGER and column.highest <= MAX_SIGNED:
        return Kind.NUMBER
    return Kind.TEXT if column.family in _TEXT_FAMILIES else None


def _literal(node: exp.Expr, _columns: Columns) -> Kind | None:
    if node.is_string:
        return Kind.TEXT
    # A greater number, or one with a fraction, is a DECIMAL in MySQL.
    return Kind.NUMBER if node.name.isdecimal() and int(node.name) <= MAX_SIGNED else None


def _operation(node: exp.Expr, columns: Columns) -> Kind | None:
    """Integer arithmetic, and comparisons and logic over integers."""
    if type(node) not in {**ARITHMETIC, **COMPARISON, **LOGIC}:
        return None
    # NO_UNSIGNED_SUBTRACTION of upstream's session decides about a result below zero.
    if isinstance(node, exp.Sub) and any(_is_unsigned(column, columns) for column in node.find_all(exp.Column)):
        return None
    is_exact = _kind(node.this, columns) is Kind.NUMBER and _kind(node.expression, columns) is Kind.NUMBER
    return Kind.NUMBER if is_exact else None


def _is_unsigned(node: exp.Expr, columns: Columns) -> bool:
    column = columns.get(node.name.casefold())
    return column is not None and column.unsigned


def _concat(node: exp.Expr, columns: Columns) -> Kind | None:
    # In SQLite an overflow would be the text of a REAL.
    is_exact = all(not part.find(*ARITHMETIC, exp.Neg) and _kind(part, columns) is not None for part in node.expressions)
    return Kind.TEXT if node.expressions and is_exact else None


def _coalesce(node: exp.Expr, columns: Columns) -> Kind | None:
    return _one_kind((node.this, *node.expressions), columns)


def _if(node: exp.Expr, columns: Columns) -> Kind | None:
    if _kind(node.this, columns) is not Kind.NUMBER or node.args.get("false") is None:
        return None
    return _one_kind((node.args["true"], node.args["false"]), columns)


def _one_kind(branches: Sequence[exp.Expr], columns: Columns) -> Kind | None:
    """Return the kind of the branches, if MySQL leaves each as it is: it makes DECIMALs, dates and times of different types one type."""
    kinds = {_kind(branch, columns) for branch in branches}
    types = frozenset[ColumnType]().union(*(_sources(branch, columns) for branch in branches))
    others = {column for column in types if column.family not in {TypeFamily.CHARACTER, TypeFamily.INTEGER}}
    return kinds.pop() if len(kinds) == 1 and len(others) <= 1 else None


_KINDS: Final[Mapping[type[exp.Expr], Callable[[exp.Expr, Columns], Kind | None]]] = {
    exp.Paren: _paren,
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Neg: _negative,
    exp.Concat: _concat,
    exp.Coalesce: _coalesce,
    exp.If: _if,
}


def _sources(tree: exp.Expr, columns: Columns) -> frozenset[ColumnType]:
    match tree:
        case exp.Paren():
            return _sources(tree.this, columns)
        case exp.Column():
            found = columns.get(tree.name.casefold())
            return frozenset() if found is None else frozenset({found})
        case exp.Coalesce():
            return frozenset[ColumnType]().union(*(_sources(part, columns) for part in (tree.this, *tree.expressions)))
        case exp.If():
            branches = [tree.args[name] for name in ("true", "false") if tree.args.get(name) is not None]
            return frozenset[ColumnType]().union(*(_sources(branch, columns) for branch in branches))
        case _:
            return frozenset({COMPUTED})


# What the column's type makes of the value


def _is_stored_exactly(value: PortableExpression, column: ColumnType) -> bool:
    # The value is a column's own, of the same type: nothing converts it.
    if value.sources == frozenset({column}):
        return True
    if column.family is TypeFamily.CHARACTER:
        return column.charset in UTF8_CHARSETS and (value.kind is Kind.TEXT or is_plain(value.sources))
    if value.kind is Kind.NUMBER:
        return _is_exact_number(value.sources, column)
    # A DATETIME from a DATE begins with the day.
    return column.family is TypeFamily.DATETIME and {source.family for source in value.sources} == {TypeFamily.DATE}


def _is_exact_number(sources: frozenset[ColumnType], column: ColumnType) -> bool:
    if column.family in {TypeFamily.INTEGER, TypeFamily.BIT}:
        return column.highest <= MAX_SIGNED
    return column.family in {TypeFamily.DOUBLE, TypeFamily.DECIMAL} and is_plain(sources)


def is_plain(sources: frozenset[ColumnType]) -> bool:
    """Return whether a number is a column's value, and not a result of arithmetic."""
    return bool(sources) and all(source.family is TypeFamily.INTEGER for source in sources)
