"""Adapts a DDL to a server that lacks a type, a kind of index, or a collation of TiDB. Pure.

An index holds no rows. So an index that the server cannot have is skipped, unless it is unique: without it the sink would take rows that
upstream refuses, and a later change could not tell them apart. What can neither be replaced nor skipped is refused by name.
"""

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from applier.ddl.parser import BY_HAND, parse, parse_or_none
from applier.ddl.tokens import DdlSyntaxError, Token, scan
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
    Span,
    Tree,
    edited,
    list_edits,
)
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent

MARIADB_COLLATIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "utf8mb4_0900_ai_ci": "utf8mb4_uca1400_nopad_ai_ci",
        "utf8mb4_0900_as_ci": "utf8mb4_uca1400_nopad_as_ci",
        "utf8mb4_0900_as_cs": "utf8mb4_uca1400_nopad_as_cs",
        "utf8mb4_0900_bin": "utf8mb4_nopad_bin",
    }
)
"""Collations of MySQL 8 and what MariaDB from 10.10 on has instead: the same rules of case, accents and trailing spaces (NO PAD).

Not the same for every text. MySQL's follow Unicode 9, which does not have later characters and keeps them apart. MariaDB's are of
Unicode 14, under which such a character may equal an older one (U+1FBF0 is a digit 0). So they do not explain a unique key in the table
check. Collations of single languages (``utf8mb4_de_pb_0900_ai_ci``) have no counterpart.
"""


class Target(NamedTuple):
    """What the server of a sink understands. The default is a TiDB, or a server that is not known: the statement stays as it is.

    ``collations``: what the sink calls upstream's collations, names in lower case.
    """

    has_vectors: bool = True
    has_vector_indexes: bool = True
    has_expression_indexes: bool = True
    has_intervals: bool = True
    has_or_replace: bool = True
    """CREATE OR REPLACE TABLE."""
    has_generated_keys: bool = True
    """Generated columns that are NOT NULL, or in a primary key."""
    has_unenforced_checks: bool = True
    """CHECK … NOT ENFORCED."""
    has_column_visibility: bool = True
    """VISIBLE of a column, and its change alone: ALTER COLUMN … SET VISIBLE."""
    has_srid: bool = True
    """SRID of a column, which limits its values to one."""
    has_periods: bool = True
    """MariaDB's PERIOD FOR."""
    keeps_foreign_keys_apart: bool = True
    """Two tables of a schema may have foreign keys of one name."""
    collations: Mapping[str, str] = MappingProxyType({})


UPSTREAM: Final = Target()


MAX_DIMENSIONS: Final = 16383
"""Of a VECTOR in TiDB and in MySQL. Without a number MySQL takes 2048, and TiDB takes any."""

_OF_TIDB: Final = frozenset({"VECTOR", "COLUMNAR", "HYBRID"})
_BY_INDEX_NAME: Final = frozenset({ClauseKind.DROP_INDEX, ClauseKind.RENAME_INDEX, ClauseKind.ALTER_INDEX})
_INTERVALS: Final = (("FIRST", "PARTITION"), ("LAST", "PARTITION"), ("MERGE", "FIRST"), ("SPLIT", "MAXVALUE"))
_INTERVAL_REMEDY: Final = Remedy(
    "ddl.change-partitions-by-hand",
    "Make the same change in the sink with the partitions that upstream has (SHOW CREATE TABLE there), then skip the DDL with "
    "`applier ddl skip --ts … --table …`",
)


def adapted(query: str, target: Target) -> str:
    """Return the statement with the types and collations that the server has; indexes are ``clause``'s."""
    if not target.collations and target.has_vectors and target.has_vector_indexes and target.has_srid and target.has_column_visibility:
        return query
    try:
        tokens = scan(query)
    except DdlSyntaxError:
        return query
    return edited(query, [*_collation_edits(tokens, target), *_vector_edits(query, target), *_column_edits(query, target)])


def is_impossible(tree: Tree, element: Element, target: Target) -> bool:
    """Return whether an element of a table is an index that the server cannot have."""
    if element.kind is not ElementKind.INDEX:
        return False
    return _is_impossible(tree, element.index_kind, (element.body, element.span[1]), target)


def is_left_out(tree: Tree, node: IndexStatement, target: Target) -> bool:
    """Return whether a CREATE INDEX makes an index that the server cannot have, and the sink does not need."""
    return node.is_create and _is_impossible(tree, node.index_kind, (node.parts[0] - 1, node.options[1]), target)


def left_out(query: str, target: Target) -> list[str]:
    """Return the names of the indexes that the statement makes upstream, and not in the sink."""
    return [name for name, _ in _impossible(query, target)]


def refuse_inexpressible(ddl: DdlEvent, target: Target) -> None:
    """Raise NeedsOperator if the server cannot have what the statement makes, and the sink needs."""
    facts: dict[str, Any] = {"table": str(ddl.name), "commit_ts": ddl.commit_ts, "query": ddl.query}
    for name, is_unique in _impossible(ddl.query, target):
        if is_unique:
            message = "the sink's server cannot have a unique index of an expression, or with a condition"
            raise NeedsOperator(message, remedy=BY_HAND, index=name, **facts)
    if not target.has_intervals and _is_of_interval(ddl.query):
        message = "the DDL names the bounds of INTERVAL partitions, and not the partitions"
        raise NeedsOperator(message, remedy=_INTERVAL_REMEDY, **facts)
    if (lacking := _lacking(ddl.query, target)) is not None:
        raise NeedsOperator(lacking, remedy=BY_HAND, **facts)


def _lacking(query: str, target: Target) -> str | None:
    """Return what the server does not have at all, and the sink needs."""
    tree = parse_or_none(query)
    if tree is None:
        return None
    pairs = set(pairwise(token.keyword for token in tree.tokens))
    clauses = tree.node.clauses if isinstance(tree.node, AlterTableStatement) else ()
    is_about_checks = any(clause.kind is ClauseKind.ALTER_CONSTRAINT for clause in clauses)
    if not target.has_unenforced_checks and (("NOT", "ENFORCED") in pairs or is_about_checks):
        return "the sink's server enforces each check that it has, and the DDL has one that is not enforced"
    if not target.has_periods and ("PERIOD", "FOR") in pairs:
        return "the sink's server has no periods of a table (PERIOD FOR)"
    return None


def indexes_by_name(query: str) -> list[str]:
    """Return the indexes that a statement drops, renames or hides; one that does nothing else fails on the server."""
    tree = parse_or_none(query)
    if tree is None:
        return []
    node = tree.node
    if isinstance(node, IndexStatement):
        return [] if node.is_create else [node.name.text]
    clauses = node.clauses if isinstance(node, AlterTableStatement) else ()
    return [clause.name.text for clause in clauses if clause.kind in _BY_INDEX_NAME and clause.name is not None]


def without_missing_indexes(query: str, present: Collection[str]) -> str:
    """Return a statement without what it does to indexes that are not ``present`` (casefolded), under the old name or the new one.

    A DROP INDEX then has nothing to do: ''.
    """
    tree = parse_or_none(query)
    if tree is None:
        return query
    if isinstance(tree.node, IndexStatement):
        return query if tree.node.is_create or tree.node.name.text.casefold() in present else ""
    if not isinstance(tree.node, AlterTableStatement):
        return query
    clauses = tree.node.clauses
    marks = [Mark(*clause.span, Action.DROP) for clause in clauses if _is_about_missing(clause, present)]
    return edited(query, list_edits(query, tree.tokens, [clause.span for clause in clauses], marks))


def _is_about_missing(clause: AlterClause, present: Collection[str]) -> bool:
    if clause.kind not in _BY_INDEX_NAME or clause.name is None:
        return False
    names = [clause.name, *([] if clause.new_name is None else [clause.new_name])]
    return not any(name.text.casefold() in present for name in names)


# Indexes


def _impossible(query: str, target: Target) -> Iterator[tuple[str, bool]]:
    """Yield name and uniqueness of each index that the server cannot have."""
    tree = parse_or_none(query)
    if tree is None:
        return
    if isinstance(tree.node, IndexStatement):
        if is_left_out(tree, tree.node, target):
            yield tree.node.name.text, tree.node.index_kind == "UNIQUE"
        return
    for element in tree.elements:
        if is_impossible(tree, element, target):
            name = element.name or element.constraint
            yield "" if name is None else name.text, element.index_kind == "UNIQUE"


def _is_impossible(tree: Tree, index_kind: str, body: Span, target: Target) -> bool:
    if index_kind in _OF_TIDB:
        return not target.has_vector_indexes
    words = [token.keyword for token in tree.tokens[body[0] : body[1] + 1]]
    # TiDB's partial index. No other server has it.
    if "WHERE" in words:
        return not target.has_vector_indexes
    return not target.has_expression_indexes and _has_expression(words)


def _has_expression(words: list[str]) -> bool:
    """Return whether a part of an index is in parentheses of its own: ``(a, (LOWER(b)))``."""
    first = words.index("(") if "(" in words else len(words)
    return any(pair in {("(", "("), (",", "(")} for pair in pairwise(words[first:]))


def _is_of_interval(query: str) -> bool:
    tree = parse_or_none(query)
    if tree is None:
        return False
    match tree.node:
        case CreateTableStatement(partitioning=partitioning):
            first, last = partitioning
            return any(tree.part(at, last).sees("INTERVAL", "(") for at in range(first, last))
        case AlterTableStatement(clauses=clauses):
            return any(tree.part(*clause.span).sees(*words) for clause in clauses for words in _INTERVALS)
        case _:
            return False


# Types and collations


def _collation_edits(tokens: list[Token], target: Target) -> Iterator[Edit]:
    for at, token in enumerate(tokens):
        if token.keyword == "COLLATE":
            names = tokens[at + 1 : at + 3]
            name = names[-1:] if names and names[0].kind == "=" else names[:1]
            for named in name:
                if own := target.collations.get(named.text.strip("'\"").casefold()):
                    yield Edit(named.start, named.end, own)


def _vector_edits(query: str, target: Target) -> list[Edit]:
    try:
        return list(_vectors(parse(query), target))
    except DdlSyntaxError:
        return []


def _vectors(tree: Tree, target: Target) -> Iterator[Edit]:
    for at, last in _types(tree):
        if tree.tokens[at].keyword != "VECTOR":
            continue
        cursor = tree.part(at + 1, last)
        # VECTOR<FLOAT>(3) is a longer word for VECTOR(3).
        cursor.accept("<", "FLOAT", ">")
        has_dimensions = cursor.sees("(")
        cursor.skip_parenthesis()
        start, end = tree.tokens[at].start, tree.tokens[cursor.at - 1].end
        if not target.has_vectors:
            yield Edit(start, end, "LONGTEXT")
        elif not has_dimensions and not target.has_vector_indexes:
            yield Edit(start, end, f"VECTOR({MAX_DIMENSIONS})")


def _column_edits(query: str, target: Target) -> Iterator[Edit]:
    """Remove the attributes of columns that do not concern their values: VISIBLE, INVISIBLE and SRID."""
    tree = None if target.has_srid and target.has_column_visibility else parse_or_none(query)
    if tree is None:
        return
    for first, last in _types(tree):
        depth = 0
        for at in range(first, last + 1):
            token = tree.tokens[at]
            depth += (token.kind == "(") - (token.kind == ")")
            if depth == 0 and token.keyword == "VISIBLE" and not target.has_column_visibility:
                yield Edit(token.start, token.end, "")
            elif depth == 0 and token.keyword == "SRID" and at < last and not target.has_srid:
                yield Edit(token.start, tree.tokens[at + 1].end, "")


def _types(tree: Tree) -> Iterator[Span]:
    """Yield the position of each column's type, and the column's end."""
    for element in tree.elements:
        if element.kind is ElementKind.COLUMN and element.body <= element.span[1]:
            yield element.body, element.span[1]
    if isinstance(tree.node, AlterTableStatement):
        for clause in tree.node.clauses:
            if clause.kind in {ClauseKind.MODIFY, ClauseKind.CHANGE} and clause.body <= clause.span[1]:
                yield clause.body, clause.span[1]
