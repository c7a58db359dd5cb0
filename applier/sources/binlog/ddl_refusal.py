"""DDLs of the binlog that no sink can repeat from their text: each stops the replica at its turn, by name. Pure."""

from itertools import pairwise
from typing import Final

from applier.ddl.remedy import BY_HAND
from applier.ddl.tree import AlterTableStatement, ClauseKind, CreateTableStatement, DropTablesStatement, Element, Tree
from applier.model.events import DdlRefusal

_LEAVE_OUT: Final = f"Leave the table out by source.tables. {BY_HAND}"
_NO_STATEMENTS: Final = f"Set binlog_format = ROW on upstream's server. {BY_HAND}"

_ORACLE: Final = 1 << 9
"""The mode in which MariaDB reads a DATE as DATETIME."""


OF_VARIABLES: Final = DdlRefusal(
    "the statement uses variables, numbers or random values of its session, which the binlog has beside it and which are not replayed",
    BY_HAND,
)


def unreadable(why: str) -> DdlRefusal:
    """Return the refusal of a statement that is not understood."""
    return DdlRefusal(f"the applier cannot read this statement ({why})", BY_HAND)


def refusal_of(tree: Tree, error_code: int, sql_mode: int) -> DdlRefusal | None:
    """Return why a DDL cannot be repeated; None if it can."""
    node, words = tree.node, [token.keyword for token in tree.tokens]
    if error_code and not (isinstance(node, DropTablesStatement) and node.if_exists):
        return DdlRefusal(f"the statement failed upstream with error {error_code} after it had changed something", BY_HAND)
    if sql_mode & _ORACLE and isinstance(node, CreateTableStatement | AlterTableStatement):
        return DdlRefusal("upstream has read the statement in sql_mode = ORACLE, where types have other meanings", BY_HAND)
    if isinstance(node, CreateTableStatement | AlterTableStatement) and ("WITHOUT", "OVERLAPS") in pairwise(words):
        return DdlRefusal("keys WITHOUT OVERLAPS are not replicated: MariaDB refuses the REPLACE by which rows are written", _LEAVE_OUT)
    if isinstance(node, CreateTableStatement):
        return _of_create(node, words)
    if isinstance(node, AlterTableStatement):
        return _of_alter(node, words)
    return None


def of_duality_view(words: list[str]) -> DdlRefusal | None:
    """Return the refusal of a statement that makes a view of documents; None for another one. ``words``: its first ones."""
    is_one = "DUALITY" in words and "VIEW" in words[words.index("DUALITY") :]
    return DdlRefusal("JSON DUALITY VIEWs are not replicated: no other server has them", BY_HAND) if is_one else None


def _of_create(node: CreateTableStatement, words: list[str]) -> DdlRefusal | None:
    if node.like is None and any(word == "SELECT" for word in words[node.body :]):
        why = "CREATE TABLE … SELECT is in the binlog as a statement, because its session has binlog_format = STATEMENT or MIXED"
        return DdlRefusal(why, _NO_STATEMENTS)
    first, last = node.options
    return _VERSIONED if _is_versioned(words) or "VERSIONING" in words[first : last + 1] else None


_VERSIONED: Final = DdlRefusal("tables with SYSTEM VERSIONING are not replicated: each server writes their history itself", _LEAVE_OUT)


def _is_versioned(words: list[str]) -> bool:
    pairs = set(pairwise(words))
    return ("SYSTEM", "VERSIONING") in pairs or ("FOR", "SYSTEM_TIME") in pairs


def _of_alter(node: AlterTableStatement, words: list[str]) -> DdlRefusal | None:
    if _is_versioned(words):
        return _VERSIONED
    if ("IMPORT" in words or "DISCARD" in words) and "TABLESPACE" in words:
        return DdlRefusal("the rows of a tablespace that is discarded or imported are not in the binlog", BY_HAND)
    added = [element for clause in node.clauses if clause.kind is ClauseKind.ADD for element in clause.elements]
    if node.ignore is not None and any(_is_unique(element, words) for element in added):
        return DdlRefusal("ALTER IGNORE TABLE may have deleted rows, which are not in the binlog", BY_HAND)
    return None


def _is_unique(element: Element, words: list[str]) -> bool:
    return bool({"UNIQUE", "PRIMARY"} & set(words[element.span[0] : element.span[1] + 1]))
