"""What becomes of generated columns in a sink that is a server. Pure.

A portable expression (``portable_expression``) stays: the sink computes the same values. The values of any other STORED column come with
the rows, so the sink has a plain column, whose comment keeps upstream's expression. Any other VIRTUAL column has no values on the wire: it
may stay as long as no index and no key depends on it.

A server may refuse a generated column that is NOT NULL, or in a primary key (MariaDB). There a STORED one in an index or key is plain too,
because only a column that is NOT NULL makes a key; any other loses NOT NULL.

What becomes of unique indexes of expressions in a sink that is a server. Pure.

The sink computes such an index in its own session: in another time zone (``DATE(ts)``), by another collation (``LOWER(v)``), with other
texts of numbers (``CONCAT(f)``). Two values of upstream may then be one, and one row would replace another. So the index of an expression
that is not portable has upstream's name and no UNIQUE: upstream has refused the duplicates already. A text is never portable here, because
where no column gives its collation the session does.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

from applier.ddl.adaptation import Target
from applier.ddl.column_type import ColumnType
from applier.ddl.parser import parse, parse_or_none
from applier.ddl.portable_expression import Kind, named_columns, portable
from applier.ddl.table_draft import DefinedColumn, defined_columns, indexed_columns
from applier.ddl.tokens import Cursor, DdlSyntaxError, quote_text, unescape
from applier.ddl.tree import (
    Action,
    AlterClause,
    AlterTableStatement,
    ClauseKind,
    Edit,
    Element,
    ElementKind,
    IndexStatement,
    Mark,
    Tree,
    edited,
    list_edits,
    quoted_name,
)

MAX_COMMENT: Final = 1024
"""Characters of a column's comment."""
_MARK: Final = "/*: GENERATED ALWAYS AS ({}) STORED */"
_MARKED: Final = re.compile(r"/\*: GENERATED ALWAYS AS \((.*)\) STORED \*/\Z", re.DOTALL)


class KnownColumn(NamedTuple):
    """A column of the sink's table before a statement. ``type`` is None if it is not known."""

    type: ColumnType | None
    expression: str = ""
    """Of a generated column."""
    is_stored: bool = False
    is_indexed: bool = False
    comment: str = ""

    @property
    def stands_for(self) -> str | None:
        """The expression of upstream's STORED column, of a plain column that has its values; None: it represents no such column."""
        found = _MARKED.search(self.comment)
        return None if found is None or self.expression else found[1]


Known = Mapping[str, KnownColumn]
"""The columns of a table by casefolded name; empty for a table that the statement makes."""


class Unportable(NamedTuple):
    """A generated column whose values the sink must not compute. ``is_stored``: as upstream has it."""

    name: str
    is_stored: bool


def defines_generated(query: str) -> bool:
    """Return whether a statement adds or redefines a generated column."""
    tree = parse_or_none(query)
    return tree is not None and any(column.generation is not None for column in defined_columns(tree))


def in_generated_words_of(target: Target, query: str, known: Known) -> str:
    """Return the statement with plain columns instead of STORED ones that the sink must not compute."""
    tree = parse_or_none(query)
    if tree is None:
        return query
    table = _Table(tree, target, known)
    edits = [edit for column in table.defined if column.generation is not None for edit in table.edits(column)]
    return edited(query, edits)


def unportable_columns(known: Known) -> list[Unportable]:
    """List the generated columns of a table that the sink must not compute: STORED ones, and VIRTUAL ones in an index."""
    found = [(name, known[name]) for name in computed_otherwise(known)]
    return [Unportable(name, column.is_stored) for name, column in found if column.is_stored or column.is_indexed]


def computed_otherwise(known: Known) -> list[str]:
    """List the generated columns for which a table may compute other values than upstream, casefolded."""
    types = _types(known)
    return [name for name, column in known.items() if column.expression and not _is_portable(name, types, known)]


def keyed_virtual(query: str, target: Target, known: Known) -> str:
    """Return the VIRTUAL column that the sink must not compute and that the statement puts into an index or key; '' if there is none."""
    tree = parse_or_none(query)
    return "" if tree is None else _Table(tree, target, known).keyed_virtual()


def unknown_values(query: str, target: Target, known: Known) -> str:
    """Return the STORED column whose values in old rows the statement changes, which only upstream knows; '' if there is none."""
    tree = parse_or_none(query)
    return "" if tree is None else _Table(tree, target, known).unknown_values()


def after_statement(tree: Tree, known: Known) -> Known:
    """Return the columns of a table after a statement, including dropped and renamed ones."""
    after = dict(known)
    for clause in tree.node.clauses if isinstance(tree.node, AlterTableStatement) else ():
        if clause.kind is ClauseKind.RENAME_COLUMN and clause.name and clause.new_name and clause.name.text.casefold() in known:
            after[clause.new_name.text.casefold()] = known[clause.name.text.casefold()]
    defined = defined_columns(tree)
    return after | {column.name.casefold(): KnownColumn(column.type, column.expression, column.is_stored) for column in defined}


def computes_number(expression: str, columns: Known) -> bool:
    """Return whether an expression is a number that every sink computes as upstream does."""
    types = _types(columns)
    found = portable(expression, types)
    return found is not None and found.kind is Kind.NUMBER and _uses_portable(expression, types, columns)


class _Table:
    """The columns of a table after a statement."""

    def __init__(self, tree: Tree, target: Target, known: Known) -> None:
        self._tree, self._target, self._known = tree, target, known
        self.defined = list(defined_columns(tree))

    def edits(self, column: DefinedColumn) -> Iterator[Edit]:
        """Edit the definition of a generated column."""
        if column.is_stored and not self._is_computed(column):
            yield from self._plain(column)
        elif not self._target.has_generated_keys:
            marks = [Mark(*span, Action.DROP) for span in column.nullability]
            yield from list_edits(self._tree.text, self._tree.tokens, [column.span], marks)

    def keyed_virtual(self) -> str:
        """Return the first column that no index may have."""
        for column in self.defined:
            before = self._known.get(column.formerly.casefold())
            is_keyed = column.is_key or column.name.casefold() in self._keyed or (before is not None and before.is_indexed)
            if column.generation is not None and not column.is_stored and is_keyed and not self._has_portable(column.name):
                return column.name
        return next((name for name, column in self._kept() if self._is_keyed_now(name, column)), "")

    def _is_keyed_now(self, name: str, column: KnownColumn) -> bool:
        """Return whether the statement puts a VIRTUAL column into an index, or makes an indexed one unportable."""
        if not column.expression or column.is_stored or self._has_portable(name):
            return False
        return name in self._keyed or (column.is_indexed and _is_portable(name, _types(self._known), self._known))

    def unknown_values(self) -> str:
        """Return the first column with such values."""
        if not isinstance(self._tree.node, AlterTableStatement):
            return ""
        for column in self.defined:
            if column.is_stored and column.generation is not None and not self._is_computed(column):
                return column.name
        return next((name for name, column in self._kept() if self._is_computed_again(name, column)), "")

    def _is_computed_again(self, name: str, column: KnownColumn) -> bool:
        """Return whether upstream computes the old rows' values again, and the sink cannot."""
        expression = column.stands_for
        if expression is None:
            return column.is_stored and bool(column.expression) and not self._has_portable(name) and bool(self._changed)
        named = named_columns(expression)
        # A column that the table does not have was renamed, so any column may be meant.
        return bool(self._changed) and (named is None or not named <= self._known.keys() or bool(named & self._changed))

    @cached_property
    def _changed(self) -> frozenset[str]:
        """The columns that the statement redefines, casefolded; CONVERT TO redefines all."""
        if any(clause.kind is ClauseKind.CONVERT for clause in self._clauses):
            return frozenset(self._known)
        return frozenset(column.formerly.casefold() for column in self.defined if column.formerly)

    @property
    def _clauses(self) -> tuple[AlterClause, ...]:
        return self._tree.node.clauses if isinstance(self._tree.node, AlterTableStatement) else ()

    def _kept(self) -> Iterator[tuple[str, KnownColumn]]:
        """Yield the columns that the statement neither redefines nor drops."""
        gone = {column.formerly.casefold() for column in self.defined}
        gone |= {
            clause.name.text.casefold() for clause in self._clauses if clause.kind is ClauseKind.DROP_COLUMN and clause.name is not None
        }
        yield from ((name, column) for name, column in self._known.items() if name not in gone)

    def _is_computed(self, column: DefinedColumn) -> bool:
        """Return whether the sink computes a column that is generated upstream."""
        if not self._has_portable(column.name):
            return False
        return self._target.has_generated_keys or not (column.is_key or column.name.casefold() in self._keyed)

    def _has_portable(self, name: str) -> bool:
        return _is_portable(name.casefold(), self._types, self._after)

    @cached_property
    def _keyed(self) -> set[str]:
        return {name.casefold() for name in indexed_columns(self._tree)}

    @cached_property
    def _after(self) -> Known:
        return after_statement(self._tree, self._known)

    @cached_property
    def _types(self) -> dict[str, ColumnType]:
        return _types(self._after)

    def _plain(self, column: DefinedColumn) -> Iterator[Edit]:
        """Remove the clause, and write it into the comment."""
        tokens, (first, last) = self._tree.tokens, column.generation or column.span
        mark, own = _MARK.format(column.expression), ""
        if column.comment is not None and column.comment.kind == "string":
            own = unescape(column.comment.text)
        comment = f"{own} {mark}".strip()
        if len(comment) > MAX_COMMENT:
            comment = f"{own} {_MARK.format('')}".strip()
        if len(comment) > MAX_COMMENT:
            comment = own
        if column.comment is None:
            yield Edit(tokens[first].start, tokens[last].end, f"COMMENT {quote_text(comment)}")
            return
        yield from list_edits(self._tree.text, tokens, [column.span], [Mark(first, last, Action.DROP)])
        yield Edit(column.comment.start, column.comment.end, quote_text(comment))


def _types(columns: Known) -> dict[str, ColumnType]:
    return {name: column.type for name, column in columns.items() if column.type is not None}


def _is_portable(name: str, types: Mapping[str, ColumnType], columns: Known) -> bool:
    """Return whether every sink computes the values of a generated column as upstream does."""
    column = columns[name]
    if column.type is None or portable(column.expression, types, column.type) is None:
        return False
    return _uses_portable(column.expression, types, columns, name)


def _uses_portable(expression: str, types: Mapping[str, ColumnType], columns: Known, name: str = "") -> bool:
    # A VIRTUAL column that another one names is computed too; the values of a STORED one are upstream's.
    used = ((other, columns[other]) for other in named_columns(expression) or () if other in columns and other != name)
    return all(_is_portable(other, types, columns) for other, found in used if found.expression and not found.is_stored)


_UNIQUE: Final = "UNIQUE"


def makes_unique_of_expression(query: str) -> bool:
    """Return whether a statement makes a unique index of an expression."""
    return next(_found(query), None) is not None


def without_unportable_uniqueness(query: str, known: Known) -> str:
    """Return the statement with plain indexes instead of unique ones that the sink may compute differently from upstream.

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
