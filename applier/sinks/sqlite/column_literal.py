"""Which literal a column of SQLite takes: by what the sink declares, never by flags that may be stale. ENUM and SET become their labels."""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from applier.model.errors import FatalSinkError, RowRefused
from applier.model.events import Value
from applier.model.remedy import Remedy
from applier.planner.catalogue import ColumnDescription
from applier.planner.port import Literal
from applier.sinks.sqlite.catalogue import FOREIGN
from applier.sinks.sqlite.literals import MAX_SIGNED, blob, plain, text

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
