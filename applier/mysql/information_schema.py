"""Reads views of information_schema for many tables, in a number of statements that does not depend on how many they are.

MariaDB opens every table of the server unless schema and table are compared with constants. So a few tables are asked for one by one
within one statement (UNION ALL), many tables by their schemas. A join or a list of pairs would open them all.
Errors of the database come out as SQLAlchemy's.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from applier.model.events import TableName
from applier.mysql.session import read_named

FEW: Final = 50
"""Up to so many tables are asked for one by one."""

Row = dict[str, Any]


class CatalogueView(NamedTuple):
    """A view, and the columns that name the table of a row. All texts are constants of this package: they go into SQL as they are."""

    source: str
    schema: str = "TABLE_SCHEMA"
    table: str = "TABLE_NAME"
    columns: str = "*"
    """``*`` where servers have different columns, and what one of them lacks is looked for in the row."""
    condition: str = "TRUE"


TABLES: Final = CatalogueView("information_schema.TABLES")
PARTITIONS: Final = CatalogueView("information_schema.PARTITIONS")


def read_view(connection: Connection, view: CatalogueView, tables: Collection[TableName]) -> defaultdict[TableName, list[Row]]:
    """Read the rows of each table, by column name in upper case. ``tables``: names as the server spells them (``names.spellings``)."""
    wanted = set(tables)
    found: defaultdict[TableName, list[Row]] = defaultdict(list)
    for query, values in _queries(view, wanted):
        for row in read_named(connection, query, values):
            name = TableName(row[view.schema], row[view.table])
            if name in wanted:
                found[name].append(row)
    return found


def _queries(view: CatalogueView, wanted: set[TableName]) -> Iterable[tuple[str, tuple[str, ...]]]:
    if not wanted:
        return
    select = f"SELECT {view.columns} FROM {view.source} WHERE {view.condition} AND {view.schema} = %s"  # noqa: S608 - constants
    if len(wanted) <= FEW:
        one = f"{select} AND {view.table} = %s"
        yield " UNION ALL ".join([one] * len(wanted)), tuple(value for name in sorted(wanted) for value in name)
        return
    schemas = sorted({name.schema for name in wanted})
    for start in range(0, len(schemas), FEW):
        block = schemas[start : start + FEW]
        yield " UNION ALL ".join([select] * len(block)), tuple(block)
