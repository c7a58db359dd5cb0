"""What the catalogue shows once an ALTER TABLE, CREATE INDEX or DROP INDEX has run: what it adds is there, what it drops is gone. Pure."""

from itertools import pairwise
from typing import Final, NamedTuple

from applier.ddl.parser import parse, parse_or_none
from applier.ddl.tokens import DdlSyntaxError
from applier.ddl.tree import AlterClause, AlterTableStatement, ClauseKind, Element, ElementKind, IndexStatement, Tree

# Clauses that can run again on a table that they have changed already, and change nothing.
_REPEATABLE: Final = frozenset({ClauseKind.MODIFY, ClauseKind.ALTER_COLUMN, ClauseKind.ALTER_INDEX, ClauseKind.ALTER_CONSTRAINT})
_REPEATABLE_OPTIONS: Final = frozenset(
    {"COMMENT", "CHARACTER", "CHARSET", "COLLATE", "DEFAULT", "CONVERT", "ENGINE", "AUTO_INCREMENT", "ROW_FORMAT", "ALGORITHM", "LOCK"}
)
_PLAIN_INDEXES: Final = frozenset({"", "UNIQUE", "FULLTEXT", "SPATIAL"})


class Postcondition(NamedTuple):
    """A ``column``, an ``index`` or a ``partition`` is there afterwards, or is not; ``formerly``: what a CHANGE calls it before."""

    what: str
    name: str
    is_present: bool
    formerly: str = ""


class _Unknown(Exception):
    """The text and the catalogue do not show what a clause has done."""


def postconditions_of(query: str) -> list[Postcondition] | None:
    """Return what the statement adds and drops; None if the text and the catalogue do not show what one of its clauses has done."""
    try:
        tree = parse(query)
        match tree.node:
            case IndexStatement() as node:
                return [Postcondition("index", node.name.text, is_present=node.is_create)]
            case AlterTableStatement(clauses=clauses, is_understood=True) if clauses:
                return [wanted for clause in clauses for wanted in _of_clause(tree, clause)]
            case _:
                return None
    except (DdlSyntaxError, _Unknown):
        return None


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


def added_columns(query: str) -> list[str]:
    """Return the casefolded names of the columns that an ALTER TABLE adds, whatever else it does."""
    tree = parse_or_none(query)
    if tree is None:
        return []
    node = tree.node
    clauses = node.clauses if isinstance(node, AlterTableStatement) else ()
    elements = (element for clause in clauses for element in clause.elements if element.kind is ElementKind.COLUMN)
    return [element.name.text.casefold() for element in elements if element.name is not None]


def _of_clause(tree: Tree, clause: AlterClause) -> list[Postcondition]:
    """Return what one clause adds and drops. The catalogue does not show what a RENAME has renamed."""
    match clause.kind:
        case ClauseKind.ADD:
            return [_added(element) for element in clause.elements]
        case ClauseKind.ADD_PARTITION:
            # ADD PARTITION PARTITIONS 4 names none: then the structures are compared, and their number differs.
            pairs = pairwise(tree.part(clause.body, clause.span[1]).rest)
            return [Postcondition("partition", name.text, is_present=True) for word, name in pairs if word.keyword == "PARTITION"]
        case ClauseKind.DROP_PARTITION:
            names = tree.part(clause.body, clause.span[1]).split()
            return [Postcondition("partition", part.name(), is_present=False) for part in names]
        case ClauseKind.DROP_COLUMN | ClauseKind.DROP_INDEX | ClauseKind.CHANGE if clause.name is not None:
            return _of_name(clause, clause.name.text)
        case kind if kind in _REPEATABLE or tree.tokens[clause.span[0]].keyword in _REPEATABLE_OPTIONS:
            return []
        case _:
            raise _Unknown


def _of_name(clause: AlterClause, name: str) -> list[Postcondition]:
    if clause.new_name is None:
        what = "index" if clause.kind is ClauseKind.DROP_INDEX else "column"
        return [Postcondition(what, name, is_present=False)]
    new_name = clause.new_name.text
    # A CHANGE that keeps the name is a MODIFY: it can run again.
    return [] if name.casefold() == new_name.casefold() else [Postcondition("column", new_name, is_present=True, formerly=name)]


def _added(element: Element) -> Postcondition:
    # The name after CONSTRAINT is the index's on some servers only.
    if element.constraint is None and element.kind is ElementKind.INDEX and element.index_kind == "PRIMARY":
        return Postcondition("index", "PRIMARY", is_present=True)
    if element.constraint is None and element.name is not None:
        if element.kind is ElementKind.COLUMN:
            return Postcondition("column", element.name.text, is_present=True)
        if element.kind is ElementKind.INDEX and element.index_kind in _PLAIN_INDEXES:
            return Postcondition("index", element.name.text, is_present=True)
    raise _Unknown
