"""Reads CREATE TABLE, and the index elements that it shares with ALTER TABLE and CREATE INDEX."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from applier.model.events import TableName
from applier.sinks.sqlite.column_parser import ParsedColumn, parse_charset, parse_column, parse_index_parts, skip_references, with_charset
from applier.sinks.sqlite.definition import IndexDefinition, IndexPart, TableDefinition
from applier.sinks.sqlite.draft import TableDraft
from applier.sinks.sqlite.tokens import Cursor

_ELEMENTS: Final = ("PRIMARY", "UNIQUE", "INDEX", "KEY", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR", "CONSTRAINT", "FOREIGN", "CHECK")
_CHARSET_WORDS: Final = frozenset({"CHARACTER", "CHARSET", "COLLATE", "BYTE"})


def parse_name(cursor: Cursor, schema: str) -> TableName:
    """Read a table's name; without a schema it is in ``schema``."""
    first = cursor.identifier()
    return TableName(first, cursor.identifier()) if cursor.accept(".") else TableName(schema, first)


def parse_create_table(cursor: Cursor, name: TableName) -> TableDefinition:
    """Read CREATE TABLE behind the table's name: the elements, then options, which are read first for the character set."""
    elements = cursor.parenthesis()
    charset = _table_charset(cursor)
    columns: list[ParsedColumn] = []
    indexes: list[Cursor] = []
    for element in split_elements(elements):
        if is_index_element(element):
            indexes.append(element)
        else:
            columns.append(parse_column_element(element, charset))
    draft = TableDraft(TableDefinition(name=name, columns=tuple(column.definition for column in columns)))
    _add_indexes(draft, indexes)
    for column in columns:
        add_column_keys(draft, column)
    return draft.freeze()


def parse_column_element(cursor: Cursor, charset: str = "") -> ParsedColumn:
    """Read a name and its definition; ``charset`` is the table's, for a column that names none."""
    name = cursor.identifier()
    words = {word.text.upper() for word in cursor.rest if word.kind == "word"}
    column = parse_column(cursor, name)
    if not charset or words & _CHARSET_WORDS:
        return column
    definition = column.definition
    return replace(column, definition=replace(definition, type=with_charset(definition.type, charset)))


def add_column_keys(draft: TableDraft, column: ParsedColumn) -> None:
    """Add the keys that stand inside a column's definition."""
    part = (IndexPart(column.definition.name),)
    if column.is_primary:
        draft.add_primary_key(part)
    if column.is_unique:
        draft.add_index(IndexDefinition("", part, unique=True))


def split_elements(cursor: Cursor) -> Iterator[Cursor]:
    """Cut at the commas of this level."""
    while not cursor.is_done:
        yield cursor.until_comma()
        cursor.accept(",")


def is_index_element(element: Cursor) -> bool:
    """Tell whether an element begins with a word that makes it a key or constraint (a column of such a name is quoted)."""
    return any(element.sees(word) for word in _ELEMENTS) and element.peek().kind == "word"


def _table_charset(cursor: Cursor) -> str:
    """Read the table's options for the character set; all others change no value."""
    found = ""
    while not cursor.is_done:
        if cursor.sees("AS") or cursor.sees("SELECT"):
            raise cursor.unexpected("no query (CREATE TABLE … AS SELECT)")
        if cursor.sees("PARTITION"):
            break
        if not (charset := parse_charset(cursor)):
            cursor.take()
        found = charset or found
    return found


def _add_indexes(draft: TableDraft, elements: list[Cursor]) -> None:
    """Add named indexes before anonymous ones, which must not take their names (TiDB, checkConstraintNames)."""
    anonymous: list[IndexDefinition] = []
    for element in elements:
        index = add_index_element(draft, element)
        if index is not None:
            anonymous.append(index)
    for index in anonymous:
        draft.add_index(index)


def add_index_element(draft: TableDraft, cursor: Cursor) -> IndexDefinition | None:
    """Add what an element declares; an index without a name is returned instead, for the caller to add. Checks are upstream's."""
    constraint = ""
    if cursor.accept("CONSTRAINT") and not any(cursor.sees(word) for word in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK")):
        constraint = cursor.identifier()
    if cursor.accept("CHECK"):
        return None
    if cursor.accept("PRIMARY", "KEY"):
        _index_name(cursor)
        draft.add_primary_key(parse_index_parts(cursor))
        return None
    if cursor.accept("FOREIGN", "KEY"):
        _add_foreign_key(draft, cursor, constraint)
        return None
    index = parse_index(cursor, constraint)
    if not index.name:
        return index
    draft.add_index(index)
    return None


def parse_index(cursor: Cursor, constraint: str = "") -> IndexDefinition:
    """Read ``[UNIQUE|FULLTEXT|…] [INDEX|KEY] [name] (parts) options``."""
    kind = cursor.accept_any("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "COLUMNAR")
    cursor.accept_any("INDEX", "KEY")
    cursor.accept("IF", "NOT", "EXISTS")
    name = _index_name(cursor) or constraint
    parts = _vector_parts(cursor) if kind in ("VECTOR", "COLUMNAR") else parse_index_parts(cursor)
    if any(word.text.upper() == "WHERE" for word in cursor.rest if word.kind == "word"):
        raise cursor.unexpected("an index without a condition")
    return IndexDefinition(name, parts, unique=kind == "UNIQUE")


def _index_name(cursor: Cursor) -> str:
    name = "" if cursor.sees("(") or cursor.sees("USING") or cursor.sees("TYPE") else cursor.identifier()
    if cursor.accept_any("USING", "TYPE"):
        cursor.take()
    return name


def _vector_parts(cursor: Cursor) -> tuple[IndexPart, ...]:
    """Take the column out of ``((VEC_COSINE_DISTANCE(`c`)))``: the index only has to exist for a later DROP."""
    inside = cursor.parenthesis()
    names = [word.text for word in inside.rest if word.kind == "name"]
    if len(names) != 1:
        raise inside.unexpected("one column")
    return (IndexPart(names[0]),)


def _add_foreign_key(draft: TableDraft, cursor: Cursor, constraint: str) -> None:
    """Add the index that TiDB makes for a foreign key if none begins with its columns; the key itself is checked upstream."""
    cursor.accept("IF", "NOT", "EXISTS")
    name = _index_name(cursor)
    parts = parse_index_parts(cursor)
    cursor.expect("REFERENCES")
    skip_references(cursor)
    if not draft.covers(tuple(part.column for part in parts)) and (constraint or name):
        draft.add_index(IndexDefinition(constraint or name, parts))
