"""How rows are written down for SQLite: literals, DELETE by key, multi-row REPLACE. Pure; crosses to executors.

Literals have the storage class that the column keeps as it is (``column_type.py``). Text with a NUL or with bytes that are not UTF-8
cannot stand in SQL text and is cast from its bytes. ENUM and SET become their labels.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import frexp, isinf, isnan
from typing import Final

from applier.model.errors import FatalSinkError, RowRefused
from applier.model.events import TableName, Value
from applier.planner.catalogue import ColumnDescription, TableDescription
from applier.planner.port import Literal
from applier.sinks.sqlite.catalogue import FOREIGN
from applier.sinks.sqlite.names import ROWID_NAMES, Sql, compose, quote, quote_all, stored_name

_MAX_SIGNED: Final = 2**63 - 1
_MIN_SIGNED: Final = -(2**63)
_ENUM: Final = 247
_SET: Final = 248
_DECIMAL: Final = 246


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


def plain(value: Value) -> str:
    """Render a value for a column that is not binary."""
    match value:
        case str():
            return text(value)
        case None:
            return "NULL"
        case int():
            # Beyond 63 bits SQLite reads a number as a float: the column keeps decimal text (`column_type.py`).
            return str(value) if _MIN_SIGNED <= value <= _MAX_SIGNED else f"'{value}'"
        case float():
            return number(value)
        case bytes():
            return f"CAST(x'{value.hex()}' AS TEXT)"


def text(value: str) -> str:
    """Render text; through its bytes where SQL text cannot carry it."""
    if "\0" in value:
        return f"CAST(x'{value.encode('utf-8', 'surrogateescape').hex()}' AS TEXT)"
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return f"CAST(x'{value.encode('utf-8', 'surrogateescape').hex()}' AS TEXT)"
    return "'" + value.replace("'", "''") + "'"


EXACT_INTEGERS: Final = 2**53
"""Below it every integer is a float."""
MAX_SHIFT: Final = 62
"""The greatest power of two that is an integer of SQLite."""


def number(value: float) -> str:
    """Render a float so that it reads back as the same one; RowRefused for NaN, which SQLite would make NULL.

    SQLite's reading of a decimal fraction may miss the last bit, so it gets an integer scaled by powers of two: both are exact.
    """
    if isnan(value):
        raise RowRefused("NaN cannot be stored", remedy="Look for a defect in the producer")
    # SQLite has no literal for infinity: a number beyond its range reads as one.
    if isinf(value):
        return "9e999" if value > 0 else "-9e999"
    if value.is_integer() and abs(value) < EXACT_INTEGERS:
        return repr(value)
    fraction, exponent = frexp(value)
    return f"({fraction * EXACT_INTEGERS:.1f}{_scaled(exponent - 53)})"


def _scaled(exponent: int) -> str:
    operator, text, left = ("*", "", exponent) if exponent > 0 else ("/", "", -exponent)
    while left > 0:
        step = min(left, MAX_SHIFT)
        text += f"{operator}{1 << step}"
        left -= step
    return text


def blob(value: Value) -> str:
    """Render a value for a binary column: text as the bytes that it stands for."""
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    return f"x'{value.hex()}'" if isinstance(value, bytes) else plain(value)


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
        is_great = isinstance(value, int) and value > _MAX_SIGNED
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
