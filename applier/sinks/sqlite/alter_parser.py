"""Applies the clauses of ALTER TABLE to a draft of the table.

Three kinds of clause: those that change the definition, those that change no row and no key (comments, character sets between kinds of
UTF-8, numbering, visibility, TTL), and those that SQLite has nothing for (partitions): these stop with the statement.
"""

from collections.abc import Callable
from typing import Final

from applier.model.errors import NeedsOperator
from applier.model.events import TableName
from applier.sinks.sqlite.column_parser import ParsedColumn, parse_charset, parse_column, parse_default
from applier.sinks.sqlite.draft import Position, TableDraft
from applier.sinks.sqlite.table_parser import (
    add_column_keys,
    add_index_element,
    is_index_element,
    parse_column_element,
    parse_name,
    split_elements,
)
from applier.sinks.sqlite.tokens import Cursor

PARTITION_REMEDY: Final = (
    "Partitions do not exist in SQLite. Where no row changes (ADD, REORGANIZE, PARTITION BY, REMOVE PARTITIONING): set the type to "
    "skip under [ddl]. Where rows go or are exchanged: make the same change in the sink by hand first, and then skip it"
)
_HARMLESS: Final = (
    "COMMENT", "ENGINE", "AUTO_INCREMENT", "AUTO_ID_CACHE", "AUTO_RANDOM_BASE", "SHARD_ROW_ID_BITS", "PRE_SPLIT_REGIONS", "ROW_FORMAT",
    "TTL",
    "TTL_ENABLE", "TTL_JOB_INTERVAL", "LOCK", "ALGORITHM", "ORDER", "CACHE", "NOCACHE", "ATTRIBUTES", "PLACEMENT", "STATS_OPTIONS",
    "STATS_PERSISTENT", "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES", "KEY_BLOCK_SIZE", "AVG_ROW_LENGTH", "MAX_ROWS", "MIN_ROWS", "CHECKSUM",
    "COMPRESSION",
    "CONNECTION", "DELAY_KEY_WRITE", "ENCRYPTION", "PACK_KEYS", "FORCE", "WITH", "WITHOUT", "ENABLE", "DISABLE", "COLLATE",
    "SECONDARY_ENGINE", "SECONDARY_LOAD", "SECONDARY_UNLOAD", "ENGINE_ATTRIBUTE", "INSERT_METHOD", "AFFINITY",
)  # fmt: skip
_PARTITIONS: Final = (
    ("ADD", "PARTITION"), ("DROP", "PARTITION"), ("TRUNCATE", "PARTITION"), ("EXCHANGE", "PARTITION"), ("COALESCE", "PARTITION"),
    ("REORGANIZE", "PARTITION"), ("PARTITION", "BY"), ("REMOVE", "PARTITIONING"), ("REBUILD", "PARTITION"), ("FIRST", "PARTITION"),
    ("LAST", "PARTITION"), ("MERGE", "FIRST"), ("SPLIT", "MAXVALUE"), ("IMPORT", "PARTITION"), ("DISCARD", "PARTITION"),
)  # fmt: skip


def apply_clauses(cursor: Cursor, draft: TableDraft, schema: str) -> TableName | None:
    """Apply all clauses behind ``ALTER TABLE name``; return the new name if one of them renames the table."""
    renamed = None
    for clause in split_elements(cursor):
        renamed = _apply(clause, draft, schema) or renamed
    return renamed


def refuse_partitions(clause: Cursor) -> None:
    """Raise NeedsOperator if the clause is about partitions."""
    if any(clause.sees(*words) for words in _PARTITIONS):
        raise NeedsOperator("a DDL on partitions is not expressible in SQLite", remedy=PARTITION_REMEDY, statement=clause.text)


def _apply(clause: Cursor, draft: TableDraft, schema: str) -> TableName | None:
    refuse_partitions(clause)
    if clause.sees("RENAME") and not any(clause.sees("RENAME", word) for word in ("COLUMN", "INDEX", "KEY")):
        clause.take()
        clause.accept_any("TO", "AS", "=")
        return parse_name(clause, schema)
    word = clause.accept_any(*_CHANGES, *_WITHOUT_EFFECT)
    if word in _CHANGES:
        _CHANGES[word](clause, draft)
    else:
        _WITHOUT_EFFECT.get(word, _harmless)(clause)
    return None


def _add(clause: Cursor, draft: TableDraft) -> None:
    if is_index_element(clause):
        _add_key(clause, draft)
        return
    clause.accept("COLUMN")
    exists_allowed = clause.accept("IF", "NOT", "EXISTS")
    if clause.sees("("):
        for element in split_elements(clause.parenthesis()):
            _add_element(element, draft, exists_allowed=exists_allowed)
    else:
        _add_element(clause, draft, exists_allowed=exists_allowed)


def _add_element(element: Cursor, draft: TableDraft, *, exists_allowed: bool) -> None:
    if is_index_element(element):
        _add_key(element, draft)
        return
    column = parse_column_element(element)
    position = _position(element)
    _expect_end(element)
    if exists_allowed and draft.find(column.definition.name) is not None:
        draft.found.append(column.definition.name)
        return
    draft.add_column(column.definition, position)
    add_column_keys(draft, column)


def _add_key(clause: Cursor, draft: TableDraft) -> None:
    index = add_index_element(draft, clause)
    if index is not None:
        draft.add_index(index)


def _position(cursor: Cursor) -> Position | None:
    if cursor.accept("FIRST"):
        return Position()
    return Position(cursor.identifier()) if cursor.accept("AFTER") else None


def _expect_end(clause: Cursor) -> None:
    if not clause.is_done:
        raise clause.unexpected("the end of the column's definition")


def _drop(clause: Cursor, draft: TableDraft) -> None:
    if clause.accept("PRIMARY", "KEY"):
        draft.drop_primary_key()
    elif clause.accept("INDEX") or clause.accept("KEY"):
        missing_allowed = clause.accept("IF", "EXISTS")
        name = clause.identifier()
        if not missing_allowed or draft.has_index(name):
            draft.drop_index(name)
    elif clause.accept("FOREIGN") or clause.accept("CHECK") or clause.accept("CONSTRAINT"):
        clause.skip_to_comma()
    else:
        clause.accept("COLUMN")
        missing_allowed = clause.accept("IF", "EXISTS")
        name = clause.identifier()
        if not missing_allowed or draft.find(name) is not None:
            draft.drop_column(name)


def _modify(clause: Cursor, draft: TableDraft) -> None:
    clause.accept("COLUMN")
    missing_allowed = clause.accept("IF", "EXISTS")
    old = clause.identifier()
    _redefine(clause, draft, old, None, missing_allowed=missing_allowed)


def _change(clause: Cursor, draft: TableDraft) -> None:
    clause.accept("COLUMN")
    missing_allowed = clause.accept("IF", "EXISTS")
    old = clause.identifier()
    _redefine(clause, draft, old, clause.identifier(), missing_allowed=missing_allowed)


def _redefine(clause: Cursor, draft: TableDraft, old: str, new: str | None, *, missing_allowed: bool) -> None:
    column = draft.find(old)
    if column is None and missing_allowed:
        return
    name = new or (column.definition.name if column else old)
    parsed: ParsedColumn = parse_column(clause, name)
    position = _position(clause)
    _expect_end(clause)
    draft.modify_column(old, parsed.definition, position)
    add_column_keys(draft, parsed)


def _rename(clause: Cursor, draft: TableDraft) -> None:
    kind = clause.take().text.upper()
    old = clause.identifier()
    clause.expect("TO")
    if kind == "COLUMN":
        draft.rename_column(old, clause.identifier())
    else:
        draft.rename_index(old, clause.identifier())


def _alter(clause: Cursor, draft: TableDraft) -> None:
    if clause.accept_any("INDEX", "CHECK", "CONSTRAINT"):
        # Visibility and enforcement: neither rows nor keys change.
        clause.skip_to_comma()
        return
    clause.accept("COLUMN")
    name = clause.identifier()
    if clause.accept("DROP", "DEFAULT"):
        draft.set_default(name, None)
    else:
        clause.expect("SET", "DEFAULT")
        draft.set_default(name, parse_default(clause))


def _convert(clause: Cursor) -> None:
    clause.expect("TO")
    charset = parse_charset(clause)
    if charset == "binary":
        raise clause.unexpected("a character set other than binary")
    clause.skip_to_comma()


def _set(clause: Cursor) -> None:
    clause.accept("HYPO")
    clause.expect("TIFLASH")
    clause.skip_to_comma()


def _remove(clause: Cursor) -> None:
    clause.expect("TTL")


def _harmless(clause: Cursor) -> None:
    """Take table options; several may stand in one clause, without commas."""
    while not clause.is_done:
        clause.accept("DEFAULT")
        if parse_charset(clause):
            continue
        if clause.peek().text.upper() not in _HARMLESS:
            raise clause.unexpected("a clause that can be translated")
        clause.take()
        clause.accept("=")
        _skip_value(clause)


def _skip_value(clause: Cursor) -> None:
    while not (clause.is_done or _is_option(clause)):
        clause.take()


def _is_option(clause: Cursor) -> bool:
    word = clause.peek()
    return word.kind == "word" and word.text.upper() in (*_HARMLESS, "DEFAULT", "CHARSET", "CHARACTER")


_CHANGES: Final[dict[str, Callable[[Cursor, TableDraft], None]]] = {
    "ADD": _add,
    "DROP": _drop,
    "MODIFY": _modify,
    "CHANGE": _change,
    "RENAME": _rename,
    "ALTER": _alter,
}
_WITHOUT_EFFECT: Final[dict[str, Callable[[Cursor], None]]] = {"CONVERT": _convert, "SET": _set, "REMOVE": _remove}
