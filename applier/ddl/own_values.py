"""Finds what a DDL gives to existing rows that only the server knows on which it runs: numbers, and what a default computes. Pure.

A default may ask for random values, the user, a variable, the modes or the language of its session, or how many digits a division has.
So what it computes counts as upstream's only if it is on the list of portable expressions.
"""

from collections.abc import Callable, Iterator
from typing import Final

from applier.ddl.column_parser import parse_column, parse_default
from applier.ddl.parser import parse_or_none
from applier.ddl.portable_expression import Columns, is_portable_default
from applier.ddl.table import DefaultKind
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.tree import AlterTableStatement, Element, ElementKind, Tree

OWN_VALUES: Final = "the DDL numbers existing rows, or a default computes values for them: those may differ from upstream's"
OLD_TIMESTAMPS: Final = ("explicit_defaults_for_timestamp", "OFF")
"""The session's variable (``DdlEvent.session``) of an ALTER TABLE whose TIMESTAMP columns get what the whole table decides."""

_OPTIONS: Final = frozenset({"COLUMN_FORMAT", "STORAGE", "SET"})
"""DEFAULT behind them is no value."""


def own_values(query: str, columns: Callable[[], Columns]) -> str:
    """Return which column gets such values; '' if none does. ``columns``: asks for those that the table has before the DDL."""
    tree = parse_or_none(query)
    return "" if tree is None else next(_columns(tree, columns), "")


def _columns(tree: Tree, columns: Callable[[], Columns]) -> Iterator[str]:
    if not isinstance(tree.node, AlterTableStatement):
        return
    for clause in tree.node.clauses:
        for element in clause.elements:
            if element.kind is ElementKind.COLUMN and element.name is not None:
                words = {token.keyword for token in tree.tokens[element.body : element.span[1] + 1]}
                if words & {"AUTO_INCREMENT", "SERIAL"} or _is_computed(tree, element, element.name.text, columns):
                    yield element.name.text


def _is_computed(tree: Tree, element: Element, name: str, columns: Callable[[], Columns]) -> bool:
    """Return whether the default of an added column computes what another server may compute otherwise."""
    at = _place_of_default(tree, element)
    if at is None:
        return False
    try:
        default = parse_default(tree.part(at + 1, element.span[1]))
        if default is None or default.kind is not DefaultKind.EXPRESSION:
            return False
        added = parse_column(tree.part(element.body, element.span[1]), name).definition.type
    except DdlSyntaxError:
        return True
    return not is_portable_default(default.text, columns(), added)


def _place_of_default(tree: Tree, element: Element) -> int | None:
    depth, before = 0, ""
    for at in range(element.body, element.span[1] + 1):
        word = tree.tokens[at].keyword
        depth += (word == "(") - (word == ")")
        if word == "DEFAULT" and depth == 0 and before not in _OPTIONS:
            return at
        before = word
    return None
