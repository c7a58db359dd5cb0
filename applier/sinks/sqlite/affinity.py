"""How SQLite stores MySQL's column types without changing a value.

Tables are STRICT, so SQLite refuses what does not fit instead of converting it. Affinity decides what stays exact: INTEGER holds signed
64 bits; BIGINT UNSIGNED and BIT(64) are ANY, which converts nothing, and their values above 2^63-1 are decimal text (as a number SQLite
would make them floating point); DECIMAL, dates and times are TEXT; FLOAT and DOUBLE are REAL; ENUM and SET are the TEXT of their labels.
"""

from typing import Final

from applier.ddl.column_type import ColumnType, TypeFamily

MAX_SIGNED: Final = 2**63 - 1


def affinity(column: ColumnType) -> str:
    """Return the type of the SQLite column."""
    match column.family:
        case TypeFamily.INTEGER | TypeFamily.BIT | TypeFamily.YEAR:
            return "ANY" if column.highest > MAX_SIGNED else "INTEGER"
        case TypeFamily.FLOAT | TypeFamily.DOUBLE:
            return "REAL"
        case TypeFamily.BINARY:
            return "BLOB"
        case _:
            return "TEXT"
