"""How rows are written down for SQLite: DELETE by key, multi-row REPLACE, SELECT by key. Pure; crosses to executors."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from applier.planner.catalogue import ColumnDescription, TableDescription
from applier.planner.port import Literal
from applier.sinks.sqlite.column_literal import literal_of
from applier.sinks.sqlite.cutting import cut_rows, rowid_of, stored_table
from applier.sinks.sqlite.literals import number
from applier.sinks.sqlite.names import Sql, compose, quote, quote_all
from applier.sinks.sqlite.whole_rows import SqliteWholeRows

_AS_READ: Final = (
    "CASE typeof({column}) WHEN 'text' THEN 'CAST(x%' || hex({column}) || '% AS TEXT)' WHEN 'blob' THEN 'x%' || hex({column}) || '%' "
    "WHEN 'integer' THEN CAST({column} AS TEXT) WHEN 'real' THEN {column} ELSE 'NULL' END"
).replace("%", "''")


@dataclass(frozen=True, slots=True)
class SqliteDialect:
    """The rendering part. ``max_bytes`` (characters of rows per statement) bounds memory; SQLite itself takes far longer statements."""

    max_bytes: int = 500_000
    max_rows: int = 5_000

    def literal(self, column: ColumnDescription, mysql_type: int, flags: int) -> Literal:  # noqa: ARG002 - the column decides, not stale flags
        """Return the function that renders values of the column; FatalSinkError where the column cannot hold the wire's type exactly."""
        return literal_of(column, mysql_type)

    def deletes(self, table: TableDescription, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, int]]:
        """Render DELETEs by key: ``IN (…)`` for one column, a join with the keys for several or NULL ones (an index serves both)."""
        # IN never finds NULL, so such a key goes through the join, which compares with IS.
        name = stored_table(table)
        if len(columns) == 1:
            single, nulls = _partition(rows)
            yield from cut_rows(
                self.max_bytes,
                self.max_rows,
                compose("DELETE FROM {table} WHERE {column} IN (", table=name, column=quote(columns[0])),
                single,
                ")",
            )
            # The rowid is needed for NULL only: a table whose columns take all its names has none.
            if not nulls:
                return
            rows = [["NULL"]]
        yield from cut_rows(
            self.max_bytes,
            self.max_rows,
            _join_prefix(name, rowid_of(table)),
            (f"({','.join(row)})" for row in rows),
            _join_suffix(name, columns),
        )

    def replaces(self, table: TableDescription, columns: Sequence[str], rows: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Render multi-row ``REPLACE INTO``."""
        prefix = compose("REPLACE INTO {table} ({columns}) VALUES ", table=stored_table(table), columns=quote_all(list(columns)))
        return cut_rows(self.max_bytes, self.max_rows, prefix, rows, "")

    def reads(
        self, table: TableDescription, key: Sequence[str], rows: Iterable[Sequence[str]], columns: Sequence[str]
    ) -> Iterator[tuple[str, int]]:
        """Render a SELECT of rows by key, joined as ``deletes`` joins them."""
        keys = [f"({number},{','.join(row)})" for number, row in enumerate(rows)]
        wanted = Sql(",".join(as_read(Sql(f"t.{quote(column)}")) for column in columns))
        conditions = [compose("t.{column} IS k.column{n}", column=quote(one), n=Sql(str(n))) for n, one in enumerate(key, 2)]
        query = compose(
            "SELECT k.column1,{wanted} FROM (VALUES {keys}) AS k CROSS JOIN {table} AS t ON {conditions}",
            wanted=wanted,
            keys=Sql(",".join(keys)),
            table=stored_table(table),
            conditions=Sql(" AND ".join(conditions)),
        )
        if keys:
            yield query, len(keys)

    def read_literal(self, value: Any) -> str | None:
        """Return the literal of a value that ``reads`` has returned: floats are numbers, all others literals."""
        return number(value) if isinstance(value, float) else str(value)

    def whole_rows(self) -> SqliteWholeRows:
        """Return the dialect of tables without a key."""
        return SqliteWholeRows(self.max_bytes, self.max_rows)


def as_read(column: Sql) -> Sql:
    """Return the expression of what a column holds: a literal with the same storage class and bytes, or a float as it is."""
    return compose(_AS_READ, column=column)


def _partition(rows: Iterable[Sequence[str]]) -> tuple[list[str], bool]:
    keys = [row[0] for row in rows]
    return [key for key in keys if key != "NULL"], "NULL" in keys


def _join_prefix(table: Sql, rowid: Sql) -> Sql:
    # CROSS JOIN keeps the order: keys outside, the table's index inside. (Row values IN (VALUES …) would scan the table.)
    return compose("DELETE FROM {table} WHERE {rowid} IN (SELECT t.{rowid} FROM (VALUES ", table=table, rowid=rowid)


def _join_suffix(table: Sql, columns: Sequence[str]) -> Sql:
    conditions = [compose("t.{column} IS k.column{n}", column=quote(name), n=Sql(str(n))) for n, name in enumerate(columns, 1)]
    return compose(") AS k CROSS JOIN {table} AS t ON {conditions})", table=table, conditions=Sql(" AND ".join(conditions)))


# --- literals -----------------------------------------------------------------------------------------------------------
