"""The unique and primary keys that a statement makes, as far as its text names their columns."""

from collections.abc import Iterator
from typing import NamedTuple

from applier.ddl.cursor import Cursor
from applier.ddl.element_parser import read_element
from applier.ddl.parser import parse
from applier.ddl.tokens import DdlSyntaxError, Token
from applier.ddl.tree import AlterTableStatement, ClauseKind, CreateTableStatement, Element, ElementKind, IndexStatement, Tree

_UNIQUE: frozenset[str] = frozenset({"UNIQUE", "PRIMARY"})


class UniqueKey(NamedTuple):
    """A key's name ('' if it has none) and plain columns, both casefolded."""

    name: str
    columns: frozenset[str]


def unique_keys_of(query: str) -> list[UniqueKey]:
    """Return the unique and primary keys that a statement makes; none if its text cannot be cut into tokens."""
    try:
        cursor = Cursor(query)
    except DdlSyntaxError:
        return []
    try:
        return list(_keys(parse(query)))
    except DdlSyntaxError:
        # A statement of a later TiDB: whatever it is, UNIQUE begins a key in it.
        places = [at for at, token in enumerate(cursor.tokens) if token.keyword in _UNIQUE]
        return [key for at in places for key in _of_index(read_element(cursor.part(at, cursor.last)), cursor)]


def _keys(tree: Tree) -> Iterator[UniqueKey]:
    match tree.node:
        case IndexStatement(index_kind="UNIQUE", name=name, parts=parts):
            yield UniqueKey(name.text.casefold(), _columns(tree.part(*parts)))
        case CreateTableStatement(elements=elements):
            yield from _of_elements(tree, elements)
        case AlterTableStatement(clauses=clauses):
            for clause in clauses:
                yield from _of_elements(tree, clause.elements)
                if clause.kind in {ClauseKind.MODIFY, ClauseKind.CHANGE}:
                    yield from _of_column(tree.part(clause.body, clause.span[1]), clause.new_name or clause.name)


def _of_elements(tree: Tree, elements: tuple[Element, ...]) -> Iterator[UniqueKey]:
    for element in elements:
        body = tree.part(element.body, element.span[1])
        yield from _of_column(body, element.name) if element.kind is ElementKind.COLUMN else _of_index(element, body)


def _of_index(element: Element, cursor: Cursor) -> Iterator[UniqueKey]:
    body = cursor.part(element.body, element.span[1])
    while not (body.is_done or body.sees("(")):
        body.next()
    if element.index_kind in _UNIQUE and not body.is_done:
        name = "" if element.name is None else element.name.text.casefold()
        yield UniqueKey(name, _columns(body.part(body.at + 1, body.last)))


def _of_column(definition: Cursor, name: Token | None) -> Iterator[UniqueKey]:
    """Read UNIQUE and PRIMARY KEY as attributes of a column."""
    if name is not None and any(token.keyword in _UNIQUE for token in definition.rest):
        yield UniqueKey("", frozenset({name.text.casefold()}))


def _columns(inside: Cursor) -> frozenset[str]:
    """Read the plain columns of a list: ``a, b(10) DESC``. Expressions have no name."""
    columns, depth, is_first = set[str](), 0, True
    while not inside.is_done and depth >= 0:
        token = inside.next()
        # After the name come its prefix and its order: b(10) DESC.
        if depth == 0 and is_first and token.is_name:
            columns.add(token.text.casefold())
        is_first = depth == 0 and token.kind == ","
        depth += (token.kind == "(") - (token.kind == ")")
    return frozenset(columns)
