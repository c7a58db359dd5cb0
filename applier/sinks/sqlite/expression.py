"""Expressions of generated columns and functional indexes: translated by sqlglot, and only where SQLite computes the very same value.

A generated value is never on the wire's write path, so nothing would correct a wrong one. What is not on the list of exact operations
stops with NeedsOperator: text functions (SQLite folds ASCII only), JSON (other number and object formats), division, dates, DECIMAL
arithmetic (SQLite would use floating point), comparisons of text (collations).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from applier.ddl.column_type import ColumnType, TypeFamily
from applier.ddl.remedy import BY_HAND
from applier.model.errors import NeedsOperator
from applier.sinks.sqlite.affinity import affinity
from applier.sinks.sqlite.generated_value import NUMBER, TEXT, Rendered, stored
from applier.sinks.sqlite.names import Sql, quote

Columns: TypeAlias = Mapping[str, ColumnType]

_TEXT_FAMILIES: Final = (
    TypeFamily.CHARACTER,
    TypeFamily.DECIMAL,
    TypeFamily.DATE,
    TypeFamily.DATETIME,
    TypeFamily.TIMESTAMP,
    TypeFamily.TIME,
    TypeFamily.ENUM,
    TypeFamily.SET,
)
COMPUTED: Final = ColumnType(base="varchar")
"""Stands for values that are no column's."""
_ARITHMETIC: Final[dict[type[exp.Expr], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}
_COMPARISON: Final[dict[type[exp.Expr], str]] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=", exp.NullSafeEQ: "IS",
}  # fmt: skip
_LOGIC: Final[dict[type[exp.Expr], str]] = {exp.And: "AND", exp.Or: "OR"}


def translate(expression: str, columns: Columns, stored_as: ColumnType | None = None) -> Sql:
    """Translate a MySQL expression over ``columns`` (by casefolded name); NeedsOperator if SQLite cannot compute it exactly.

    ``stored_as``: the type of the generated column, which converts the value; None where nothing stores it.
    """
    try:
        tree = sqlglot.parse_one(expression, read="mysql")
    except SqlglotError as error:
        raise _cannot(expression) from error
    translated = _render(tree, columns)
    if translated is not None and stored_as is not None:
        translated = stored(translated, source_types(tree, columns), stored_as)
    if translated is None:
        raise _cannot(expression)
    return Sql(translated[0])


def source_types(tree: exp.Expr, columns: Columns) -> frozenset[ColumnType]:
    """Return the types of the columns whose values ``tree`` may be, as they are; empty where it computes or joins a value."""
    match tree:
        case exp.Paren():
            return source_types(tree.this, columns)
        case exp.Column():
            found = columns.get(tree.name.casefold())
            return frozenset() if found is None else frozenset({found})
        case exp.Coalesce():
            return frozenset[ColumnType]().union(*(source_types(part, columns) for part in (tree.this, *tree.expressions)))
        case exp.If():
            return source_types(tree.args["true"], columns) | source_types(tree.args["false"], columns)
        case _:
            return frozenset({COMPUTED})


def _cannot(expression: str) -> NeedsOperator:
    return NeedsOperator(
        "SQLite cannot compute this expression exactly as MySQL does",
        remedy=BY_HAND,
        expression=expression,
    )


def _render(node: exp.Expr, columns: Columns) -> Rendered:
    """Return SQL and kind (number, text) of an expression; None if it is not on the list of exact ones."""
    render = _RENDERERS.get(type(node))
    return render(node, columns) if render is not None else _operation(node, columns)


def _paren(node: exp.Expr, columns: Columns) -> Rendered:
    inner = _render(node.this, columns)
    return inner and (f"({inner[0]})", inner[1])


def _negative(node: exp.Expr, columns: Columns) -> Rendered:
    inner = _render(node.this, columns)
    return (f"-({inner[0]})", NUMBER) if inner and inner[1] == NUMBER else None


def _column(node: exp.Expr, columns: Columns) -> Rendered:
    column = columns.get(node.name.casefold())
    if column is None:
        return None
    if column.zerofill:
        return None  # as text it has zeros in front, which SQLite does not keep
    # BIGINT UNSIGNED is stored as text above 2^63-1: SQLite would calculate with a REAL.
    if column.family is TypeFamily.INTEGER and affinity(column) == "INTEGER":
        return quote(node.name), NUMBER
    return (quote(node.name), TEXT) if column.family in _TEXT_FAMILIES else None


def _literal(node: exp.Expr, _columns: Columns) -> Rendered:
    if node.is_string:
        return "'" + node.name.replace("'", "''") + "'", TEXT
    # A greater number, or one with a fraction, is a REAL in SQLite and a DECIMAL in MySQL.
    return (node.name, NUMBER) if node.name.isdecimal() and int(node.name) < 2**63 else None


def _operation(node: exp.Expr, columns: Columns) -> Rendered:
    """Integer arithmetic, and comparisons and logic over integers. An overflow becomes a REAL, which the STRICT column refuses."""
    sign = _ARITHMETIC.get(type(node)) or _COMPARISON.get(type(node)) or _LOGIC.get(type(node))
    if sign is None:
        return None
    left, right = _render(node.this, columns), _render(node.expression, columns)
    if left is None or right is None or (left[1], right[1]) != (NUMBER, NUMBER):
        return None
    return f"({left[0]} {sign} {right[0]})", NUMBER


def _concat(node: exp.Expr, columns: Columns) -> Rendered:
    # An overflow would be the text of a REAL.
    parts = [None if part.find(*_ARITHMETIC, exp.Neg) else _render(part, columns) for part in node.expressions]
    rendered = [part[0] for part in parts if part is not None]
    return ("(" + " || ".join(rendered) + ")", TEXT) if rendered and len(rendered) == len(parts) else None


def _coalesce(node: exp.Expr, columns: Columns) -> Rendered:
    parts = [_render(part, columns) for part in (node.this, *node.expressions)]
    rendered = [part for part in parts if part is not None]
    kinds = {kind for _, kind in rendered}
    if len(rendered) != len(parts) or len(kinds) != 1 or not _agree((node.this, *node.expressions), columns):
        return None
    return "coalesce(" + ",".join(text for text, _ in rendered) + ")", kinds.pop()


def _if(node: exp.Expr, columns: Columns) -> Rendered:
    condition, then = _render(node.this, columns), _render(node.args["true"], columns)
    otherwise = _render(node.args["false"], columns) if node.args.get("false") is not None else None
    if condition is None or then is None or otherwise is None or condition[1] != NUMBER or then[1] != otherwise[1]:
        return None
    if not _agree((node.args["true"], node.args["false"]), columns):
        return None
    return f"iif({condition[0]},{then[0]},{otherwise[0]})", then[1]


def _agree(branches: Sequence[exp.Expr], columns: Columns) -> bool:
    """Return whether MySQL leaves each branch as it is: DECIMALs, dates and times of different types would be made into one type."""
    types = set[ColumnType]().union(*(source_types(branch, columns) for branch in branches))
    others = {column for column in types if column.family not in (TypeFamily.CHARACTER, TypeFamily.INTEGER)}
    return len(others) <= 1


_RENDERERS: Final[dict[type[exp.Expr], Callable[[exp.Expr, Columns], Rendered]]] = {
    exp.Paren: _paren,
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Neg: _negative,
    exp.Concat: _concat,
    exp.Coalesce: _coalesce,
    exp.If: _if,
}
