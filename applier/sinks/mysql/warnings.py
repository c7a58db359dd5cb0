"""Distinguishes harmless warnings of a statement from those about a value that was altered.

The session's sql_mode is not strict (why: ``session_variables.SQL_MODE``), so a value that does not fit is stored cut, with a warning. The
writer rolls such a statement back: no value is altered silently (DESIGN.md section 6).
"""

from typing import Any, Final, NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from applier.model.errors import NULL_VALUE, Remedy, RowRefused
from applier.model.events import TableName
from applier.mysql.catalogue import describe
from applier.mysql.errors import translate
from applier.mysql.queries import QUERIES
from applier.planner.port import Statement

HARMLESS: Final = frozenset({1592, 3170, 1287, 1681, 3719, 3778, 4166, 6414})
"""Warnings that are not about values: a statement that is unsafe for statement-based binary logs, one that was too large for a plan by
ranges (MySQL's range_optimizer_max_mem_size), and what MySQL calls deprecated (engines with and without transactions in one transaction
too: the table check stops at such a table unless it is accepted)."""
TRUNCATED: Final = 1265
"""Raised by ENUM ordinal 0, which is what upstream holds (the dialect refuses ordinals beyond the sink's elements), and by real losses."""
OUT_OF_RANGE: Final = 1264
NULLS: Final = frozenset({1048, 1263})
"""A NULL for a column that is NOT NULL: of a statement of many rows, and of a bulk load."""
_DEFINE_TABLE: Final = Remedy("mysql.define-table-after-warning", "Give the sink's table the definition that it has upstream")


class _Warning(NamedTuple):
    code: int
    text: str

    def is_about(self, columns: frozenset[str]) -> bool:
        """Return whether it says that the value of one of ``columns`` was truncated."""
        return self.code == TRUNCATED and any(f"'{column}'" in self.text for column in columns)


def judge_warnings(connection: Connection, statement: Statement, count: int, harmless: frozenset[int] = HARMLESS) -> None:
    """Raise RowRefused unless every one of the ``count`` warnings of the statement is known to be harmless."""
    facts: dict[str, Any] = {"table": statement.table, "min_ts": statement.min_ts, "max_ts": statement.max_ts}
    try:
        shown = [_Warning(int(row[1]), str(row[2])) for row in connection.execute(QUERIES["warnings"])]
        suspect = [warning for warning in shown if warning.code not in harmless]
        if any(warning.code == TRUNCATED for warning in suspect):
            enums = _enum_columns(connection, statement.table)
            suspect = [warning for warning in suspect if not warning.is_about(enums)]
    except (SQLAlchemyError, OSError) as error:
        raise translate(error, "reading warnings", **facts) from None
    # A server shows at most max_error_count warnings: one that it does not show may be the one that matters.
    if not suspect and len(shown) == count:
        return
    code = suspect[0].code if suspect else 0
    message = "the database would have changed a value silently; the transaction was rolled back"
    remedy = NULL_VALUE if code in NULLS else _DEFINE_TABLE
    raise RowRefused(message, remedy=remedy, code=code, **facts, **_column(suspect))


def _enum_columns(connection: Connection, table: str) -> frozenset[str]:
    """Name the ENUM columns of ``schema.table``. Either name may hold dots, so every position to cut is tried."""
    parts = table.split(".")
    names = [TableName(".".join(parts[:cut]), ".".join(parts[cut:])) for cut in range(1, len(parts))]
    columns = (column for described in describe(connection, names).values() for column in described.columns)
    return frozenset(column.name for column in columns if column.labels and not column.is_set)


def _column(suspect: list[_Warning]) -> dict[str, Any]:
    """Name the column. Only this warning's text is known to hold no value before the name."""
    if not suspect or suspect[0].code not in {TRUNCATED, OUT_OF_RANGE}:
        return {}
    return {"column": suspect[0].text.rpartition(" at row ")[0].rpartition(" ")[2].strip("'")}
