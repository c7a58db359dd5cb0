"""Writes into a DDL's text what upstream's session added to it without words: default collations, schemas of names, defaults of TIMESTAMP.

A sink has other defaults and other sessions; with these words the statement means there what it meant upstream. Pure: edits at places of
the statement's tokens, every other byte stays. The collation of a table without one is left to the sink: its schema has upstream's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from applier.ddl.charset import collation_edits
from applier.ddl.edit import Edit, edited
from applier.ddl.parser import parse
from applier.ddl.session_words import without_session_words
from applier.ddl.statement import Site
from applier.ddl.tokens import TOKEN
from applier.ddl.tree import (
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    ElementKind,
    SchemaStatement,
    Span,
    Tree,
)
from applier.sources.binlog.statement import first_words

_CHARSET_WORDS: Final = frozenset({"CHARSET", "SET", "COLLATE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDefaults:
    """What a statement means where it says nothing. ``collations``: of a character set; '' and None: not known."""

    collations: Mapping[str, str]
    server_collation: str = ""
    has_explicit_timestamps: bool = True
    real_is_float: bool = False


def without_statement_settings(text: str) -> str:
    """Return the statement behind MariaDB's ``SET STATEMENT variable = value FOR``."""
    if first_words(text)[:2] != ["SET", "STATEMENT"]:
        return text
    end = next((match.end() for match in TOKEN.finditer(text) if match.group().upper() == "FOR"), 0)
    return text[end:].lstrip()


def completed(tree: Tree, defaults: SessionDefaults) -> str:
    """Return the statement with the words that its session gave it."""
    edits = [
        *collation_edits(tree, defaults.collations),
        *_schema_edits(tree, defaults.server_collation),
        *_type_edits(tree, defaults),
    ]
    return edited(tree.text, edits)


def _schema_edits(tree: Tree, server_collation: str) -> Iterator[Edit]:
    """A schema without a character set has the server's; DEFAULT in its place means the same."""
    node = tree.node
    if not isinstance(node, SchemaStatement) or node.verb == "DROP" or not server_collation:
        return
    first, last = node.options
    words = [token.keyword for token in tree.tokens[first : last + 1]]
    places = [at for at, word in enumerate(words) if word in _CHARSET_WORDS]
    charset = server_collation.partition("_")[0]
    if not places and node.verb == "CREATE":
        end = tree.tokens[-1].end
        yield Edit(end, end, f" CHARACTER SET {charset} COLLATE {server_collation}")
    for at in places:
        value = at + 2 if words[at + 1 : at + 2] == ["="] else at + 1
        if words[value : value + 1] == ["DEFAULT"]:
            token = tree.tokens[first + value]
            new = server_collation if words[at] == "COLLATE" else f"{charset} COLLATE {server_collation}"
            yield Edit(token.start, token.end, new)


def _type_edits(tree: Tree, defaults: SessionDefaults) -> Iterator[Edit]:
    """Write the defaults of TIMESTAMP columns, and what REAL is."""
    is_first = True
    for first, last in _columns(tree):
        word = tree.tokens[first].keyword
        if word == "REAL" and defaults.real_is_float:
            yield Edit(tree.tokens[first].start, tree.tokens[first].end, "FLOAT")
        elif word == "TIMESTAMP" and not defaults.has_explicit_timestamps and isinstance(tree.node, CreateTableStatement):
            yield from _timestamp_edits(tree, (first, last), is_first=is_first)
            is_first = False


def depends_on_columns(tree: Tree) -> bool:
    """Return whether an ALTER TABLE has a TIMESTAMP column: which one is the first, only the whole table says."""
    return isinstance(tree.node, AlterTableStatement) and any(tree.tokens[first].keyword == "TIMESTAMP" for first, _ in _columns(tree))


def _timestamp_edits(tree: Tree, span: Span, *, is_first: bool) -> Iterator[Edit]:
    """Without explicit_defaults_for_timestamp: NOT NULL, and the first one is the time of the change (manual, system variables)."""
    words = [token.keyword for token in tree.tokens[span[0] : span[1] + 1]]
    has_default = "DEFAULT" in words or ("ON" in words and "UPDATE" in words)
    is_nullable = any(word == "NULL" and words[at - 1] not in {"NOT", "DEFAULT"} for at, word in enumerate(words))
    if is_nullable or {"AS", "GENERATED"} & set(words):
        return
    added = "" if "NOT" in words else " NOT NULL"
    if not has_default:
        now = "CURRENT_TIMESTAMP" + (f"({words[2]})" if words[1:2] == ["("] else "")
        added += f" DEFAULT {now} ON UPDATE {now}" if is_first else " DEFAULT '0000-00-00 00:00:00'"
    end = tree.tokens[_type_end(tree, span)].end
    yield Edit(end, end, added)


def _type_end(tree: Tree, span: Span) -> int:
    """Return the place of the last token of a type: its own, or the parenthesis behind it."""
    return span[0] + 3 if span[0] + 3 <= span[1] and tree.tokens[span[0] + 1].kind == "(" else span[0]


def _columns(tree: Tree) -> Iterator[Span]:
    """Yield where the type of each column stands, and where the column ends."""
    match tree.node:
        case CreateTableStatement(elements=elements):
            listed = [(element.kind, element.body, element.span[1]) for element in elements]
        case AlterTableStatement(clauses=clauses):
            listed = [(element.kind, element.body, element.span[1]) for clause in clauses for element in clause.elements]
            changed = [clause for clause in clauses if clause.kind in {ClauseKind.MODIFY, ClauseKind.CHANGE}]
            listed += [(ElementKind.COLUMN, clause.body, clause.span[1]) for clause in changed]
        case _:
            listed = []
    yield from ((first, last) for kind, first, last in listed if kind is ElementKind.COLUMN and first <= last)


def qualified(text: str, sites: Sequence[Site], schema: str) -> str:
    """Return the statement with the session's schema before each name that has none."""
    edits = [
        Edit(site.table.start, site.table.end, f"{_quoted(schema)}.{_quoted(site.table.text)}")
        for site in sites
        if site.schema is None and site.table is not None
    ]
    return edited(text, edits)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def read_tree(text: str) -> Tree:
    """Read a statement without the words of its session. DdlSyntaxError."""
    return parse(without_session_words(text))
