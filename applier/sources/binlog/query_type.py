"""The type of a DDL, as policies and event filters name it: TiDB's ActionType. Pure."""

from collections.abc import Mapping
from typing import Final

from applier.ddl.tree import (
    AlterClause,
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    CreateViewStatement,
    DropTablesStatement,
    Element,
    ElementKind,
    IndexStatement,
    RenameTablesStatement,
    SchemaStatement,
    Tree,
    TruncateTableStatement,
)

_OF_STATEMENT: Final[Mapping[type, int]] = {CreateTableStatement: 3, TruncateTableStatement: 11, CreateViewStatement: 21}
_SCHEMAS: Final[Mapping[str, int]] = {"CREATE": 1, "DROP": 2, "ALTER": 26}
_OF_CLAUSE: Final[Mapping[ClauseKind, int]] = {
    ClauseKind.ADD_PARTITION: 19,
    ClauseKind.DROP_COLUMN: 6,
    ClauseKind.DROP_INDEX: 8,
    ClauseKind.DROP_PRIMARY_KEY: 33,
    ClauseKind.DROP_FOREIGN_KEY: 10,
    ClauseKind.DROP_CONSTRAINT: 44,
    ClauseKind.DROP_PARTITION: 20,
    ClauseKind.MODIFY: 12,
    ClauseKind.CHANGE: 12,
    ClauseKind.RENAME_TABLE: 14,
    ClauseKind.RENAME_COLUMN: 12,
    ClauseKind.RENAME_INDEX: 18,
    ClauseKind.ALTER_COLUMN: 15,
    ClauseKind.ALTER_INDEX: 41,
    ClauseKind.ALTER_CONSTRAINT: 45,
    ClauseKind.EXCHANGE_PARTITION: 42,
    ClauseKind.CONVERT: 22,
}
_OF_PARTITIONS: Final[Mapping[str, int]] = {"TRUNCATE": 23, "REORGANIZE": 64, "COALESCE": 64, "PARTITION": 71, "REMOVE": 72}
_ALTER_PARTITION: Final = 46
_OF_OPTION: Final[Mapping[str, int]] = {"COMMENT": 17, "AUTO_INCREMENT": 13, "DEFAULT": 22, "CHARACTER": 22, "CHARSET": 22, "COLLATE": 22}
_OF_ELEMENT: Final[Mapping[ElementKind, int]] = {
    ElementKind.COLUMN: 5,
    ElementKind.INDEX: 7,
    ElementKind.FOREIGN_KEY: 9,
    ElementKind.CHECK: 43,
}
_ADD_PRIMARY_KEY: Final = 32
_MAINTENANCE: Final = frozenset({"ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR"})
_SEVERAL: Final = 61
"""multi_schema_change: several changes, or one that has no type of its own."""


def ddl_type_of(tree: Tree) -> int:
    """Return the type of a statement."""
    match tree.node:
        case SchemaStatement(verb=verb):
            found = _SCHEMAS[verb]
        case AlterTableStatement(clauses=clauses) if len(clauses) == 1:
            found = _of_clause(tree, clauses[0])
        case RenameTablesStatement(pairs=pairs):
            found = 14 if len(pairs) == 1 else 47
        case DropTablesStatement(is_view=is_view):
            found = 24 if is_view else 4
        case IndexStatement(is_create=is_create):
            found = 7 if is_create else 8
        case _:
            found = _OF_STATEMENT.get(type(tree.node), _SEVERAL)
    return found


def is_maintenance(tree: Tree) -> bool:
    """Return whether a statement only examines or rebuilds partitions."""
    if not isinstance(tree.node, AlterTableStatement):
        return False
    words = [tree.part(*clause.span) for clause in tree.node.clauses]
    return bool(words) and all(part.keyword() in _MAINTENANCE and part.keyword(1) == "PARTITION" for part in words)


def _of_clause(tree: Tree, clause: AlterClause) -> int:
    first = tree.tokens[clause.span[0]].keyword
    match clause.kind:
        case ClauseKind.ADD:
            return _of_element(clause.elements[0]) if len(clause.elements) == 1 else _SEVERAL
        case ClauseKind.PARTITIONING:
            return _OF_PARTITIONS.get(first, _ALTER_PARTITION)
        case ClauseKind.OTHER:
            return _OF_OPTION.get(first, _SEVERAL)
        case kind:
            return _OF_CLAUSE[kind]


def _of_element(element: Element) -> int:
    return _ADD_PRIMARY_KEY if element.index_kind == "PRIMARY" else _OF_ELEMENT[element.kind]
