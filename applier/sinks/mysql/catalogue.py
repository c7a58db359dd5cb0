"""What the planner and the writer know of the sink's tables: columns, unique keys, whether there are rows. Never inferred from rows.

The servers differ in what information_schema has; a column that one of them lacks is looked for, not derived from a version.
Errors of the database come out as SQLAlchemy's: the sink classifies them in one place.
"""

import re
from collections.abc import Collection, Mapping
from itertools import groupby
from typing import Any, Final

from sqlalchemy import Connection, exists, literal, select, union_all

from applier.model.events import FoldedName, TableName
from applier.mysql.information_schema import FEW, CatalogueView, Row, read_view
from applier.mysql.names import spellings, sql_name
from applier.planner.catalogue import ColumnDescription, TableDescription
from applier.planner.table_check import UniqueIndex
from applier.sinks.mysql.structure.generated import names_computed_otherwise

_COLUMNS: Final = CatalogueView(
    "information_schema.COLUMNS",
    columns="TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION, COLUMN_NAME, COLUMN_TYPE, DATA_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA,"
    " GENERATION_EXPRESSION, CHARACTER_SET_NAME, COLLATION_NAME, COLUMN_COMMENT",
)
# All columns: EXPRESSION and IS_VISIBLE exist in MySQL 8 and TiDB, IGNORED in MariaDB.
_UNIQUE_INDEXES: Final = CatalogueView("information_schema.STATISTICS", condition="NON_UNIQUE = 0")
_BLOBS: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_LABEL: Final = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_LABEL_ESCAPE: Final = re.compile(r"''|\\(.)", re.DOTALL)
_CONTROL: Final = {"0": "\0", "n": "\n", "r": "\r"}


def describe(connection: Connection, tables: Collection[TableName]) -> dict[FoldedName, TableDescription]:
    """Describe the tables, in as many statements for thousands as for one; missing ones are left out.

    NeedsOperator: the server has several tables of one folded name, and none is spelled as upstream's.
    """
    actual = spellings(connection, tables)
    wanted = set(actual.values())
    columns, indexes = (read_view(connection, view, wanted) for view in (_COLUMNS, _UNIQUE_INDEXES))
    return {folded: _description(name, columns[name], indexes[name]) for folded, name in actual.items()}


def tables_with_rows(connection: Connection, tables: Collection[TableName]) -> frozenset[FoldedName]:
    """Return those of the tables that exist and hold a row, in a statement for each fifty of them."""
    actual = list(spellings(connection, tables).items())
    found: set[FoldedName] = set()
    for block in (actual[start : start + FEW] for start in range(0, len(actual), FEW)):
        looks = (select(literal(at), exists(select(literal(1)).select_from(sql_name(name)))) for at, (_, name) in enumerate(block))
        found.update(block[at][0] for at, is_filled in connection.execute(union_all(*looks)) if is_filled)
    return frozenset(found)


def holds_row(connection: Connection, actual: TableName) -> bool:
    """Return whether an existing table, as the server spells it, holds a row."""
    return bool(connection.scalar(select(exists(select(literal(1)).select_from(sql_name(actual))))))


def _description(actual: TableName, columns: list[Row], index_parts: list[Row]) -> TableDescription:
    otherwise = names_computed_otherwise(columns)
    described = tuple(_column(row, otherwise) for row in sorted(columns, key=lambda row: int(row["ORDINAL_POSITION"])))
    nullable = {column.name for column in described if column.nullable}
    keys: dict[str, tuple[str, ...]] = {}
    unique: list[UniqueIndex] = []
    # The primary key first: the planner takes the first key that fits.
    ordered = sorted(index_parts, key=lambda row: (row["INDEX_NAME"] != "PRIMARY", row["INDEX_NAME"].casefold(), int(row["SEQ_IN_INDEX"])))
    for name, parts in groupby(ordered, key=lambda part: str(part["INDEX_NAME"])):
        members = list(parts)
        unique.append(UniqueIndex(name, tuple(part["COLUMN_NAME"] for part in members if part["COLUMN_NAME"] is not None)))
        # A nullable column makes no key: a unique index allows many rows with NULL.
        if all(map(_is_plain, members)) and not nullable.intersection(part["COLUMN_NAME"] for part in members):
            keys[name] = tuple(part["COLUMN_NAME"] for part in members)
    return TableDescription(
        schema=actual.schema,
        table=actual.table,
        columns=described,
        unique_keys=tuple(keys.values()),
        primary_key=keys.get("PRIMARY", ()),
        unique_indexes=tuple(unique),
    )


def _is_plain(part: Mapping[str, Any]) -> bool:
    """Return whether an index part is a whole column of an index that the optimizer uses."""
    hidden = part.get("IS_VISIBLE") == "NO" or part.get("IGNORED") == "YES"
    return part["COLUMN_NAME"] is not None and part["SUB_PART"] is None and part.get("EXPRESSION") is None and not hidden


def _column(row: Mapping[str, Any], otherwise: Collection[str]) -> ColumnDescription:
    data_type, column_type = str(row["DATA_TYPE"]).casefold(), str(row["COLUMN_TYPE"])
    extra = str(row["EXTRA"]).upper()
    # MariaDB spells the default of a nullable column 'NULL'.
    has_default = row["COLUMN_DEFAULT"] not in {None, "NULL"} or "AUTO_INCREMENT" in extra
    return ColumnDescription(
        name=row["COLUMN_NAME"],
        sql_type=column_type,
        nullable=row["IS_NULLABLE"] == "YES",
        # DEFAULT_GENERATED is MySQL 8's word for a default that is an expression: such a column is written.
        generated="VIRTUAL GENERATED" in extra or "STORED GENERATED" in extra or bool(row["GENERATION_EXPRESSION"]),
        computes_otherwise=row["COLUMN_NAME"].casefold() in otherwise,
        has_default=has_default,
        default="DEFAULT" if has_default or row["IS_NULLABLE"] == "YES" else None,
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
