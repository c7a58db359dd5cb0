"""Defaults of binary columns on MariaDB: its information_schema shows a question mark for each byte that is no text."""

import re
from typing import Any, Final

from sqlalchemy import Connection

from applier.model.events import TableName
from applier.mysql.quoting import quote_identifier, quote_table
from applier.mysql.session import read_named

_DEFAULT: Final = re.compile(r" DEFAULT ('(?:[^'\\]|''|\\.)*')", re.DOTALL)


def restore_binary_defaults(connection: Connection, table: TableName, columns: list[dict[str, Any]]) -> None:
    """Put the bytes of SHOW CREATE TABLE in place of defaults with question marks. ``columns``: rows of information_schema.COLUMNS."""
    unclear = [row for row in columns if _is_unclear(row)]
    if not unclear:
        return
    # SHOW CREATE TABLE writes the bytes as they are; read_named keeps what is no text as halves of surrogate pairs.
    (shown,) = read_named(connection, "SHOW CREATE TABLE " + quote_table(table.schema, table.table))
    for row in unclear:
        _, found, definition = shown.get("CREATE TABLE", "").partition(f"\n  {quote_identifier(row['COLUMN_NAME'])} ")
        default = _DEFAULT.search(definition) if found else None
        if default is not None:
            row["COLUMN_DEFAULT"] = default[1]


def _is_unclear(row: dict[str, Any]) -> bool:
    is_mariadb = "IS_GENERATED" in row
    return is_mariadb and row["DATA_TYPE"].endswith(("binary", "blob")) and "?" in (row["COLUMN_DEFAULT"] or "")
