"""Statements about rows of a stored table: its name, its rowid, and rows cut by their number and by their characters."""

from collections.abc import Iterable, Iterator

from applier.model.errors import FatalSinkError
from applier.model.events import TableName
from applier.model.remedy import Remedy
from applier.planner.catalogue import TableDescription
from applier.sinks.sqlite.names import ROWID_NAMES, Sql, quote, stored_name


def stored_table(table: TableDescription) -> Sql:
    """Return the quoted name of a table."""
    return quote(stored_name(TableName(table.schema, table.table)))


def rowid_of(table: TableDescription) -> Sql:
    """Name the rowid by a word that is not a column of the table."""
    taken = {column.name.casefold() for column in table.columns}
    free = next((name for name in ROWID_NAMES if name not in taken), None)
    if free is None:
        raise FatalSinkError(
            "all names of SQLite's rowid are columns of the table",
            remedy=Remedy("sqlite.rename-table-upstream", "Rename one of them upstream"),
            table=f"{table.schema}.{table.table}",
        )
    return Sql(free)


def cut_rows(max_bytes: int, max_rows: int, prefix: str, rows: Iterable[str], suffix: str) -> Iterator[tuple[str, int]]:
    """Yield (statement, rows) between ``prefix`` and ``suffix``, in order."""
    batch: list[str] = []
    size = 0
    for row in rows:
        if batch and (size + len(row) > max_bytes or len(batch) >= max_rows):
            yield f"{prefix}{','.join(batch)}{suffix}", len(batch)
            batch, size = [], 0
        batch.append(row)
        size += len(row) + 1
    if batch:
        yield f"{prefix}{','.join(batch)}{suffix}", len(batch)
