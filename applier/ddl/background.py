"""Which DDLs may run in the background, and in which words. Pure.

A new non-unique index changes no row and refuses none, so no row has to wait for it. Nothing else is like that: a column is in the next
row, and a unique index decides which rows a REPLACE meets.
"""

from typing import Final

from applier.ddl.edit import Edit, edited
from applier.ddl.parser import parse, parse_or_none
from applier.ddl.tree import AlterTableStatement, ClauseKind, Element, ElementKind, IndexStatement

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
    """Return a statement for which ``may_run_in_background`` holds in the words that let writers go on."""
    tree = parse(query)
    end = tree.tokens[-1].end
    return edited(query, [Edit(end, end, ONLINE[isinstance(tree.node, AlterTableStatement)])])


def _is_plain(element: Element) -> bool:
    return element.kind is ElementKind.INDEX and not element.index_kind
