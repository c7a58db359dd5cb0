"""Resolves IF [NOT] EXISTS in ALTER TABLE clause by clause, against what the table has. Pure.

MySQL does not know these words. Without them it refuses the whole statement for one clause that has nothing to do; and with them a server
reports only that some object of the statement existed.

Only a new non-unique index may be built in the background: it changes no row and refuses none, so no row has to wait for it. The next row
needs a column, and a unique index decides which rows a REPLACE meets.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from applier.ddl.parser import parse, parse_or_none
from applier.ddl.tokens import Token
from applier.ddl.tree import (
    Action,
    AlterClause,
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    Edit,
    Element,
    ElementKind,
    IndexStatement,
    Mark,
    edited,
    list_edits,
)

ONLINE: Final = {True: ", ALGORITHM=INPLACE, LOCK=NONE", False: " ALGORITHM=INPLACE LOCK=NONE"}
"""By whether the statement is an ALTER TABLE. The server refuses the statement rather than block writers."""


def may_run_in_background(query: str) -> bool:
    """Return whether the statement makes non-unique indexes, and does nothing else."""
    tree = parse_or_none(query)
    if tree is None:
        return False
    match tree.node:
        case IndexStatement(is_create=True, index_kind=""):
            return True
        case AlterTableStatement(clauses=clauses, is_understood=True, ignore=None) if clauses:
            return all(clause.kind is ClauseKind.ADD and all(map(_is_plain, clause.elements)) for clause in clauses)
        case _:
            return False


def background_form(query: str) -> str:
    """Return a statement for which ``may_run_in_background`` holds in the words that let writers continue."""
    tree = parse(query)
    end = tree.tokens[-1].end
    return edited(query, [Edit(end, end, ONLINE[isinstance(tree.node, AlterTableStatement)])])


def _is_plain(element: Element) -> bool:
    return element.kind is ElementKind.INDEX and not element.index_kind


_OF_COLUMN: Final = frozenset(
    {ClauseKind.DROP_COLUMN, ClauseKind.MODIFY, ClauseKind.CHANGE, ClauseKind.RENAME_COLUMN, ClauseKind.ALTER_COLUMN}
)
_OF_INDEX: Final = frozenset({ClauseKind.DROP_INDEX, ClauseKind.RENAME_INDEX, ClauseKind.ALTER_INDEX})
_FREEING: Final = frozenset(
    {
        ClauseKind.DROP_COLUMN, ClauseKind.CHANGE, ClauseKind.RENAME_COLUMN, ClauseKind.DROP_INDEX, ClauseKind.RENAME_INDEX,
        ClauseKind.DROP_FOREIGN_KEY, ClauseKind.DROP_CONSTRAINT,
    }
)  # fmt: skip
_OF_CONSTRAINT: Final = frozenset({ClauseKind.DROP_FOREIGN_KEY, ClauseKind.DROP_CONSTRAINT})

_Name: TypeAlias = tuple[ElementKind, str]


class Present(NamedTuple):
    """The casefolded names of what a table has."""

    columns: frozenset[str]
    indexes: frozenset[str]
    constraints: frozenset[str]


class Resolved(NamedTuple):
    """A statement without the clauses that have nothing to do; '' if none is left. ``columns`` and ``indexes`` are there already."""

    query: str
    columns: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()


def has_conditions(query: str) -> bool:
    """Return whether a clause of an ALTER TABLE, or a statement about an index, has a condition."""
    tree = parse_or_none(query)
    if tree is None:
        return False
    match tree.node:
        case IndexStatement(condition=condition):
            return condition is not None
        case AlterTableStatement(clauses=clauses):
            return any(clause.condition or any(element.condition for element in clause.elements) for clause in clauses)
        case _:
            return False


def resolved(query: str, present: Present) -> Resolved:
    """Take the clauses out of a statement whose conditions say that they have nothing to do."""
    tree = parse_or_none(query)
    if tree is None:
        return Resolved(query)
    node = tree.node
    if isinstance(node, IndexStatement):
        return _index(query, node, present)
    if not isinstance(node, AlterTableStatement):
        return Resolved(query)
    found = _Conditions(node, present)
    marks = [Mark(*clause.span, Action.DROP) for clause in node.clauses if found.has_nothing(clause)]
    edits = list(list_edits(query, tree.tokens, [clause.span for clause in node.clauses], marks))
    for clause in node.clauses:
        there = [element for element in clause.elements if found.is_there(clause, element)]
        if there and len(there) < len(clause.elements):
            of_elements = [Mark(*element.span, Action.DROP) for element in there]
            edits += list_edits(query, tree.tokens, [element.span for element in clause.elements], of_elements)
    left = "" if len(marks) == len(node.clauses) and marks else edited(query, edits)
    names = [_added(element) for clause, element in found.additions() if found.is_there(clause, element)]
    columns = tuple(name for kind, name in names if kind is ElementKind.COLUMN)
    return Resolved(left, columns, tuple(name for kind, name in names if kind is ElementKind.INDEX))


def _index(query: str, node: IndexStatement, present: Present) -> Resolved:
    is_there = _name(node.name) in present.indexes
    if node.condition is None or is_there != node.is_create:
        return Resolved(query)
    return Resolved("", indexes=(_name(node.name),) if node.is_create else ())


class _Conditions(NamedTuple):
    """A statement, and what its table has."""

    node: AlterTableStatement
    present: Present

    def has_nothing(self, clause: AlterClause) -> bool:
        """Whether a clause has nothing to do."""
        if clause.kind is ClauseKind.ADD:
            return bool(clause.elements) and all(self.is_there(clause, element) for element in clause.elements)
        if clause.condition is None or clause.name is None or clause.kind not in _OF_COLUMN | _OF_INDEX | _OF_CONSTRAINT:
            return False
        return not self._is_present(*_named(clause)[0]) and not self._makes(_named(clause)[0])

    def is_there(self, clause: AlterClause, element: Element) -> bool:
        """Whether an element need not be added."""
        if element.condition is None and clause.condition is None:
            return False
        return self._is_present(*_added(element)) and not self._frees(_added(element))

    def additions(self) -> Iterator[tuple[AlterClause, Element]]:
        """Yield each element with its clause."""
        for clause in self.node.clauses:
            for element in clause.elements:
                yield clause, element

    def _is_present(self, kind: ElementKind, name: str) -> bool:
        match kind:
            case ElementKind.COLUMN:
                return name in self.present.columns
            case ElementKind.INDEX:
                return name in self.present.indexes
            case _:
                # DROP CONSTRAINT drops a unique key too.
                return name in self.present.constraints | self.present.indexes

    def _makes(self, wanted: _Name) -> bool:
        """Whether the statement itself makes what has this name."""
        return any(wanted in (*map(_added, clause.elements), *_named(clause)[1:]) for clause in self.node.clauses)

    def _frees(self, wanted: _Name) -> bool:
        """Whether the statement itself drops what has this name, or renames it."""
        freeing = (clause for clause in self.node.clauses if clause.kind in _FREEING)
        return any(wanted == name for clause in freeing for name in _named(clause)[:1])


def _named(clause: AlterClause) -> list[_Name]:
    """Return what a clause names: what is there before it first, then, under another name, what is there after it."""
    kinds = {**dict.fromkeys(_OF_COLUMN, ElementKind.COLUMN), **dict.fromkeys(_OF_INDEX, ElementKind.INDEX)}
    kind = kinds.get(clause.kind, ElementKind.FOREIGN_KEY)
    return list(dict.fromkeys((kind, _name(name)) for name in (clause.name, clause.new_name) if name is not None))


def _added(element: Element) -> _Name:
    return element.kind, _name(element.name or element.constraint)


def _name(token: Token | None) -> str:
    return "" if token is None else token.text.casefold()


def conditional_columns(query: str) -> frozenset[str]:
    """Return the casefolded names of the columns that an ALTER TABLE adds IF NOT EXISTS."""
    tree = parse_or_none(query)
    if tree is None:
        return frozenset()
    node = tree.node
    clauses = node.clauses if isinstance(node, AlterTableStatement) else ()
    elements = [(clause, element) for clause in clauses for element in clause.elements if element.kind is ElementKind.COLUMN]
    return frozenset(
        element.name.text.casefold()
        for clause, element in elements
        if element.name is not None and (clause.condition or element.condition) is not None
    )


def table_columns(definition: str) -> frozenset[str]:
    """Return the casefolded names of the columns of a CREATE TABLE."""
    tree = parse_or_none(definition)
    elements = tree.node.elements if tree is not None and isinstance(tree.node, CreateTableStatement) else ()
    return frozenset(_name(element.name) for element in elements if element.kind is ElementKind.COLUMN)


def added_columns(query: str) -> list[str]:
    """Return the casefolded names of the columns that an ALTER TABLE adds, whatever else it does."""
    tree = parse_or_none(query)
    if tree is None:
        return []
    node = tree.node
    clauses = node.clauses if isinstance(node, AlterTableStatement) else ()
    elements = (element for clause in clauses for element in clause.elements if element.kind is ElementKind.COLUMN)
    return [element.name.text.casefold() for element in elements if element.name is not None]
