"""How rows are written for MySQL, MariaDB and TiDB, and read back: the rendering half of the sink. Pure; crosses to executors.

The texts are whole statements: run them without parameters, so that no driver looks for ``%`` or ``:name`` in them.

Of a table without a key, a DELETE takes one row that is equal in every column as it is stored. ``=`` is not enough to find it: collations
take ``a`` for ``A`` and for ``a ``, 0 equals -0, and a JSON document equals no string. So text is compared as the bytes of its UTF-8 form,
and other types as below (each seen on MariaDB 10.11 and MySQL 9.7).

A READ selects literals that store the same bytes in the same column. The server writes them, because only it knows a value exactly: a FLOAT
is shown with six digits, TIME and JSON have no type of their own in the driver, and text would pass through a second character set. Text
comes as hexadecimal digits with the introducer of its column's character set, so that nothing is converted. A NULL value comes as the text
``NULL``. SQL NULL means that the digits of the value are more than ``max_allowed_packet``.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Final, TypeAlias

from applier.model.errors import Remedy, RowRefused
from applier.mysql.keyed_statements import (
    COMMAND_BYTES,
    MAX_KEYS,
    TARGET_BYTES,
    Cutter,
    by_key,
    by_label,
    compared,
    labelled_columns,
    single_comparison_test,
)
from applier.mysql.names import quote_identifier, quote_table
from applier.planner.port import ColumnDescription, JoinedReplaces, Literal, RowsLines, RowsText, TableDescription, WireColumn
from applier.sinks.mysql.bulk_load import loads
from applier.sinks.mysql.fitting import data_type_of, fitting_literal_of
from applier.sinks.mysql.row import lines_of, rows_text_of

MOST_READS: Final = 100
"""Keys of a READ: each row is compared with half of them, so that the server says by its own rules which key it belongs to."""

_FRAME: Final = 100
"""Bytes that one column of a key takes in addition to its literals, with a name of some length."""

_WORD: Final = re.compile(r"[a-z0-9]+")
_NUMBER: Final = "CAST({name} AS CHAR)"
_ORDINAL: Final = "CAST({name}+0 AS CHAR)"
# Multiplied, a FLOAT has all of its digits. As text, MySQL cuts a number to 22 characters, but not in JSON. MariaDB shows -0 as 0.
_DIGITS: Final = "CAST(JSON_EXTRACT(JSON_ARRAY({name}*1e0),'$[0]') AS CHAR(64))"
_FLOAT: Final = f"IF({{name}}=0 AND ATAN2({{name}},-1)<0,'''-0''',CONCAT({_DIGITS},IF(LOCATE('e',{_DIGITS}),'','e0')))"
_AS_TEXT: Final = "CONCAT('_',CHARSET({name}),' x''',HEX({name}),'''')"
_BYTES: Final = "CONCAT('x''',HEX({name}),'''')"
_OTHER: Final = "CONCAT('''',CAST({name} AS CHAR),'''')"
"""Dates and times, and MariaDB's UUID and INET types: their text is exact."""
_EXPRESSIONS: Final = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "decimal"), _NUMBER),
    **dict.fromkeys(("bit", "enum", "year"), _ORDINAL),
    # The number of a SET with 64 members is a signed one.
    "set": "CAST(CAST({name}+0 AS UNSIGNED) AS CHAR)",
    **dict.fromkeys(("float", "double"), _FLOAT),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _AS_TEXT),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _AS_TEXT),
    "json": "CONCAT('_utf8mb4 x''',HEX(CAST({name} AS CHAR CHARACTER SET utf8mb4)),'''')",
    **dict.fromkeys(("vector", "geometry", "point", "linestring", "polygon", "multipoint"), _BYTES),
    **dict.fromkeys(("multilinestring", "multipolygon", "geometrycollection", "geomcollection"), _BYTES),
}


def read_of(table: TableDescription, columns: Sequence[ColumnDescription]) -> str:
    """Return what a SELECT reads: its list after the number of the key, and the table."""
    return f"{','.join(map(_read_column, columns))} FROM {quote_table(table.schema, table.table)}"


def listed_reads(key: Sequence[str], wanted: str, rows: Iterable[tuple[int, Sequence[str]]], most_bytes: int) -> Iterator[tuple[str, int]]:
    """Render SELECTs … FOR UPDATE of rows whose keys can be in a list; yield (text, rows). ``key``: quoted names.

    A SELECT for each key costs the server ten times as much: it plans each of them.
    """
    batch: list[tuple[int, Sequence[str]]] = []
    used = 0
    for number, row in rows:
        # Each literal is in the list and in the comparison.
        size = 2 * sum(map(_size, row)) + _FRAME * len(row)
        if batch and (used + size > most_bytes or len(batch) == MOST_READS):
            yield _listed(key, wanted, batch), len(batch)
            batch, used = [], 0
        batch.append((number, row))
        used += size
    if batch:
        yield _listed(key, wanted, batch), len(batch)


def _size(literal: str) -> int:
    return len(literal) if literal.isascii() else len(literal.encode())


def _listed(key: Sequence[str], wanted: str, batch: Sequence[tuple[int, Sequence[str]]]) -> str:
    if len(key) == 1:
        found = " ".join(f"WHEN {row[0]} THEN {number}" for number, row in batch)
        return f"SELECT CASE {key[0]} {found} END,{wanted} WHERE {key[0]} IN ({','.join(row[0] for _, row in batch)}) FOR UPDATE"
    found = " ".join(f"WHEN {' AND '.join(map('='.join, zip(key, row, strict=True)))} THEN {number}" for number, row in batch)
    lists = [f"({','.join(row)})" for _, row in batch]
    # As in DELETEs: MariaDB uses the index for two keys or more.
    listed = ",".join(lists * 2 if len(lists) == 1 else lists)
    return f"SELECT CASE {found} END,{wanted} WHERE ({','.join(key)}) IN ({listed}) FOR UPDATE"


def _read_column(column: ColumnDescription) -> str:
    name = quote_identifier(column.name)
    word = _WORD.match(column.sql_type.casefold())
    expression = _EXPRESSIONS.get(word.group() if word else "", _OTHER)
    return f"IF({name} IS NULL,'NULL',{expression.replace('{name}', name)})"


def head_of(verb: str, table: TableDescription, columns: Sequence[str]) -> str:
    """Return what an INSERT or REPLACE begins with."""
    return f"{verb} INTO {quote_table(table.schema, table.table)} ({','.join(map(quote_identifier, columns))}) VALUES "


def most_rows_of(table: TableDescription, max_rows: int, max_warnings: int) -> int:
    """Return how many rows an INSERT or REPLACE may have: an ENUM may raise a harmless warning (ordinal 0), the statement one more."""
    enums = sum(bool(column.labels) and not column.is_set for column in table.columns)
    return max_rows if not enums else max(1, min(max_rows, (max_warnings - 1) // enums))


def too_large(table: TableDescription, size: int, max_packet_bytes: int) -> RowRefused:
    """Return the error of a row that alone is larger than a packet."""
    return RowRefused(
        "a row is larger than the sink's max_allowed_packet",
        remedy=Remedy("mysql.raise-max-allowed-packet-for-row", "Raise max_allowed_packet of the sink's server, and start again"),
        table=str(table.folded),
        bytes=size,
        max_packet_bytes=max_packet_bytes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MysqlDialect:
    """Renders statements. ``max_packet_bytes`` is the server's ``max_allowed_packet``; ``max_rows`` bounds one statement.

    ``max_warnings`` is the session's ``max_error_count``: a statement that raises more is refused, because not all can be judged.
    """

    max_packet_bytes: int = 16 * 1024 * 1024
    max_rows: int = 1000
    max_warnings: int = 65_535

    def literal(self, column: ColumnDescription, mysql_type: int, *, is_bytes: bool = False) -> Literal:
        """Return the function that renders values of wire type ``mysql_type`` for ``column``."""
        return fitting_literal_of(column, mysql_type, is_bytes=is_bytes)

    def deletes(self, table: TableDescription, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, int]]:
        """Render DELETEs by key."""
        head = f"DELETE FROM {quote_table(table.schema, table.table)} WHERE "  # noqa: S608 - this is where SQL is rendered
        yield from self._by_key(head, table, columns, rows)

    def _by_key(
        self, head: str, table: TableDescription, columns: Sequence[str], rows: Iterable[Sequence[str]]
    ) -> Iterator[tuple[str, int]]:
        return by_key(self._cutter(table, min(self.max_rows, MAX_KEYS)), head, columns, rows)

    def _cutter(self, table: TableDescription, most_rows: int) -> Cutter:
        return Cutter(table, self.max_packet_bytes, most_rows, too_large)

    def replaces(self, table: TableDescription, columns: Sequence[str], rows: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Render multi-row REPLACEs from row texts."""
        yield from self._cutter(table, self.most_rows(table)).cut(head_of("REPLACE", table, columns), rows, ",", "")

    def upserts(self, table: TableDescription, columns: Sequence[str], rows: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Render multi-row INSERT … ON DUPLICATE KEY UPDATE from row texts."""
        # MySQL warns of VALUES() from 8.0.20 on, and MariaDB (10.11) does not know the alias: each ignores the other's comment.
        names = [quote_identifier(column) for column in columns]
        taken = ",".join(f"{name}=/*!80019 `new`.{name}*//*M!VALUES({name})*/" for name in names)
        tail = f"/*!80019 AS `new`*/ ON DUPLICATE KEY UPDATE {taken}"
        yield from self._cutter(table, self.most_rows(table)).cut(head_of("INSERT", table, columns), rows, ",", tail)

    def updates(
        self, table: TableDescription, new: tuple[Sequence[str], Sequence[str]], key: Sequence[str], old: Sequence[str]
    ) -> Iterator[tuple[str, int]]:
        """Render the UPDATE of one row by its old key."""
        values = ",".join(f"{quote_identifier(column)}={literal}" for column, literal in zip(*new, strict=True))
        head = f"UPDATE {quote_table(table.schema, table.table)} SET {values} WHERE "  # noqa: S608 - this is where SQL is rendered
        yield from self._by_key(head, table, key, [old])

    def absent_inserts(
        self, table: TableDescription, new: tuple[Sequence[str], Sequence[str]], key: Sequence[str], old: Sequence[str]
    ) -> Iterator[tuple[str, int]]:
        """Render the INSERT of one row that is not there."""
        name, (columns, literals) = quote_table(table.schema, table.table), new
        listed = ",".join(map(quote_identifier, columns))
        head = f"INSERT INTO {name} ({listed}) SELECT {','.join(literals)} FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM {name} WHERE "  # noqa: S608 - as above
        yield from ((f"{text})", number) for text, number in self._by_key(head, table, key, [old]))

    def whole_rows(self) -> "MysqlWholeRows":
        """Return the dialect of tables without a key."""
        return MysqlWholeRows(self.max_packet_bytes, self.max_rows, self.max_warnings)

    def reads(
        self, table: TableDescription, key: Sequence[str], rows: Iterable[Sequence[str]], columns: Sequence[str]
    ) -> Iterator[tuple[str, int]]:
        """Render SELECTs … FOR UPDATE; keys are compared as in DELETEs: in lists, or one by one, united."""
        quoted = [quote_identifier(column) for column in key]
        by_name = {column.name: column for column in table.columns}
        wanted = read_of(table, [by_name[column] for column in columns])
        if labelled := labelled_columns(table, key):
            rows = by_label(rows, labelled)
        is_single = single_comparison_test(table, key, frozenset(labelled))
        for apart, group in groupby(enumerate(rows), key=lambda numbered: is_single(numbered[1])):
            if apart:
                texts = (f"(SELECT {number},{wanted} WHERE {compared(quoted, row)} FOR UPDATE)" for number, row in group)
                yield from self._cutter(table, MOST_READS).cut("", texts, " UNION ALL ", "")
            else:
                yield from listed_reads(quoted, wanted, group, min(TARGET_BYTES, self.max_packet_bytes) // 2)

    def read_literal(self, value: Any) -> str | None:
        """Return the literal, as the server has written it."""
        return value.decode() if isinstance(value, bytes) else value

    def rows_text(self, table: TableDescription, columns: Sequence[WireColumn]) -> RowsText:
        """Return the function that renders many rows for ``joined_replaces``; it leaves what is too large for a statement."""
        head = head_of("REPLACE", table, [column.column.name for column in columns])
        return rows_text_of(columns, self.max_packet_bytes - len(head.encode()) - COMMAND_BYTES)

    def joined_replaces(self, table: TableDescription, columns: Sequence[str]) -> JoinedReplaces:
        """Return the function that makes multi-row REPLACEs of texts of several rows."""
        head, most_rows = head_of("REPLACE", table, columns).encode(), self.most_rows(table)
        return partial(_joined_replaces, head, min(TARGET_BYTES, self.max_packet_bytes) - len(head) - COMMAND_BYTES, most_rows)

    def bulk_line(self, columns: Sequence[WireColumn]) -> RowsLines | None:
        """Return the function that renders rows for ``bulk_loads``."""
        return lines_of(columns)

    def bulk_loads(
        self, table: TableDescription, columns: Sequence[str], lines: Iterable[tuple[bytes, int]]
    ) -> Iterator[tuple[bytes, bytes, int]]:
        """Render bulk loads from lines of rows."""
        yield from loads(table, columns, lines)

    def most_rows(self, table: TableDescription) -> int:
        """Return how many rows a REPLACE may have: each ENUM may raise a harmless warning (ordinal 0), and the statement one more."""
        return most_rows_of(table, self.max_rows, self.max_warnings)


def _joined_replaces(head: bytes, target: int, most_rows: int, texts: Iterable[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    batch: list[bytes] = []
    used = rows = 0
    for text, number in texts:
        if batch and (used + len(text) > target or rows + number > most_rows):
            yield head + b",".join(batch), rows
            batch, used, rows = [], 0, 0
        batch.append(text)
        used += len(text) + 1
        rows += number
    if batch:
        yield head + b",".join(batch), rows


Comparison: TypeAlias = Callable[[str], str]
"""Literal -> the condition under which a column stores its value, or by which its rows are ordered."""

_TEXT: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_FLOATS: Final = frozenset({"float", "double"})
_ZERO, _NEGATIVE_ZERO = "0.0e0", "'-0'"


@dataclass(frozen=True, slots=True)
class MysqlWholeRows:
    """The dialect of tables without a key: see ``Dialect.whole_rows``."""

    max_packet_bytes: int
    max_rows: int
    max_warnings: int

    def deletes(self, table: TableDescription, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, int]]:
        """Render a DELETE of one row for each."""
        found = {column.name: column for column in table.columns}
        comparisons = [_comparison(found[name]) for name in columns]
        signs = [_sign_order(found[name]) for name in columns]
        head = f"DELETE FROM {quote_table(table.schema, table.table)} WHERE "  # noqa: S608 - this is where SQL is rendered
        for row in rows:
            conditions = " AND ".join(compare(literal) for compare, literal in zip(comparisons, row, strict=True))
            orders = ",".join(order for sign, literal in zip(signs, row, strict=True) if (order := sign(literal)))
            text = f"{head}{conditions}{orders and f' ORDER BY {orders}'} LIMIT 1"
            if (size := len(text.encode()) + COMMAND_BYTES) > self.max_packet_bytes:
                raise too_large(table, size, self.max_packet_bytes)
            yield text, 1

    def replaces(self, table: TableDescription, columns: Sequence[str], rows: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Render multi-row INSERTs."""
        cutter = Cutter(table, self.max_packet_bytes, most_rows_of(table, self.max_rows, self.max_warnings), too_large)
        return cutter.cut(head_of("INSERT", table, columns), rows, ",", "")


def _comparison(column: ColumnDescription) -> Comparison:
    name, data_type = quote_identifier(column.name), data_type_of(column)
    if data_type in _TEXT and not column.binary:
        compare = partial(_same_text, name)
    elif data_type == "json":
        compare = partial(_same_json, name)
    elif data_type in _FLOATS:
        compare = partial(_same_float, name)
    elif column.labels:
        # No number is found in a SET with bit 63 but as the operand of a bit operation.
        compare = partial(_same, f"({name}|0)")
    elif data_type == "vector":
        compare = partial(_same, f"CAST({name} AS BINARY)")
    else:
        compare = partial(_same, name)
    return lambda literal: f"{name} IS NULL" if literal == "NULL" else compare(literal)


def _same(value: str, literal: str) -> str:
    return f"{value}={literal}"


def _same_text(name: str, literal: str) -> str:
    same = f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)=CAST({literal} AS BINARY)"
    # Equal bytes are equal text under any collation, and the first comparison can use an index. Not so beyond ASCII, where character sets
    # of servers differ in what they convert.
    return f"{name}={literal} AND {same}" if literal.isascii() and literal.startswith("'") else same


def _same_json(name: str, literal: str) -> str:
    # As text: to the server the numbers 1 and 1.0 are equal documents.
    return f"CAST(CAST({name} AS CHAR) AS BINARY)=CAST(CAST(CAST({literal} AS JSON) AS CHAR) AS BINARY)"


def _sign_order(column: ColumnDescription) -> Comparison:
    """Return the function that puts a zero of the literal's sign before one of the other sign. Empty: the literal is not such a zero."""
    name = quote_identifier(column.name)
    if data_type_of(column) not in _FLOATS:
        return lambda _: ""
    # By an order and not by a condition: MariaDB stores no sign of a zero, so a row that came with -0 does not have one.
    orders = {_ZERO: f"ATAN2({name},-1)<0", _NEGATIVE_ZERO: f"ATAN2({name},-1)>0"}
    return lambda literal: orders.get(literal, "")


def _same_float(name: str, literal: str) -> str:
    # Not `{name}=0`: an optimizer would write 0 for the column in the order too.
    return f"ABS({name})=0" if literal in {_ZERO, _NEGATIVE_ZERO} else _same(name, literal)
