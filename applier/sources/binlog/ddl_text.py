"""Classifies a statement of the binlog by its first words, and completes the text of a DDL with what upstream's session implied. Pure.

Only known statements are skipped: one with other words stops the replica (``UNKNOWN``).

A sink has other default collations, another default schema and other defaults of TIMESTAMP columns; with the words that are written into
the text the statement means there what it meant upstream. They are edits at the statement's tokens; every other byte stays. The collation
of a table without one is left to the sink: its schema has upstream's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from applier.ddl.charset import collation_edits
from applier.ddl.names import Site
from applier.ddl.parser import parse
from applier.ddl.session_words import without_session_words
from applier.ddl.tokens import TOKEN
from applier.ddl.tree import (
    AlterTableStatement,
    ClauseKind,
    CreateTableStatement,
    Edit,
    ElementKind,
    SchemaStatement,
    Span,
    Tree,
    edited,
)


class StatementKind(StrEnum):
    """What a statement is. The names of the kinds that are skipped are labels of a metric."""

    TRANSACTION = "transaction"
    DDL = "ddl"
    ROWS = "rows"
    """It changes rows: it should have come as row events."""
    UNKNOWN = "unknown"
    ACCOUNT = "account"
    ROUTINE = "routine"
    TRIGGER = "trigger"
    EVENT = "event"
    SEQUENCE = "sequence"
    TEMPORARY = "temporary"
    MAINTENANCE = "maintenance"
    SERVER = "server"
    SYSTEM_SCHEMA = "system_schema"
    EXCLUDED_ROWS = "excluded_rows"
    """It changes rows of tables that the replica does not have."""


SKIPPED: Final = frozenset(StatementKind) - {StatementKind.TRANSACTION, StatementKind.DDL, StatementKind.ROWS, StatementKind.UNKNOWN}
"""They change neither a table that the replica has nor its rows. What triggers, events and routines do comes as row events."""

_FIRST_WORDS: Final[Mapping[str, StatementKind]] = {
    word: kind
    for kind, words in (
        (StatementKind.TRANSACTION, "BEGIN COMMIT ROLLBACK SAVEPOINT RELEASE XA"),
        (StatementKind.ROWS, "INSERT REPLACE UPDATE DELETE LOAD CALL DO WITH SELECT VALUES HANDLER IMPORT"),
        (StatementKind.ACCOUNT, "GRANT REVOKE"),
        (StatementKind.DDL, "TRUNCATE"),
        (StatementKind.MAINTENANCE, "FLUSH ANALYZE OPTIMIZE REPAIR CHECK CHECKSUM CACHE RESET PURGE LOCK UNLOCK"),
        (StatementKind.SERVER, "INSTALL UNINSTALL BACKUP SHUTDOWN RESTART CHANGE STOP"),
    )
    for word in words.split()
}
_OBJECTS: Final[Mapping[str, StatementKind]] = {
    word: kind
    for kind, words in (
        (StatementKind.DDL, "TABLE TABLES DATABASE SCHEMA INDEX VIEW"),
        (StatementKind.ACCOUNT, "USER ROLE"),
        (StatementKind.ROUTINE, "PROCEDURE FUNCTION PACKAGE LIBRARY"),
        (StatementKind.TRIGGER, "TRIGGER"),
        (StatementKind.EVENT, "EVENT"),
        (StatementKind.SEQUENCE, "SEQUENCE"),
        # REFERENCE: of SPATIAL REFERENCE SYSTEM.
        (StatementKind.SERVER, "SERVER TABLESPACE LOGFILE RESOURCE INSTANCE REFERENCE"),
    )
    for word in words.split()
}
_BEFORE_OBJECT: Final = frozenset(
    """OR REPLACE TEMPORARY ONLINE IGNORE OFFLINE UNIQUE FULLTEXT SPATIAL VECTOR ALGORITHM UNDEFINED MERGE TEMPTABLE SQL SECURITY INVOKER
    AGGREGATE UNDO DEFINER""".split()  # noqa: SIM905 - two dozen quotes would hide the words
)
_MAX_TOKENS: Final = 40
"""So many tokens at most stand before the object of a statement: a DEFINER has some."""


def classify(text: str) -> StatementKind:
    """Return what a statement is. Comments that the server executes must be open already."""
    words = first_words(text)
    head = words[0] if words else ""
    if head in {"CREATE", "ALTER", "DROP", "RENAME"}:
        return _of_object(words)
    if head == "SET" and (words[1:2] == ["PASSWORD"] or "ROLE" in words[1:3]):
        return StatementKind.ACCOUNT
    if head == "START" and words[1:2] == ["TRANSACTION"]:
        return StatementKind.TRANSACTION
    return _FIRST_WORDS.get(head, StatementKind.UNKNOWN)


def first_words(text: str) -> list[str]:
    """Return the first keywords and marks; only those, because a statement may have megabytes."""
    found = list[str]()
    for match in TOKEN.finditer(text):
        kind, word = match.lastgroup or "", match.group()
        if kind == "blank":
            continue
        found.append(word.upper() if kind == "word" else word if kind == "mark" else kind)
        if len(found) == _MAX_TOKENS:
            break
    return found


def _of_object(words: Sequence[str]) -> StatementKind:
    at = 1
    while at < len(words) and words[at] in _BEFORE_OBJECT:
        is_account = words[at] == "DEFINER" and words[at - 1] != "SECURITY"
        at = _after_account(words, at + 1) if is_account else at + 1
        # ALGORITHM = MERGE.
        at += at < len(words) and words[at] == "="
    kind = _OBJECTS.get(words[at] if at < len(words) else "", StatementKind.UNKNOWN)
    return StatementKind.TEMPORARY if kind is StatementKind.DDL and "TEMPORARY" in words[1:at] else kind


def _after_account(words: Sequence[str], at: int) -> int:
    """Return the position behind ``= 'user'@'host'``, CURRENT_USER or CURRENT_USER()."""
    at += words[at : at + 1] == ["="]
    at += 1
    if words[at : at + 1] == ["@"]:
        at += 2
    return at + 2 if words[at : at + 2] == ["(", ")"] else at


_CHARSET_WORDS: Final = frozenset({"CHARSET", "SET", "COLLATE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionDefaults:
    """What a statement implies. ``collations``: of a character set; '' and None: not known."""

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
    """A schema without a character set has the server's; DEFAULT instead means the same."""
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
    """Return the position of the last token of a type: its own, or the parenthesis after it."""
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
    """Return the statement with the session's schema before each name without one."""
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
