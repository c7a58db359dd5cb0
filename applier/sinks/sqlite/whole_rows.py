"""Tables without a key: DELETE of one row that is equal in every column as it is stored, and INSERT."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from applier.planner.catalogue import TableDescription
from applier.sinks.sqlite.cutting import cut_rows, rowid_of, stored_table
from applier.sinks.sqlite.names import Sql, compose, quote, quote_all


@dataclass(frozen=True, slots=True)
class SqliteWholeRows:
    """The dialect of tables without a key: see ``Dialect.whole_rows``."""

    max_bytes: int
    max_rows: int

    def deletes(self, table: TableDescription, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, int]]:
        """Render a DELETE of one row for each."""
        # By the rowid: SQLite is built without DELETE … LIMIT as a rule.
        name, rowid = stored_table(table), rowid_of(table)
        names = [quote(column) for column in columns]
        for row in rows:
            # IS finds NULL. A collation of the column would find other texts.
            same = Sql(" AND ".join(f"{column} IS {literal} COLLATE BINARY" for column, literal in zip(names, row, strict=True)))
            found = compose("SELECT {rowid} FROM {table} WHERE {same} LIMIT 1", rowid=rowid, table=name, same=same)
            yield compose("DELETE FROM {table} WHERE {rowid} IN ({found})", table=name, rowid=rowid, found=found), 1

    def replaces(self, table: TableDescription, columns: Sequence[str], rows: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Render multi-row INSERTs."""
        head = compose("INSERT INTO {table} ({columns}) VALUES ", table=stored_table(table), columns=quote_all(list(columns)))
        return cut_rows(self.max_bytes, self.max_rows, head, rows, "")
