"""The indexes and keys that a statement is about by name, and whether it names some that it must find. Pure."""

from applier.ddl.parser import parse_or_none
from applier.ddl.tree import AlterTableStatement, ClauseKind, ElementKind, IndexStatement

_BY_NAME = frozenset({ClauseKind.DROP_INDEX, ClauseKind.RENAME_INDEX, ClauseKind.ALTER_INDEX})
_NAMED = frozenset({ElementKind.INDEX, ElementKind.FOREIGN_KEY})


def found_by_name(query: str, *, is_of_log: bool = False) -> list[str]:
    """Return the indexes that the statement drops, renames or hides, and that its table must have.

    ``is_of_log``: it comes from a binlog, where a statement stands that has not found what its IF EXISTS asks about.
    """
    tree = parse_or_none(query)
    if tree is None:
        return []
    match tree.node:
        case IndexStatement(is_create=False) as node:
            return [] if is_of_log and node.condition is not None else [node.name.text]
        case AlterTableStatement(clauses=clauses):
            # Of several clauses, one that changes nothing may be among others that do.
            is_sure = len(clauses) == 1 and not is_of_log
            return [
                clause.name.text
                for clause in clauses
                if clause.kind in _BY_NAME and clause.name is not None and (is_sure or clause.condition is None)
            ]
        case _:
            return []


def depends_on_names(query: str) -> bool:
    """Return whether the statement adds indexes or foreign keys to a table, or is about some by name."""
    tree = parse_or_none(query)
    if tree is None:
        return False
    match tree.node:
        case IndexStatement(is_create=False):
            return True
        case AlterTableStatement(clauses=clauses):
            added = any(element.kind in _NAMED for clause in clauses for element in clause.elements)
            return added or any(clause.kind in _BY_NAME for clause in clauses)
        case _:
            return False
