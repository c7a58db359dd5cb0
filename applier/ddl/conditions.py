"""Resolves IF [NOT] EXISTS in ALTER TABLE clause by clause, against what the table has. Pure.

MySQL does not know these words. Without them it refuses the whole statement for one clause that has nothing to do; and with them a server
says of the whole statement only that something was there already.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from applier.ddl.edit import Action, Mark, edited, list_edits
from applier.ddl.parser import parse_or_none
from applier.ddl.tokens import Token
from applier.ddl.tree import AlterClause, AlterTableStatement, ClauseKind, Element, ElementKind, IndexStatement

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
    """A statement beside what its table has."""

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
    """Return what a clause names: what is there before it first, then, under another name, what is there behind it."""
    kinds = {**dict.fromkeys(_OF_COLUMN, ElementKind.COLUMN), **dict.fromkeys(_OF_INDEX, ElementKind.INDEX)}
    kind = kinds.get(clause.kind, ElementKind.FOREIGN_KEY)
    return list(dict.fromkeys((kind, _name(name)) for name in (clause.name, clause.new_name) if name is not None))


def _added(element: Element) -> _Name:
    return element.kind, _name(element.name or element.constraint)


def _name(token: Token | None) -> str:
    return "" if token is None else token.text.casefold()
