"""What MySQL, MariaDB and TiDB say about their tables: read from information_schema, never inferred from rows.

The servers differ in what information_schema has; a column that one of them lacks is looked for, not derived from a version.
Errors of the database come out as SQLAlchemy's: the sink classifies them in one place.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import groupby
from typing import Any, Final

from sqlalchemy import Connection, TableClause, bindparam, exists, literal, quoted_name, select, text
from sqlalchemy import table as sql_table

from applier.model.errors import NeedsOperator
from applier.model.events import FoldedName, TableName
from applier.planner.catalogue import ColumnDescription, TableDescription
from applier.planner.table_check import UniqueIndex

_SCHEMAS: Final = text("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
_TABLES: Final = text("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = :schema")
_FEW_TABLES: Final = text(f"{_TABLES.text} AND LOWER(TABLE_NAME) IN :names").bindparams(bindparam("names", expanding=True))
FEW: Final = 50
"""So many names are asked for one by one: a schema may have ten thousand, and each DDL asks for a few."""
# Equality with constants: MariaDB opens every table of the server otherwise. And it shows binary literals as they are: no text.
_COLUMNS: Final = text(
    "SELECT COLUMN_NAME, COLUMN_TYPE, DATA_TYPE, IS_NULLABLE, CAST(COLUMN_DEFAULT AS BINARY) AS COLUMN_DEFAULT, EXTRA,"
    " CAST(GENERATION_EXPRESSION AS BINARY) AS GENERATION_EXPRESSION, CHARACTER_SET_NAME"
    " FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :table ORDER BY ORDINAL_POSITION"
)
# All columns: EXPRESSION and IS_VISIBLE exist in MySQL 8 and TiDB, IGNORED in MariaDB.
_INDEXES: Final = text(
    "SELECT * FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = :schema AND TABLE_NAME = :table AND NON_UNIQUE = 0"
    " ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX"
)
_BLOBS: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_LABEL: Final = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_LABEL_ESCAPE: Final = re.compile(r"''|\\(.)", re.DOTALL)
_CONTROL: Final = {"0": "\0", "n": "\n", "r": "\r"}


def describe(connection: Connection, tables: Collection[TableName]) -> dict[FoldedName, TableDescription]:
    """Describe the tables; missing ones are left out. NeedsOperator: the server has several tables of one folded name."""
    return {folded: _describe(connection, actual) for folded, actual in spellings(connection, tables).items()}


def has_rows(connection: Connection, table: TableName) -> bool:
    """Tell whether the table exists and holds a row."""
    actual = spellings(connection, [table]).get(table.fold())
    return actual is not None and holds_row(connection, actual)


def holds_row(connection: Connection, actual: TableName) -> bool:
    """Tell whether an existing table, as the server spells it, holds a row."""
    return bool(connection.scalar(select(exists(select(literal(1)).select_from(sql_name(actual))))))


def sql_name(actual: TableName) -> TableClause:
    """Return the table's quoted name, for SQLAlchemy's statements."""
    return sql_table(quoted_name(actual.table, quote=True), schema=quoted_name(actual.schema, quote=True))


def spellings(connection: Connection, tables: Collection[TableName]) -> dict[FoldedName, TableName]:
    """Find the tables without regard to case; return how the server spells those that exist."""
    found: dict[FoldedName, TableName] = {}
    schemas = _folded(connection.scalars(_SCHEMAS)) if tables else {}
    for folded_schema, group in groupby(sorted(tables, key=lambda name: name.schema.casefold()), key=lambda name: name.schema.casefold()):
        wanted = list(group)
        schema = _one_of(schemas.get(folded_schema, []), wanted[0].schema)
        names = {} if schema is None else _present(connection, schema, {name.table.casefold() for name in wanted})
        for name in wanted:
            table = _one_of(names.get(name.table.casefold(), []), name.table)
            if schema is not None and table is not None:
                found[name.fold()] = TableName(schema, table)
    return found


def namesakes(connection: Connection, names: Collection[TableName]) -> dict[FoldedName, list[TableName]]:
    """Find tables, and their schemas (as table ''), without regard to case; return all that there are of each name."""
    found: dict[FoldedName, list[TableName]] = {}
    schemas = _folded(connection.scalars(_SCHEMAS)) if names else {}
    for folded_schema in {name.schema.casefold() for name in names} & schemas.keys():
        found[FoldedName(folded_schema, "")] = [TableName(schema, "") for schema in schemas[folded_schema]]
        wanted = {name.table.casefold() for name in names if name.table and name.schema.casefold() == folded_schema}
        for schema in schemas[folded_schema] if wanted else ():
            present = _present(connection, schema, wanted)
            for table in wanted & present.keys():
                found.setdefault(FoldedName(folded_schema, table), []).extend(TableName(schema, spelling) for spelling in present[table])
    return found


def schema_spelling(connection: Connection, schema: str) -> str | None:
    """Return how the server spells a schema, None if it has none of that name."""
    return _one_of(_folded(connection.scalars(_SCHEMAS)).get(schema.casefold(), []), schema)


def _present(connection: Connection, schema: str, wanted: set[str]) -> dict[str, list[str]]:
    """Return the tables of a schema by casefolded name: the wanted ones, and others where there are many, or servers fold otherwise."""
    if len(wanted) > FEW or not all(map(str.isascii, wanted)):
        return _folded(connection.scalars(_TABLES, {"schema": schema}))
    return _folded(connection.scalars(_FEW_TABLES, {"schema": schema, "names": sorted(wanted)})) if wanted else {}


def _folded(names: Iterable[str]) -> dict[str, list[str]]:
    folded: dict[str, list[str]] = {}
    for name in names:
        folded.setdefault(name.casefold(), []).append(name)
    return folded


def _one_of(candidates: list[str], wanted: str) -> str | None:
    if len(candidates) <= 1 or wanted in candidates:
        return wanted if wanted in candidates else next(iter(candidates), None)
    raise NeedsOperator(
        "the sink has names that differ only in case, and none is spelled as upstream spells it",
        remedy="Drop or rename the ones that are not upstream's",
        wanted=wanted,
        found=",".join(sorted(candidates)),
    )


def _describe(connection: Connection, actual: TableName) -> TableDescription:
    place = {"schema": actual.schema, "table": actual.table}
    columns = tuple(_column(dict(row)) for row in connection.execute(_COLUMNS, place).mappings())
    nullable = {column.name for column in columns if column.nullable}
    keys: dict[str, tuple[str, ...]] = {}
    unique: list[UniqueIndex] = []
    indexes = [{name.upper(): value for name, value in row.items()} for row in connection.execute(_INDEXES, place).mappings()]
    for name, parts in groupby(indexes, key=lambda part: str(part["INDEX_NAME"])):
        members = list(parts)
        unique.append(UniqueIndex(name, tuple(part["COLUMN_NAME"] for part in members if part["COLUMN_NAME"] is not None)))
        if all(map(_is_plain, members)) and not nullable.intersection(part["COLUMN_NAME"] for part in members):
            keys[name] = tuple(part["COLUMN_NAME"] for part in members)
    return TableDescription(
        schema=actual.schema,
        table=actual.table,
        columns=columns,
        unique_keys=tuple(keys.values()),
        primary_key=keys.get("PRIMARY", ()),
        unique_indexes=tuple(unique),
    )


def _is_plain(part: Mapping[str, Any]) -> bool:
    """Tell whether an index part is a whole column of an index that the optimizer uses."""
    hidden = part.get("IS_VISIBLE") == "NO" or part.get("IGNORED") == "YES"
    return part["COLUMN_NAME"] is not None and part["SUB_PART"] is None and part.get("EXPRESSION") is None and not hidden


def _column(row: Mapping[str, Any]) -> ColumnDescription:
    data_type, column_type = str(row["DATA_TYPE"]).casefold(), str(row["COLUMN_TYPE"])
    extra = str(row["EXTRA"]).upper()
    return ColumnDescription(
        name=row["COLUMN_NAME"],
        sql_type=column_type,
        nullable=row["IS_NULLABLE"] == "YES",
        # DEFAULT_GENERATED is MySQL 8's word for a default that is an expression: such a column is written.
        generated="VIRTUAL GENERATED" in extra or "STORED GENERATED" in extra or bool(row["GENERATION_EXPRESSION"]),
        # MariaDB spells the default of a nullable column 'NULL'.
        has_default=row["COLUMN_DEFAULT"] not in {None, b"NULL"} or "AUTO_INCREMENT" in extra,
        # TiDB names the charset of some binary columns; the other servers turn such columns into BINARY and BLOB types.
        binary=data_type in _BLOBS or (row["CHARACTER_SET_NAME"] == "binary" and ("char" in data_type or "text" in data_type)),
        labels=labels_of(column_type) if data_type in {"enum", "set"} else (),
        is_set=data_type == "set",
    )


def labels_of(column_type: str) -> tuple[str, ...]:
    """Read the elements of ``enum('a','it''s')`` or ``set(…)`` as information_schema spells them."""
    return tuple(_LABEL_ESCAPE.sub(_unescaped, match.group(1)) for match in _LABEL.finditer(column_type))


def _unescaped(match: re.Match[str]) -> str:
    escaped = match.group(1)
    return "'" if escaped is None else _CONTROL.get(escaped, escaped)
