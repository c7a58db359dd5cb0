"""How rows are written for SQLite: DELETE by key, multi-row REPLACE, SELECT by key. Pure; crosses to executors.

Which literal a column takes is decided by what the sink declares, never by flags that may be stale; ENUM and SET become their labels. A row
of a table without a key is deleted where it is equal in every column as it is stored.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from applier.model.errors import FatalSinkError, Remedy, RowRefused
from applier.model.events import TableName, Value
from applier.planner.port import ColumnDescription, Literal, TableDescription
from applier.sinks.sqlite.catalogue import FOREIGN
from applier.sinks.sqlite.literal_value import MAX_SIGNED, blob, number, plain, text
from applier.sinks.sqlite.names import ROWID_NAMES, Sql, compose, quote, quote_all, stored_name

_ENUM: Final = 247
_SET: Final = 248
_DECIMAL: Final = 246


def literal_of(column: ColumnDescription, mysql_type: int) -> Literal:
    """Return the function that renders values of the column; FatalSinkError where the column cannot hold the wire's type exactly."""
    if mysql_type in (_ENUM, _SET):
        return _labels(column, is_set=mysql_type == _SET)
    if column.labels:
        raise _mismatch(column, mysql_type)
    if column.sql_type.startswith(FOREIGN):
        return _foreign(column, mysql_type)
    return blob if column.binary else plain


def _labels(column: ColumnDescription, *, is_set: bool) -> Literal:
    """Render ordinals and bit masks as labels; the number itself in a table that the applier did not create, whose labels are unknown."""
    if column.sql_type.startswith(FOREIGN) and not column.labels:
        return plain
    if not column.labels or column.is_set != is_set:
        raise _mismatch(column, _SET if is_set else _ENUM)
    return _mask_literal(column) if is_set else _ordinal_literal(column)


def _ordinal_literal(column: ColumnDescription) -> Literal:
    rendered = ["''", *(text(label) for label in column.labels)]

    def render(value: Value) -> str:
        if isinstance(value, int):
            if not 0 <= value < len(rendered):
                raise _unknown_label(column, value)
            if not value and "" in column.labels:
                raise _ambiguous(column, value)
            return rendered[value]
        return plain(value)

    return render


def _mask_literal(column: ColumnDescription) -> Literal:
    nothing = sum(1 << bit for bit, label in enumerate(column.labels) if not label)

    @lru_cache(maxsize=4096)
    def labelled(mask: int) -> str:
        if mask >> len(column.labels):
            raise _unknown_label(column, mask)
        if mask and mask == nothing:
            raise _ambiguous(column, mask)
        return text(",".join(label for bit, label in enumerate(column.labels) if mask >> bit & 1))

    def render(value: Value) -> str:
        return labelled(value) if isinstance(value, int) else plain(value)

    return render


def _foreign(column: ColumnDescription, mysql_type: int) -> Literal:
    """Render for a table that the applier did not create: its affinity may turn values into floating point. Those stop."""
    affinity = column.sql_type.removeprefix(FOREIGN).partition(" ")[0]
    render: Callable[[Value], str] = blob if column.binary else plain
    if affinity in ("TEXT", "BLOB"):
        return render

    def guarded(value: Value) -> str:
        is_great = isinstance(value, int) and value > MAX_SIGNED
        if is_great or (mysql_type == _DECIMAL and value is not None):
            raise RowRefused(
                "the sink's column would turn this value into floating point",
                remedy=Remedy(
                    "sqlite.declare-column-as-text", "Declare the column as TEXT (DECIMAL) or without a type (unsigned 64-bit integers)"
                ),
                column=column.name,
                declared=column.sql_type.removeprefix(FOREIGN),
            )
        return render(value)

    return guarded


def _mismatch(column: ColumnDescription, mysql_type: int) -> FatalSinkError:
    return FatalSinkError(
        "the sink's column has another type than the rows",
        remedy=Remedy(
            "sqlite.change-column-to-upstream-type", "The sink lacks a DDL of upstream: change the column by hand, its rows included"
        ),
        column=column.name,
        declared=column.sql_type,
        wire_type=mysql_type,
    )


def _unknown_label(column: ColumnDescription, value: int) -> RowRefused:
    return RowRefused(
        "the sink's column lacks the label of a value",
        remedy=Remedy(
            "sqlite.change-column-to-wider-type", "The sink lacks a DDL of upstream: change the column by hand, its rows included"
        ),
        column=column.name,
        declared=column.sql_type,
        ordinal=value,
    )


def _ambiguous(column: ColumnDescription, value: int) -> RowRefused:
    return RowRefused(
        "the sink stores labels: in a column with an empty label, this value would equal another one",
        remedy=Remedy("sqlite.use-server-sink", "Use a MySQL, MariaDB or TiDB sink for the table, or give the empty label a text upstream"),
        column=column.name,
        declared=column.sql_type,
        ordinal=value,
    )


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


_AS_READ: Final = (
    "CASE typeof({column}) WHEN 'text' THEN 'CAST(x%' || hex({column}) || '% AS TEXT)' WHEN 'blob' THEN 'x%' || hex({column}) || '%' "
    "WHEN 'integer' THEN CAST({column} AS TEXT) WHEN 'real' THEN {column} ELSE 'NULL' END"
).replace("%", "''")


@dataclass(frozen=True, slots=True)
class SqliteDialect:
    """The rendering part. ``max_bytes`` (characters of rows per statement) bounds memory; SQLite itself takes far longer statements."""

    max_bytes: int = 500_000
    max_rows: int = 5_000

    def literal(self, column: ColumnDescription, mysql_type: int, *, is_bytes: bool = False) -> Literal:  # noqa: ARG002 - the column decides, not stale flags
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
            # The rowid is needed for NULL only: a table whose columns take all its names does not have one.
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
