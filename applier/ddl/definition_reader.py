"""Finds the columns that a statement defines, and the columns of the indexes that it makes, in whatever words. Pure.

Unlike ``table_parser`` it is not strict: of a column with an option that is not known it still finds the type and the generation clause.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from applier.ddl.column_parser import names_charset, parse_column, parse_type, with_charset
from applier.ddl.column_type import ColumnType
from applier.ddl.cursor import Cursor
from applier.ddl.table_draft import table_charset
from applier.ddl.tokens import DdlSyntaxError, Token
from applier.ddl.tree import (
    AlterClause,
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    Element,
    ElementKind,
    IndexStatement,
    Span,
    Tree,
)

_REDEFINING: Final = frozenset({ClauseKind.MODIFY, ClauseKind.CHANGE})


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinedColumn:
    """A column that a statement adds or redefines. ``type`` is None if it cannot be read.

    ``formerly``: its name before, '' if the statement adds it. ``generation``: where the clause stands, None for an ordinary column.
    """

    name: str
    formerly: str = ""
    span: Span
    type: ColumnType | None = None
    generation: Span | None = None
    expression: str = ""
    is_stored: bool = False
    nullability: tuple[Span, ...] = ()
    """Where NULL and NOT NULL stand."""
    is_key: bool = False
    """Whether its definition makes it a key."""
    comment: Token | None = None
    has_default: bool = False


def defined_columns(tree: Tree) -> Iterator[DefinedColumn]:
    """Yield the columns that the statement adds or redefines."""
    charset = ""
    match tree.node:
        case CreateTableStatement(elements=elements, options=options):
            charset = _charset(tree, options)
            found = [("", element.name, (element.body, element.span[1])) for element in elements if element.kind is ElementKind.COLUMN]
        case AlterTableStatement(clauses=clauses):
            found = [place for clause in clauses for place in _places(clause)]
        case _:
            return
    for formerly, name, span in found:
        if name is not None and span[0] <= span[1]:
            yield _column(tree, name.text, formerly, span, charset)


def indexed_columns(tree: Tree) -> Iterator[str]:
    """Yield the columns of each index and key that the statement makes apart from the columns' own definitions."""
    yield from (found for element in tree.elements for found in _of_key(tree, element))
    if isinstance(tree.node, IndexStatement) and tree.node.is_create:
        yield from (token.text for token in tree.part(*tree.node.parts).rest if token.is_name)


def _charset(tree: Tree, options: Span) -> str:
    try:
        return table_charset(tree.part(*options))
    except DdlSyntaxError:
        return ""


def _places(clause: AlterClause) -> Iterator[tuple[str, Token | None, Span]]:
    if clause.kind in _REDEFINING and clause.name is not None:
        yield clause.name.text, clause.new_name or clause.name, (clause.body, clause.span[1])
    for element in clause.elements:
        if element.kind is ElementKind.COLUMN:
            yield "", element.name, (element.body, element.span[1])


def _of_key(tree: Tree, element: Element) -> Iterator[str]:
    if element.kind not in {ElementKind.INDEX, ElementKind.FOREIGN_KEY}:
        return
    cursor = tree.part(element.body, element.span[1])
    while not (cursor.is_done or cursor.sees("(")):
        cursor.next()
    with suppress(DdlSyntaxError):
        yield from (token.text for token in cursor.parenthesis().rest if token.is_name)


def _column(tree: Tree, name: str, formerly: str, span: Span, charset: str) -> DefinedColumn:
    found = DefinedColumn(name=name, formerly=formerly, span=span, type=_type(tree.part(*span), name, charset))
    cursor = tree.part(*span)
    with suppress(DdlSyntaxError):  # a parenthesis that never closes: the server refuses it
        while not cursor.is_done:
            found = _option(cursor, found)
    return found


def _option(cursor: Cursor, found: DefinedColumn) -> DefinedColumn:
    """Take one word of a definition, or the clause that begins here."""
    begin = cursor.at
    if cursor.accept("GENERATED", "ALWAYS", "AS") or cursor.accept("AS"):
        expression = cursor.parenthesis().source() if cursor.sees("(") else ""
        # PERSISTENT: MariaDB's older word.
        is_stored = cursor.accept_any("STORED", "PERSISTENT", "VIRTUAL") in {"STORED", "PERSISTENT"}
        return replace(found, generation=(begin, cursor.at - 1), expression=expression, is_stored=is_stored) if expression else found
    if cursor.accept("NOT", "NULL") or cursor.accept("NULL"):
        return replace(found, nullability=(*found.nullability, (begin, cursor.at - 1)))
    if cursor.accept("COMMENT"):
        cursor.accept("=")
        return replace(found, comment=None if cursor.is_done else cursor.next())
    if word := cursor.accept_any("DEFAULT", "UPDATE"):
        # DEFAULT NULL, ON UPDATE NOW: its word is no option.
        if not (cursor.is_done or cursor.sees("(")):
            cursor.next()
        return replace(found, has_default=found.has_default or word == "DEFAULT")
    if cursor.accept_any("PRIMARY", "UNIQUE", "KEY"):
        return replace(found, is_key=True)
    if cursor.sees("("):
        cursor.parenthesis()
    elif not cursor.is_done:
        cursor.next()
    return found


def _type(cursor: Cursor, name: str, charset: str) -> ColumnType | None:
    begin, has_own = cursor.at, names_charset(cursor)
    cursor.at = begin
    try:
        try:
            found = parse_column(cursor, name).definition.type
        except DdlSyntaxError:
            cursor.at = begin
            found = parse_type(cursor)
    except DdlSyntaxError:
        return None
    return found if has_own or not charset else with_charset(found, charset)
