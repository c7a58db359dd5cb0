"""How values are read back as literals that store the same bytes in the same column: what a READ selects. Pure.

The server writes the literals, because only it knows a value exactly: a FLOAT is shown with six digits, TIME and JSON have no type of their
own in the driver, and text would pass through a second character set. Text comes as hexadecimal digits with the introducer of its column's
character set, so that no conversion takes place on either way. NULL comes as the word; NULL instead of a word is a value whose digits are
more than ``max_allowed_packet``.
"""

import re
from collections.abc import Sequence
from typing import Final

from applier.planner.catalogue import ColumnDescription, TableDescription
from applier.sinks.mysql.quoting import quote_identifier, quote_table

MOST_READS: Final = 100
"""Rows of a READ: each is a SELECT of its own, so that the server says which row belongs to which key by its own rules of comparison."""

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


def _read_column(column: ColumnDescription) -> str:
    name = quote_identifier(column.name)
    word = _WORD.match(column.sql_type.casefold())
    expression = _EXPRESSIONS.get(word.group() if word else "", _OTHER)
    return f"IF({name} IS NULL,'NULL',{expression.replace('{name}', name)})"
