"""Reads the file's own schema: which tables there are, and what MySQL knows of them (the comments that ``create_statement.py`` writes).

Tables that the applier did not create (no comments) can be written to and described, but not altered: their MySQL types are unknown.
Names are compared without regard to case, as TiDB does; SQLite alone would do so for ASCII only.

Every table of the file has transactions. Foreign keys do nothing: each session of the applier sets ``PRAGMA foreign_keys = OFF``. The file
keeps every index, so upstream's names for unnamed indexes are written into each DDL before it is translated.
"""

import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from sqlalchemy import Connection

from applier.ddl import parse_ddl
from applier.ddl.adaptation import UPSTREAM
from applier.ddl.column_type import TypeFamily
from applier.ddl.generated import Known, KnownColumn, unportable_columns
from applier.ddl.generated_name import MYSQL_NAMING, TIDB_NAMING, TableNames, with_generated_names
from applier.ddl.stated_keys import depends_on_names
from applier.ddl.table_draft import (
    PRIMARY,
    ColumnDefinition,
    DefaultKind,
    IndexDefinition,
    IndexPart,
    TableDefinition,
    parse_mysql_definition,
    parse_mysql_parts,
)
from applier.ddl.tokens import DdlSyntaxError
from applier.model.errors import NeedsOperator, Remedy
from applier.model.events import DdlEvent, FoldedName, TableName
from applier.planner.port import ColumnDescription, TableDescription
from applier.planner.table_check import FoldingColumn, SinkTable, UniqueIndex
from applier.sinks.bookkeeping.ledger import PastDdls
from applier.sinks.sqlite.create_statement import MARK
from applier.sinks.sqlite.literal_value import blob, literal_default, plain
from applier.sinks.sqlite.names import compose, quote, table_name, upstream_index
from applier.sinks.sqlite.session import raw
from applier.sinks.sqlite.stored_value import Inexact

FOREIGN: Final = "sqlite "
"""Begins the ``sql_type`` of a column of a table that the applier did not make: affinity, then the declared type."""

UNKNOWN: Final = "?"
"""Represents the expression of a generated column that the applier did not make."""
_STORED: Final = 3
"""``hidden`` of a STORED generated column (sqlite.org/pragma.html, table_xinfo); 2: VIRTUAL."""

_PIECES: Final = re.compile(r'"(?P<name>(?:[^"]|"")*)"|\'(?:[^\']|\'\')*\'|/\*:(?P<mark>.*?)\*/|/\*.*?\*/|(?P<sign>[(),])', re.DOTALL)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A table or view of the file that represents one of upstream."""

    stored: str
    name: TableName
    is_view: bool
    sql: str


def find_objects(connection: sqlite3.Connection) -> dict[FoldedName, StoredObject]:
    """Return all tables and views of upstream by their identity."""
    rows = connection.execute("SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view')")
    found = (StoredObject(stored, name, kind == "view", sql) for stored, kind, sql in rows if (name := table_name(stored)) is not None)
    return {entry.name.fold(): entry for entry in found}


def tables_with_rows(connection: sqlite3.Connection, names: Collection[TableName]) -> frozenset[FoldedName]:
    """Return which of the tables exist and hold a row."""
    objects = find_objects(connection) if names else {}
    present = {name.fold(): objects[name.fold()] for name in names if name.fold() in objects}
    return frozenset(folded for folded, entry in present.items() if not entry.is_view and _holds_row(connection, entry))


def _holds_row(connection: sqlite3.Connection, entry: StoredObject) -> bool:
    query = compose("SELECT EXISTS (SELECT 1 FROM {table})", table=quote(entry.stored))
    return bool(connection.execute(query).fetchone()[0])


def read_definition(connection: sqlite3.Connection, entry: StoredObject) -> TableDefinition | None:
    """Read what MySQL knows of a table; None if the applier did not make it, or not all of its columns."""
    marks = dict(_column_marks(entry.sql))
    info = _table_info(connection, entry.stored)
    if any(column.name not in marks for column in info):
        return None
    try:
        columns = tuple(parse_mysql_definition(column.name, marks[column.name]) for column in info)
        indexes = list(_indexes(connection, entry))
    except DdlSyntaxError as error:
        raise NeedsOperator(
            f"the MySQL definition that the file stores for a table cannot be read: {error}",
            remedy=Remedy(
                "sqlite.restore-type-comments",
                "Restore the /*: … */ comments in the table's CREATE statements (sqlite_master) from a backup, and start again",
            ),
            table=str(entry.name),
        ) from error
    key = tuple(IndexPart(name) for name in _key_columns(info))
    primary = next((index.parts for index in indexes if index.name == PRIMARY), key)
    return TableDefinition(
        name=entry.name, columns=columns, primary_key=primary, indexes=tuple(index for index in indexes if index.name != PRIMARY)
    )


def known_columns(connection: sqlite3.Connection, entry: StoredObject) -> Known:
    """Return the columns of a table, including computed ones. The expression of a column that was made by hand is not known."""
    definition, indexed = read_definition(connection, entry), _indexed_columns(connection, entry.stored)
    columns = {} if definition is None else {column.name: column for column in definition.columns}
    known = {}
    for info in _table_info(connection, entry.stored):
        column = columns.get(info.name)
        known[info.name.casefold()] = KnownColumn(
            type=None if column is None else column.type,
            expression=(column.generated if column is not None else UNKNOWN) if info.is_generated else "",
            is_stored=info.is_stored,
            is_indexed=info.name in indexed,
        )
    return known


def _indexed_columns(connection: sqlite3.Connection, stored: str) -> frozenset[str]:
    rows = connection.execute("SELECT x.name FROM pragma_index_list(?) AS l, pragma_index_xinfo(l.name) AS x WHERE x.key", (stored,))
    return frozenset(name for (name,) in rows if name is not None)


def _column_marks(sql: str) -> Iterator[tuple[str, str]]:
    """Yield (column, MySQL definition) from the text of CREATE TABLE, whose comments SQLite keeps through every ALTER."""
    # Comments live in the text of the table only: SQLite stores no facts about a column elsewhere, and a table beside it would not follow
    # an ALTER that someone runs by hand.
    depth, column = 0, ""
    expects_column = False
    for piece in _PIECES.finditer(sql):
        sign, name, mark = piece["sign"], piece["name"], piece["mark"]
        if sign is not None:
            depth += (sign == "(") - (sign == ")")
            expects_column = depth == 1 and sign in "(,"
        elif name is not None and expects_column:
            column, expects_column = name.replace('""', '"'), False
        elif mark is not None and depth >= 1:
            yield column, mark.strip()


@dataclass(frozen=True, slots=True)
class _ColumnInfo:
    name: str
    declared: str
    not_null: bool
    default: str | None
    key_position: int
    is_generated: bool
    is_stored: bool
    """Of a generated column."""


def _table_info(connection: sqlite3.Connection, stored: str) -> list[_ColumnInfo]:
    rows = connection.execute(
        'SELECT name, type, "notnull", dflt_value, pk, hidden FROM pragma_table_xinfo(?) WHERE hidden <> 1', (stored,)
    )
    return [
        _ColumnInfo(name, declared, bool(strict), default, key, hidden > 1, hidden == _STORED)
        for name, declared, strict, default, key, hidden in rows
    ]


def _key_columns(info: list[_ColumnInfo]) -> tuple[str, ...]:
    return tuple(column.name for column in sorted(info, key=lambda c: c.key_position) if column.key_position)


def _indexes(connection: sqlite3.Connection, entry: StoredObject) -> Iterator[IndexDefinition]:
    """Read the indexes made by CREATE INDEX, in the order in which they were made."""
    rows = connection.execute(
        "SELECT l.name, l.\"unique\", m.sql FROM pragma_index_list(?) AS l JOIN sqlite_master AS m ON m.type = 'index' AND m.name = l.name "
        "WHERE l.origin = 'c' ORDER BY m.rowid",
        (entry.stored,),
    )
    for stored, unique, sql in rows.fetchall():
        mark = next((piece["mark"] for piece in _PIECES.finditer(sql) if piece["mark"] is not None), None)
        parts = parse_mysql_parts(mark.strip()) if mark is not None and MARK in sql else _plain_parts(connection, stored)
        yield IndexDefinition(upstream_index(stored), parts, unique=bool(unique))


def _plain_parts(connection: sqlite3.Connection, stored: str) -> tuple[IndexPart, ...]:
    rows = connection.execute("SELECT name FROM pragma_index_info(?) ORDER BY seqno", (stored,))
    return tuple(IndexPart(name or "", 0, "" if name else "?") for (name,) in rows)


# --- description for the planner ----------------------------------------------------------------------------------------


def describe(connection: sqlite3.Connection, tables: Collection[TableName]) -> dict[FoldedName, TableDescription]:
    """Describe the tables that exist; views and missing ones are skipped."""
    objects = find_objects(connection)
    wanted = [objects[name.fold()] for name in tables if name.fold() in objects]
    return {entry.name.fold(): _describe(connection, entry) for entry in wanted if not entry.is_view}


def _describe(connection: sqlite3.Connection, entry: StoredObject) -> TableDescription:
    definition = read_definition(connection, entry)
    info = _table_info(connection, entry.stored)
    if definition is None:  # not created by the applier, or with a column that was added by hand
        columns = tuple(_foreign_column(column) for column in info)
        # No one knows what upstream's expression would be.
        columns = tuple(replace(column, computes_otherwise=column.generated) for column in columns)
    else:
        computed = {column.name for column in info if column.is_generated}
        columns = tuple(_column(column, is_computed=column.name in computed) for column in definition.columns)
    nullable = {column.name.casefold() for column in columns if column.nullable}
    keys = [key for key in _unique_keys(connection, entry.stored) if not nullable.intersection(name.casefold() for name in key)]
    primary = _key_columns(info)
    return TableDescription(
        schema=entry.name.schema,
        table=entry.name.table,
        columns=columns,
        unique_keys=tuple(dict.fromkeys([primary, *keys] if primary else keys)),
        primary_key=primary,
        unique_indexes=_unique_indexes(connection, entry.stored, primary),
    )


def _column(column: ColumnDefinition, *, is_computed: bool) -> ColumnDescription:
    return ColumnDescription(
        name=column.name,
        sql_type=str(column.type),
        nullable=column.nullable,
        generated=is_computed,
        has_default=column.default is not None,
        default=_default(column),
        binary=column.type.family is TypeFamily.BINARY,
        labels=column.type.labels,
        is_set=column.type.family is TypeFamily.SET,
    )


def _default(column: ColumnDefinition) -> str | None:
    """Return the literal of a default. An expression, the present time too, does not have one: only upstream knows its values."""
    if column.default is None:
        return "NULL" if column.nullable else None
    if column.default.kind is not DefaultKind.LITERAL:
        return None
    try:
        value = literal_default(column.type, column.default.text)
    except Inexact:
        return None
    return blob(value) if isinstance(value, bytes) else plain(value)


def _foreign_default(column: "_ColumnInfo") -> str | None:
    if column.default is None:
        return None if column.not_null or column.key_position else "NULL"
    return f"({column.default})"


def _foreign_column(column: _ColumnInfo) -> ColumnDescription:
    affinity = affinity_of(column.declared)
    return ColumnDescription(
        name=column.name,
        sql_type=f"{FOREIGN}{affinity} {column.declared}".rstrip(),
        nullable=not column.not_null and not column.key_position,
        generated=column.is_generated,
        has_default=column.default is not None,
        default=_foreign_default(column),
        binary=affinity == "BLOB" and "BLOB" in column.declared.upper(),
    )


def affinity_of(declared: str) -> str:
    """Return the affinity of a declared type (sqlite.org/datatype3.html, 3.1)."""
    upper = declared.upper()
    if "INT" in upper:
        return "INTEGER"
    if any(word in upper for word in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if not upper or "BLOB" in upper or upper == "ANY":
        return "BLOB"
    return "REAL" if any(word in upper for word in ("REAL", "FLOA", "DOUB")) else "NUMERIC"


def _unique_indexes(connection: sqlite3.Connection, stored: str, primary: tuple[str, ...]) -> tuple[UniqueIndex, ...]:
    """Return the unique indexes, partial ones too. The key that is the rowid does not have one of its own."""
    rows = connection.execute('SELECT name, origin FROM pragma_index_list(?) WHERE "unique"', (stored,)).fetchall()
    own = tuple(
        UniqueIndex(upstream_index(name), tuple(part.column for part in _plain_parts(connection, name) if part.column))
        for name, origin in rows
        if origin != "pk"
    )
    return (UniqueIndex(PRIMARY, primary), *own) if primary else own


def _unique_keys(connection: sqlite3.Connection, stored: str) -> list[tuple[str, ...]]:
    """Return the columns of the unique indexes that have no prefixes, expressions or conditions."""
    names = connection.execute(
        'SELECT name FROM pragma_index_list(?) WHERE "unique" AND NOT partial ORDER BY seq DESC', (stored,)
    ).fetchall()
    keys = [tuple(part.column for part in _plain_parts(connection, name)) for (name,) in names]
    return [key for key in keys if all(key)]


_TRIGGERS: Final = "SELECT tbl_name, name FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
_FOLDING: Final = (
    "SELECT DISTINCT x.name, x.coll FROM pragma_index_list(?) AS l, pragma_index_xinfo(l.name) AS x "
    "WHERE l.\"unique\" AND x.key AND x.name IS NOT NULL AND upper(x.coll) <> 'BINARY'"
)


def examine(connection: sqlite3.Connection, tables: Collection[TableName]) -> dict[FoldedName, SinkTable]:
    """Examine the tables that exist, and the views that bear their names."""
    objects = find_objects(connection)
    triggers: dict[str, list[str]] = {}
    for table, trigger in connection.execute(_TRIGGERS):
        triggers.setdefault(table.casefold(), []).append(trigger)
    found = [objects[name.fold()] for name in tables if name.fold() in objects]
    return {entry.name.fold(): _examined(connection, entry, triggers.get(entry.stored.casefold(), [])) for entry in found}


def _examined(connection: sqlite3.Connection, entry: StoredObject, triggers: list[str]) -> SinkTable:
    if entry.is_view:
        return SinkTable(name=entry.name, kind="VIEW")
    folding = tuple(FoldingColumn(*row) for row in connection.execute(_FOLDING, (entry.stored,)))
    unportable = tuple(unportable_columns(known_columns(connection, entry)))
    return SinkTable(name=entry.name, engine="SQLite", triggers=tuple(triggers), folding=folding, unportable=unportable)


def with_upstream_names(connection: Connection, past: PastDdls, ddl: DdlEvent) -> DdlEvent:
    """Return the DDL with upstream's names in its text."""
    naming, before = MYSQL_NAMING if ddl.is_of_log else TIDB_NAMING, TableNames()
    statement = parse_ddl(ddl)
    if statement is not None and statement.needs and depends_on_names(ddl.query):
        name = statement.needs[0].fold()
        entry = find_objects(raw(connection)).get(name)
        definition = None if entry is None else read_definition(raw(connection), entry)
        history = past.history(connection, name, ddl.commit_ts, (UPSTREAM, naming))
        before = TableNames({} if definition is None else _index_columns(definition), history.foreign_keys)
    return replace(ddl, query=with_generated_names(ddl.query, before, naming))


def _index_columns(table: TableDefinition) -> dict[str, tuple[str, ...]]:
    indexes = {index.name: index.parts for index in table.indexes} | {PRIMARY: table.primary_key}
    return {name.casefold(): _columns(parts) for name, parts in indexes.items()}


def _columns(parts: Sequence[IndexPart]) -> tuple[str, ...]:
    return tuple(part.column.casefold() for part in takewhile(lambda part: part.column and not part.prefix, parts))
