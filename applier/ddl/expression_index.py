"""What becomes of unique indexes of expressions in a sink that is a server. Pure.

The sink computes such an index in its own session: in another time zone (``DATE(ts)``), by another collation (``LOWER(v)``), with other
texts of numbers (``CONCAT(f)``). Two values of upstream may then be one, and one row would replace another. So the index of an expression
that is not portable has upstream's name and no UNIQUE: upstream has refused the duplicates already. A text is never portable here, because
where no column gives its collation the session does.
"""

from collections.abc import Iterator
from typing import Final

from applier.ddl.cursor import Cursor
from applier.ddl.edit import Edit, edited, quoted_name
from applier.ddl.generated import Known, after_statement, computes_number
from applier.ddl.parser import parse
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.tree import Element, ElementKind, IndexStatement, Tree

_UNIQUE: Final = "UNIQUE"


def makes_unique_of_expression(query: str) -> bool:
    """Return whether a statement makes a unique index of an expression."""
    return next(_found(query), None) is not None


def without_unportable_uniqueness(query: str, known: Known) -> str:
    """Return the statement with plain indexes in the place of unique ones that the sink may compute otherwise than upstream.

    ``known``: the columns of the table before the statement. An index must have upstream's name already.
    """
    edits = list[Edit]()
    for tree, place, expressions in _found(query):
        after = after_statement(tree, known)
        if not all(computes_number(expression, after) for expression in expressions):
            edits += _of_statement(tree, place) if isinstance(place, IndexStatement) else _of_element(tree, place)
    return edited(query, edits)


def _found(query: str) -> Iterator[tuple[Tree, IndexStatement | Element, list[str]]]:
    """Yield each unique index with the expressions among its parts."""
    # Most statements have none, and need not be read.
    if _UNIQUE not in query.upper():
        return
    try:
        tree = parse(query)
        indexes = [(place, _expressions(parts)) for place, parts in _unique_indexes(tree)]
    except DdlSyntaxError:
        return
    yield from ((tree, place, expressions) for place, expressions in indexes if expressions)


def _expressions(parts: Cursor) -> list[str]:
    return [part.parenthesis().source() for part in parts.split() if part.sees("(")]


def _unique_indexes(tree: Tree) -> Iterator[tuple[IndexStatement | Element, Cursor]]:
    match tree.node:
        case IndexStatement(is_create=True, index_kind="UNIQUE") as node:
            yield node, tree.part(*node.parts)
        case _:
            yield from _unique_elements(tree)


def _unique_elements(tree: Tree) -> Iterator[tuple[Element, Cursor]]:
    for element in tree.elements:
        if element.kind is ElementKind.INDEX and element.index_kind == _UNIQUE:
            cursor = tree.part(element.body, element.span[1])
            if cursor.accept_any("USING", "TYPE"):
                cursor.next()
            yield element, cursor.parenthesis()


def _of_statement(tree: Tree, node: IndexStatement) -> Iterator[Edit]:
    at = next(at for at, token in enumerate(tree.tokens) if token.keyword == _UNIQUE and token.start < node.name.start)
    yield Edit(tree.tokens[at].start, tree.tokens[at + 1].start, "")


def _of_element(tree: Tree, element: Element) -> Iterator[Edit]:
    """Write KEY for [CONSTRAINT [name]] UNIQUE [KEY]. The name after CONSTRAINT becomes the index's own."""
    tokens, first = tree.tokens, element.span[0]
    at = next(at for at in range(first, element.body) if tokens[at].keyword == _UNIQUE)
    if tokens[at + 1].keyword in {"KEY", "INDEX"}:
        at += 1
    yield Edit(tokens[first].start, tokens[at].end, "KEY")
    if element.name is None and element.constraint is not None:
        start = tokens[element.body].start
        yield Edit(start, start, f"{quoted_name(element.constraint.text)} ")
