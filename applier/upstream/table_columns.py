"""Upstream's columns: which values of the wire they hold, and how they are asked for so that these come exactly.

Servers print a FLOAT with six digits, an ENUM as its label, a BIT as bytes. The wire has numbers (open_protocol.md 2.6): they are cast.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from applier.model.errors import NeedsOperator
from applier.model.events import STRING_TYPES, ColumnShape, KnownKeys, Shape, TableName, Value
from applier.model.remedy import Remedy
from applier.mysql.catalogue import labels_of
from applier.mysql.float32 import shortest
from applier.mysql.quoting import quote_identifier
from applier.planner.catalogue import ColumnDescription, TableDescription

Read: TypeAlias = Callable[[bytes], Value]
Shown: TypeAlias = Mapping[str, Any]
"""A row of a SHOW statement, by column name in upper case."""

ENUM, SET, BIT, FLOAT, DOUBLE = 247, 248, 16, 4, 5
_TYPES: Final[Mapping[str, int]] = {
    "tinyint": 1, "smallint": 2, "int": 3, "integer": 3, "bigint": 8, "mediumint": 9, "year": 13,
    "float": FLOAT, "double": DOUBLE, "decimal": 246, "bit": BIT, "enum": ENUM, "set": SET,
    "timestamp": 7, "date": 10, "time": 11, "datetime": 12, "json": 245, "vector": 225,
    "varchar": 15, "varbinary": 15, "char": 254, "binary": 254,
    "tinytext": 249, "tinyblob": 249, "mediumtext": 250, "mediumblob": 250, "longtext": 251, "longblob": 251, "text": 252, "blob": 252,
}  # fmt: skip
_INTEGERS: Final = frozenset({1, 2, 3, 8, 9, 13, BIT, ENUM, SET})
_WORD: Final = re.compile(r"[a-z]+")
_BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})


@dataclass(frozen=True, slots=True)
class ExactColumn:
    """One column: as rows of the wire describe it, and as literals for it are written."""

    shape: ColumnShape
    described: ColumnDescription

    @property
    def expression(self) -> str:
        """Return what is selected, so that the value comes exactly."""
        name = quote_identifier(self.shape.name)
        if self.shape.mysql_type in {ENUM, SET, BIT}:
            return f"CAST({name} AS UNSIGNED)"
        return f"CAST({name} AS DOUBLE)" if self.shape.mysql_type == FLOAT else name

    @property
    def read(self) -> Read:
        """Return the function from the bytes that come to the value."""
        if self.shape.mysql_type in _INTEGERS:
            return int
        if self.shape.mysql_type == FLOAT:
            return lambda value: shortest(float(value))
        if self.shape.mysql_type == DOUBLE:
            return float
        return bytes if self.shape.is_bytes else _text


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


class UpstreamTable:
    """A table of upstream at one snapshot. Virtual columns are left out, as on the wire."""

    def __init__(self, name: TableName, columns: Sequence[ExactColumn], keys: KnownKeys) -> None:
        self.name, self.columns, self.keys = name, columns, keys
        self.description = TableDescription(
            schema=name.schema, table=name.table, columns=tuple(column.described for column in columns), unique_keys=()
        )

    @classmethod
    def of(cls, name: TableName, columns: Iterable[Shown], indexes: Iterable[Shown], handle: Collection[str]) -> "UpstreamTable":
        """Read SHOW FULL COLUMNS and SHOW INDEX. ``handle``: casefolded names of the handle key. NeedsOperator: an unsupported type."""
        unique = [row for row in indexes if int(row["NON_UNIQUE"]) == 0 and row["COLUMN_NAME"] is not None]
        primary = {row["COLUMN_NAME"].casefold() for row in unique if row["KEY_NAME"] == "PRIMARY"}
        others = {row["COLUMN_NAME"].casefold() for row in unique if row["KEY_NAME"] != "PRIMARY"}
        shown = [row for row in columns if not _is_virtual(row)]

        def named(names: Collection[str], *, nullable: bool = True) -> tuple[str, ...]:
            rows = [row for row in shown if row["FIELD"].casefold() in names and (nullable or row["NULL"] != "YES")]
            return tuple(str(row["FIELD"]) for row in rows)

        keys = KnownKeys(
            handle=tuple(sorted(named(handle), key=str.casefold)),
            primary=named(primary),
            unique=named(others),
            identifying=named({*handle, *primary, *others}, nullable=False),
        )
        return cls(name, [_column(name, row) for row in shown], keys)

    def shape_of(self, placeholder: Shape) -> Shape:
        """Return the shape of the whole rows of placeholders."""
        return placeholder._replace(columns=tuple(column.shape for column in self.columns), keys=self.keys, placeholder=False)

    def places(self, names: Sequence[str]) -> list[int]:
        """Return where the columns ``names`` are. NeedsOperator: one is missing."""
        known = {column.shape.name.casefold(): place for place, column in enumerate(self.columns)}
        if absent := [name for name in names if name.casefold() not in known]:
            raise NeedsOperator(
                "upstream's table lacks columns of the handle key",
                remedy=Remedy("upstream.check-cluster-of-table", "Check that source.upstream is the cluster that the changefeed reads"),
                table=str(self.name),
                columns=",".join(absent),
            )
        return [known[name.casefold()] for name in names]


def _is_virtual(row: Shown) -> bool:
    return "VIRTUAL GENERATED" in str(row["EXTRA"]).upper()


def _column(table: TableName, row: Shown) -> ExactColumn:
    name, sql_type = str(row["FIELD"]), str(row["TYPE"]).casefold()
    word = match[0] if (match := _WORD.match(sql_type)) else ""
    if word not in _TYPES:
        raise NeedsOperator(
            "upstream's table has a column of an unsupported type",
            remedy=Remedy("upstream.exclude-table", "Leave the table out of the changefeed"),
            table=str(table),
            column=name,
            type=sql_type,
        )
    is_binary = word in _BYTES or row["COLLATION"] == "binary"
    described = ColumnDescription(
        name=name,
        sql_type=str(row["TYPE"]),
        nullable=row["NULL"] == "YES",
        binary=is_binary,
        labels=labels_of(str(row["TYPE"])) if word in {"enum", "set"} else (),
        is_set=word == "set",
    )
    mysql_type = _TYPES[word]
    shape = ColumnShape(
        name,
        mysql_type,
        is_bytes=is_binary and mysql_type in STRING_TYPES,
        is_unsigned="unsigned" in sql_type,
        is_generated="STORED GENERATED" in str(row["EXTRA"]).upper(),
    )
    return ExactColumn(shape, described)
