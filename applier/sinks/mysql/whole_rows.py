"""Tables without a key: DELETE of one row that is equal in every column as it is stored, and INSERT.

``=`` is not enough to find a row: collations take ``a`` for ``A`` and for ``a ``, 0 equals -0, and a JSON document equals no string. So
text is compared as the bytes of its UTF-8 form, and other types as below (each seen on MariaDB 10.11 and MySQL 9.7).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from applier.mysql.quoting import quote_identifier, quote_table
from applier.planner.catalogue import ColumnDescription, TableDescription
from applier.sinks.mysql.cutting import COMMAND_BYTES, Cutter, head_of, most_rows_of, too_large
from applier.sinks.mysql.fitting import data_type_of

Comparison: TypeAlias = Callable[[str], str]
"""Literal -> the condition under which a column stores its value, or by which its rows are ordered."""

_TEXT: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_FLOATS: Final = frozenset({"float", "double"})
_ZERO, _NEGATIVE_ZERO = "0.0e0", "'-0'"


@dataclass(frozen=True, slots=True)
class MysqlWholeRows:
    """The dialect of tables without a key: see ``Dialect.whole_rows``."""

    max_packet_bytes: int
    max_rows: int
    max_warnings: int

    def deletes(self, table: TableDescription, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, int]]:
        """Render a DELETE of one row for each."""
        found = {column.name: column for column in table.columns}
        comparisons = [_comparison(found[name]) for name in columns]
        signs = [_sign_order(found[name]) for name in columns]
        head = f"DELETE FROM {quote_table(table.schema, table.table)} WHERE "  # noqa: S608 - this is where SQL is rendered
        for row in rows:
            conditions = " AND ".join(compare(literal) for compare, literal in zip(comparisons, row, strict=True))
            orders = ",".join(order for sign, literal in zip(signs, row, strict=True) if (order := sign(literal)))
            text = f"{head}{conditions}{orders and f' ORDER BY {orders}'} LIMIT 1"
            if (size := len(text.encode()) + COMMAND_BYTES) > self.max_packet_bytes:
                raise too_large(table, size, self.max_packet_bytes)
            yield text, 1

    def replaces(self, table: TableDescription, columns: Sequence[str], rows: Iterable[str]) -> Iterator[tuple[str, int]]:
        """Render multi-row INSERTs."""
        cutter = Cutter(table, self.max_packet_bytes, most_rows_of(table, self.max_rows, self.max_warnings))
        return cutter.cut(head_of("INSERT", table, columns), rows, ",", "")


def _comparison(column: ColumnDescription) -> Comparison:
    name, data_type = quote_identifier(column.name), data_type_of(column)
    if data_type in _TEXT and not column.binary:
        compare = partial(_same_text, name)
    elif data_type == "json":
        compare = partial(_same_json, name)
    elif data_type in _FLOATS:
        compare = partial(_same_float, name)
    elif column.labels:
        # No number is found in a SET with bit 63 but as the operand of a bit operation.
        compare = partial(_same, f"({name}|0)")
    elif data_type == "vector":
        compare = partial(_same, f"CAST({name} AS BINARY)")
    else:
        compare = partial(_same, name)
    return lambda literal: f"{name} IS NULL" if literal == "NULL" else compare(literal)


def _same(value: str, literal: str) -> str:
    return f"{value}={literal}"


def _same_text(name: str, literal: str) -> str:
    same = f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)=CAST({literal} AS BINARY)"
    # Equal bytes are equal text under any collation, and the first comparison can use an index. Not so beyond ASCII, where character sets
    # of servers differ in what they convert.
    return f"{name}={literal} AND {same}" if literal.isascii() and literal.startswith("'") else same


def _same_json(name: str, literal: str) -> str:
    # As text: to the server the numbers 1 and 1.0 are equal documents.
    return f"CAST(CAST({name} AS CHAR) AS BINARY)=CAST(CAST(CAST({literal} AS JSON) AS CHAR) AS BINARY)"


def _sign_order(column: ColumnDescription) -> Comparison:
    """Return the function that puts a zero of the literal's sign before one of the other sign. Empty: the literal is no such zero."""
    name = quote_identifier(column.name)
    if data_type_of(column) not in _FLOATS:
        return lambda _: ""
    # By an order and not by a condition: MariaDB stores no sign of a zero, so a row that came with -0 has none.
    orders = {_ZERO: f"ATAN2({name},-1)<0", _NEGATIVE_ZERO: f"ATAN2({name},-1)>0"}
    return lambda literal: orders.get(literal, "")


def _same_float(name: str, literal: str) -> str:
    # Not `{name}=0`: an optimizer would write 0 for the column in the order too.
    return f"ABS({name})=0" if literal in {_ZERO, _NEGATIVE_ZERO} else _same(name, literal)
