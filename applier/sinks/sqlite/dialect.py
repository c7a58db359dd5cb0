"""How rows are written down for SQLite: literals, DELETE by key, multi-row REPLACE. Pure; crosses to executors.

Literals have the storage class that the column keeps as it is (``column_type.py``). Text with a NUL or with bytes that are not UTF-8
cannot stand in SQL text and is cast from its bytes. ENUM and SET become their labels.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from applier.model.errors import FatalSinkError, RowRefused
from applier.model.events import TableName, Value
from applier.planner.catalogue import ColumnDescription, TableDescription
from applier.planner.port import Literal
from applier.sinks.sqlite.catalogue import FOREIGN
from applier.sinks.sqlite.literals import MAX_SIGNED, blob, number, plain, text
from applier.sinks.sqlite.names import ROWID_NAMES, Sql, compose, quote, quote_all, stored_name

_ENUM: Final = 247
_SET: Final = 248
_DECIMAL: Final = 246
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
        if mysql_type in (_ENUM, _SET):
            return _labels(column, is_set=mysql_type == _SET)
        if column.labels:
            raise _mismatch(column, mysql_type)
        if column.sql_type.startswith(FOREIGN):
            return _foreign(column, mysql_type)
        return blob if column.binary else plain

    def deletes(self, table: TableDescription, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, int]]:
        """Render DELETEs by key: ``IN (…)`` for one column, a join with the keys for several or NULL ones (an index serves both)."""
        # IN never finds NULL, so such a key goes through the join, which compares with IS.
        name = quote(_stored(table))
        if len(columns) == 1:
            single, nulls = _partition(rows)
            yield from self._cut(compose("DELETE FROM {table} WHERE {column} IN (", table=name, column=quote(columns[0])), single, ")")
            rows = [["NULL"]] if nulls else []
        yield from self._cut(_join_prefix(name, _rowid(table)), (f"({','.join(row)})" for row in rows), _join_suffix(name, columns))

    def replaces(self, table: TableDescription, columns: Sequence[str], rows: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Render multi-row ``REPLACE INTO``."""
        prefix = compose("REPLACE INTO {table} ({columns}) VALUES ", table=quote(_stored(table)), columns=quote_all(list(columns)))
        return self._cut(prefix, rows, "")

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
            table=quote(_stored(table)),
            conditions=Sql(" AND ".join(conditions)),
        )
        if keys:
            yield query, len(keys)

    def read_literal(self, value: Any) -> str | None:
        """Return the literal of a value that ``reads`` has returned: floats are numbers, all others literals."""
        return number(value) if isinstance(value, float) else str(value)

    def _cut(self, prefix: str, rows: Iterable[str], suffix: str) -> Iterator[tuple[str, int]]:
        batch: list[str] = []
        size = 0
        for row in rows:
            if batch and (size + len(row) > self.max_bytes or len(batch) >= self.max_rows):
                yield f"{prefix}{','.join(batch)}{suffix}", len(batch)
                batch, size = [], 0
            batch.append(row)
            size += len(row) + 1
        if batch:
            yield f"{prefix}{','.join(batch)}{suffix}", len(batch)


def _stored(table: TableDescription) -> str:
    return stored_name(TableName(table.schema, table.table))


def as_read(column: Sql) -> Sql:
    """Return the expression of what a column holds: a literal with the same storage class and bytes, or a float as it is."""
    return compose(_AS_READ, column=column)


def _partition(rows: Iterable[Sequence[str]]) -> tuple[list[str], bool]:
    keys = [row[0] for row in rows]
    return [key for key in keys if key != "NULL"], "NULL" in keys


def _rowid(table: TableDescription) -> str:
    """Name the rowid by a word that is not a column of the table."""
    taken = {column.name.casefold() for column in table.columns}
    free = next((name for name in ROWID_NAMES if name not in taken), None)
    if free is None:
        raise FatalSinkError(
            "all names of SQLite's rowid are columns of the table",
            remedy="Rename one of them upstream",
            table=f"{table.schema}.{table.table}",
        )
    return free


def _join_prefix(table: Sql, rowid: str) -> Sql:
    # CROSS JOIN keeps the order: keys outside, the table's index inside. (Row values IN (VALUES …) would scan the table.)
    return compose("DELETE FROM {table} WHERE {rowid} IN (SELECT t.{rowid} FROM (VALUES ", table=table, rowid=Sql(rowid))


def _join_suffix(table: Sql, columns: Sequence[str]) -> Sql:
    conditions = [compose("t.{column} IS k.column{n}", column=quote(name), n=Sql(str(n))) for n, name in enumerate(columns, 1)]
    return compose(") AS k CROSS JOIN {table} AS t ON {conditions})", table=table, conditions=Sql(" AND ".join(conditions)))


# --- literals -----------------------------------------------------------------------------------------------------------


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
                remedy="Declare the column as TEXT (DECIMAL) or without a type (unsigned 64-bit integers)",
                column=column.name,
                declared=column.sql_type.removeprefix(FOREIGN),
            )
        return render(value)

    return guarded


def _mismatch(column: ColumnDescription, mysql_type: int) -> FatalSinkError:
    return FatalSinkError(
        "the sink's column has another type than the rows",
        remedy="The sink lacks a DDL of upstream: change the column by hand, its rows included",
        column=column.name,
        declared=column.sql_type,
        wire_type=mysql_type,
    )


def _unknown_label(column: ColumnDescription, value: int) -> RowRefused:
    return RowRefused(
        "the sink's column lacks the label of a value",
        remedy="The sink lacks a DDL of upstream: change the column by hand, its rows included",
        column=column.name,
        declared=column.sql_type,
        ordinal=value,
    )


def _ambiguous(column: ColumnDescription, value: int) -> RowRefused:
    return RowRefused(
        "the sink stores labels: in a column with an empty label, this value would equal another one",
        remedy="Use a MySQL, MariaDB or TiDB sink for the table, or give the empty label a text upstream",
        column=column.name,
        declared=column.sql_type,
        ordinal=value,
    )
