"""Names in one SQLite file: ``shop.orders`` is table ``orders`` of schema ``shop``; SQL text and identifiers are different types.

SQLite has no schemas, so a schema is a prefix, and a dot separates the parts; a schema exists while it has a table. A dot inside a part
would let ``a.b``.``c`` and ``a``.``b.c`` collide: dots and percent signs inside a part are written as ``%2E`` and ``%25``. A schema that
begins with ``sqlite_`` gets its first letter encoded, because SQLite reserves that prefix. Tables have one dot, indexes two
(``shop.orders.idx``), bookkeeping tables none.
"""

from typing import Final, NewType
from urllib.parse import unquote

from applier.model.events import TableName

Sql = NewType("Sql", str)
"""SQL text that is complete and safe to execute or to compose."""

ROWID_NAMES: Final = ("rowid", "_rowid_", "oid")


def quote(name: str) -> Sql:
    """Quote an identifier: no other function does."""
    return Sql('"' + name.replace('"', '""') + '"')


def quote_all(names: tuple[str, ...] | list[str]) -> Sql:
    """Quote identifiers and separate them by commas."""
    return Sql(",".join(map(quote, names)))


def compose(template: str, **parts: Sql) -> Sql:
    """Fill ``{name}`` in a constant template with SQL that is safe already."""
    return Sql(template.format_map(parts))


def _encode(part: str) -> str:
    # The percent sign first, or the others' codes would be encoded again.
    encoded = part.replace("%", "%25").replace(".", "%2E")
    return f"%{ord(encoded[0]):02X}{encoded[1:]}" if encoded.casefold().startswith("sqlite_") else encoded


def stored_name(name: TableName) -> str:
    """Return the name of a table or view in the file."""
    return f"{_encode(name.schema)}.{_encode(name.table)}"


def table_name(stored: str) -> TableName | None:
    """Return the upstream name of a table of the file; None for bookkeeping and foreign tables."""
    parts = stored.split(".")
    if len(parts) != 2 or not all(parts):
        return None
    return TableName(unquote(parts[0], errors="strict"), unquote(parts[1], errors="strict"))


def index_name(table: TableName, index: str) -> str:
    """Return the name of an index in the file."""
    return f"{stored_name(table)}.{_encode(index)}"


def upstream_index(stored: str) -> str:
    """Return the upstream name of an index of the file (the whole name if it is not one of ours)."""
    parts = stored.split(".")
    return unquote(parts[2]) if len(parts) == 3 else stored
