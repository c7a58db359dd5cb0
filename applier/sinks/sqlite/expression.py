"""Expressions of generated columns and functional indexes in SQLite's words.

``applier.ddl.portable_expression`` knows which expressions SQLite computes exactly as MySQL does; every other one stops with NeedsOperator.
"""

from collections.abc import Callable
from typing import Final

from sqlglot import exp

from applier.ddl.column_type import ColumnType
from applier.ddl.portable_expression import ARITHMETIC, COMPARISON, LOGIC, Columns, portable
from applier.ddl.remedy import BY_HAND
from applier.model.errors import NeedsOperator
from applier.sinks.sqlite.generated_value import stored
from applier.sinks.sqlite.names import Sql, quote

_SIGNS: Final = {**ARITHMETIC, **COMPARISON, **LOGIC}


def translate(expression: str, columns: Columns, stored_as: ColumnType | None = None) -> Sql:
    """Translate a MySQL expression over ``columns`` (by casefolded name); NeedsOperator if SQLite cannot compute it exactly.

    ``stored_as``: the type of the generated column, which converts the value; None where nothing stores it.
    """
    value = portable(expression, columns, stored_as)
    if value is None:
        raise NeedsOperator("SQLite cannot compute this expression exactly as MySQL does", remedy=BY_HAND, expression=expression)
    text = _render(value.tree)
    return Sql(text if stored_as is None else stored(text, value, stored_as))


def _render(node: exp.Expr) -> str:
    """Return an expression that is portable in SQLite's words."""
    render = _RENDERERS.get(type(node))
    # An overflow becomes a REAL, which the STRICT column refuses.
    return render(node) if render is not None else f"({_render(node.this)} {_SIGNS[type(node)]} {_render(node.expression)})"


def _literal(node: exp.Expr) -> str:
    return "'" + node.name.replace("'", "''") + "'" if node.is_string else node.name


def _coalesce(node: exp.Expr) -> str:
    return "coalesce(" + ",".join(map(_render, (node.this, *node.expressions))) + ")"


def _if(node: exp.Expr) -> str:
    return f"iif({_render(node.this)},{_render(node.args['true'])},{_render(node.args['false'])})"


_RENDERERS: Final[dict[type[exp.Expr], Callable[[exp.Expr], str]]] = {
    exp.Paren: lambda node: f"({_render(node.this)})",
    exp.Column: lambda node: quote(node.name),
    exp.Literal: _literal,
    exp.Neg: lambda node: f"-({_render(node.this)})",
    exp.Concat: lambda node: "(" + " || ".join(map(_render, node.expressions)) + ")",
    exp.Coalesce: _coalesce,
    exp.If: _if,
}
