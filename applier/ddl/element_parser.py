"""Reads how a column, an index or a constraint begins: in CREATE TABLE, and after ADD in ALTER TABLE."""

from typing import Final

from applier.ddl.cursor import Cursor
from applier.ddl.tokens import Token
from applier.ddl.tree import Element, ElementKind, Span

# Reserved words in MySQL: a column of such a name is quoted.
_INDEX_HEADS: Final = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL"})
# No reserved words: `vector INT` is a column, `VECTOR INDEX` is not.
_SOFT_INDEX_HEADS: Final = frozenset({"VECTOR", "COLUMNAR", "HYBRID"})
_CONSTRAINTS: Final = frozenset({"PRIMARY", "UNIQUE", "FOREIGN", "CHECK"})


def read_elements(inside: Cursor) -> tuple[Element, ...]:
    """Read the list inside a parenthesis."""
    return tuple(read_element(part) for part in inside.split() if not part.is_done)


def read_element(part: Cursor) -> Element:
    """Read one element. Never raises: what it does not know is a column, whose name may be missing."""
    span, constraint = (part.at, part.last), None
    # The name may be missing: CONSTRAINT CHECK (…).
    if part.accept("CONSTRAINT") and part.keyword() not in _CONSTRAINTS and part.is_at_name():
        constraint = part.name_token()
    # CHECK without a parenthesis is no MySQL, and a column of that name is quoted.
    if part.sees("CHECK", "("):
        part.next()
        return Element(span=span, kind=ElementKind.CHECK, body=part.at, constraint=constraint)
    if part.accept("FOREIGN", "KEY"):
        condition = read_condition(part)
        name = _name_before_columns(part)
        return Element(span=span, kind=ElementKind.FOREIGN_KEY, body=part.at, name=name, constraint=constraint, condition=condition)
    if part.keyword() in _INDEX_HEADS or (part.keyword() in _SOFT_INDEX_HEADS and part.keyword(1) in {"INDEX", "KEY"}):
        return _read_index(part, span, constraint)
    condition = read_condition(part)
    name = part.name_token() if part.is_at_name() else None
    return Element(span=span, kind=ElementKind.COLUMN, body=part.at, name=name, constraint=constraint, condition=condition)


def _read_index(part: Cursor, span: Span, constraint: Token | None) -> Element:
    kind = part.accept_any("PRIMARY", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR", "HYBRID")
    part.accept_any("INDEX", "KEY")
    condition = read_condition(part)
    name = _name_before_columns(part)
    return Element(span=span, kind=ElementKind.INDEX, body=part.at, index_kind=kind, name=name, constraint=constraint, condition=condition)


def _name_before_columns(part: Cursor) -> Token | None:
    """Take the name of an index. TYPE is no reserved word: in ``INDEX type (a)`` it is the name, in ``INDEX TYPE BTREE (a)`` it is not."""
    if part.is_at_name() and part.keyword() != "USING" and part.keyword(1) in {"(", "USING", "TYPE"}:
        return part.name_token()
    return None


def read_condition(part: Cursor) -> Span | None:
    """Take IF EXISTS or IF NOT EXISTS and return its place; None if neither comes next."""
    begin = part.at
    if part.accept("IF", "EXISTS") or part.accept("IF", "NOT", "EXISTS"):
        return begin, part.at - 1
    return None
