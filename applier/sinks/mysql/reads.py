"""How values are read back as literals that store the same bytes in the same column: what a READ selects. Pure.

The server writes the literals, because only it knows a value exactly: a FLOAT is shown with six digits, TIME and JSON have no type of their
own in the driver, and text would pass through a second character set. Text comes as hexadecimal digits with the introducer of its column's
character set, so that nothing is converted. A NULL value comes as the text ``NULL``. SQL NULL means that the digits of the value are more
than ``max_allowed_packet``.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from applier.mysql.quoting import quote_identifier, quote_table
from applier.planner.catalogue import ColumnDescription, TableDescription

MOST_READS: Final = 100
"""Keys of a READ: each row is compared with half of them, so that the server says by its own rules which key it belongs to."""

_FRAME: Final = 100
"""Bytes beside the literals of one column of a key, with a name of some length."""

_WORD: Final = re.compile(r"[a-z0-9]+")
_NUMBER: Final = "CAST({name} AS CHAR)"
_ORDINAL: Final = "CAST({name}+0 AS CHAR)"
# Multiplied, a FLOAT has all of its digits. As text, MySQL cuts a number to 22 characters, but not in JSON. MariaDB shows -0 as 0.
_DIGITS: Final = "CAST(JSON_EXTRACT(JSON_ARRAY({name}*1e0),'$[0]') AS CHAR(64))"
_FLOAT: Final = f"IF({{name}}=0 AND ATAN2({{name}},-1)<0,'''-0''',CONCAT({_DIGITS},IF(LOCATE('e',{_DIGITS}),'','e0')))"
_TEXT: Final = "CONCAT('_',CHARSET({name}),' x''',HEX({name}),'''')"
_BYTES: Final = "CONCAT('x''',HEX({name}),'''')"
_OTHER: Final = "CONCAT('''',CAST({name} AS CHAR),'''')"
"""Dates and times, and MariaDB's UUID and INET types: their text is exact."""
_EXPRESSIONS: Final = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "decimal"), _NUMBER),
    **dict.fromkeys(("bit", "enum", "year"), _ORDINAL),
    # The number of a SET with 64 members is a signed one.
    "set": "CAST(CAST({name}+0 AS UNSIGNED) AS CHAR)",
    **dict.fromkeys(("float", "double"), _FLOAT),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _TEXT),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _TEXT),
    "json": "CONCAT('_utf8mb4 x''',HEX(CAST({name} AS CHAR CHARACTER SET utf8mb4)),'''')",
    **dict.fromkeys(("vector", "geometry", "point", "linestring", "polygon", "multipoint"), _BYTES),
    **dict.fromkeys(("multilinestring", "multipolygon", "geometrycollection", "geomcollection"), _BYTES),
}


def read_of(table: TableDescription, columns: Sequence[ColumnDescription]) -> str:
    """Return what a SELECT reads: its list after the number of the key, and the table."""
    return f"{','.join(map(_read_column, columns))} FROM {quote_table(table.schema, table.table)}"


def listed_reads(key: Sequence[str], wanted: str, rows: Iterable[tuple[int, Sequence[str]]], most_bytes: int) -> Iterator[tuple[str, int]]:
    """Render SELECTs … FOR UPDATE of rows whose keys can stand in a list; yield (text, rows). ``key``: quoted names.

    A SELECT for each key costs the server ten times as much: it plans each of them.
    """
    batch: list[tuple[int, Sequence[str]]] = []
    used = 0
    for number, row in rows:
        # Each literal stands in the list and in the comparison.
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
