"""The type of a DDL, by its statement: for sources whose events do not have TiDB's code (a binlog, TiCDC's canal-json and simple).

``policy`` names the types.
"""

from collections.abc import Mapping
from typing import Final

from applier.ddl.parser import parse_or_none
from applier.ddl.tokens import DdlSyntaxError, scan
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
    RecoverTableStatement,
    RenameTablesStatement,
    SchemaStatement,
    Tree,
    TruncateTableStatement,
)

_RECOVER_TABLE: Final = 25
_OF_STATEMENT: Final[Mapping[type, int]] = {
    CreateTableStatement: 3,
    TruncateTableStatement: 11,
    CreateViewStatement: 21,
    RecoverTableStatement: _RECOVER_TABLE,
}
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


# --- TiDB ------------------------------------------------------------------------------------------------------------

_FULLTEXT: Final = 230
_INDEX_KINDS: Final[Mapping[str, int]] = {"FULLTEXT": _FULLTEXT, "HYBRID": 231, "VECTOR": 73, "COLUMNAR": 73}
"""TiDB sends such a statement only where it makes such an index. One that it ignores is not a job."""
_OF_TIDB_OPTION: Final[Mapping[str, int]] = {
    "TTL": 65, "TTL_ENABLE": 65, "TTL_JOB_INTERVAL": 65, "SHARD_ROW_ID_BITS": 16, "AUTO_ID_CACHE": 39, "AUTO_RANDOM_BASE": 40,
    "ATTRIBUTES": 49, "CACHE": 57, "NOCACHE": 59, "PLACEMENT": 56,
}  # fmt: skip
_OF_UNREAD: Final[Mapping[tuple[str, str], int]] = {
    ("FLASHBACK", "CLUSTER"): 62, ("FLASHBACK", "DATABASE"): 63, ("FLASHBACK", "SCHEMA"): 63, ("RECOVER", "DATABASE"): 63,
    ("RECOVER", "SCHEMA"): 63, ("CREATE", "SEQUENCE"): 34, ("ALTER", "SEQUENCE"): 35, ("DROP", "SEQUENCE"): 36,
    ("CREATE", "PLACEMENT"): 51, ("ALTER", "PLACEMENT"): 52, ("DROP", "PLACEMENT"): 53, ("CREATE", "RESOURCE"): 68,
    ("ALTER", "RESOURCE"): 69, ("DROP", "RESOURCE"): 70,
}  # fmt: skip
"""First words of statements that the parser does not read: a policy stops or skips them."""


def tidb_ddl_type(query: str) -> int | None:
    """Return the type of a statement of TiDB; None: it is not understood."""
    tree = parse_or_none(query)
    if tree is None:
        return _OF_UNREAD.get(_first_words(query))
    found = ddl_type_of(tree)
    match tree.node:
        case IndexStatement(is_create=True, index_kind=kind):
            return _INDEX_KINDS.get(kind, found)
        case AlterTableStatement(clauses=(AlterClause(kind=ClauseKind.ADD, elements=(element,)),)):
            return _INDEX_KINDS.get(element.index_kind, found)
        case AlterTableStatement(clauses=(AlterClause(kind=ClauseKind.OTHER, span=(first, last)),)):
            words = [token.keyword for token in tree.tokens[first : last + 1]]
            return 67 if words[:2] == ["REMOVE", "TTL"] else 30 if words[:2] == ["SET", "TIFLASH"] else _OF_TIDB_OPTION.get(words[0], found)
    return found


def _first_words(query: str) -> tuple[str, str]:
    try:
        words = [token.keyword for token in scan(query)[:2]]
    except DdlSyntaxError:
        return "", ""
    return (words[0], words[1]) if len(words) > 1 else ("", "")
