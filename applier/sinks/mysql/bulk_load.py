"""The statement of a bulk load (``LOAD DATA LOCAL INFILE … REPLACE INTO TABLE``), with the meaning of a REPLACE. ``row`` renders its lines.

Everything that a server could take from its own settings is written out: the character set, the ends, the columns. Whatever is not
read from text as REPLACE reads it from a literal goes through a variable: bytes as hexadecimal digits, and BIT, ENUM and SET as numbers
(as text, ``1`` in a BIT column is the character, and in an ENUM the label). Beside such columns, MariaDB takes a zero that is read into an
AUTO_INCREMENT column for the next number; one that is assigned is a zero.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from applier.mysql.names import quote_identifier, quote_table
from applier.planner.port import ColumnDescription, TableDescription
from applier.sinks.mysql.fitting import data_type_of
from applier.sinks.mysql.row import ESCAPE, FIELD_END, LINE_END

FILE_NAME: Final = "applier-rows"
"""The name that the statement asks for. This file does not exist: the rows are sent from memory, and no other name is answered."""
LOAD_BYTES: Final = 4 * 1024 * 1024
"""Where a load is cut: larger ones gain nothing and hold memory."""


def loads(table: TableDescription, columns: Sequence[str], lines: Iterable[tuple[bytes, int]]) -> Iterator[tuple[bytes, bytes, int]]:
    """Yield (statement, content, rows) from lines of some rows and their number, in order, cut by bytes."""
    text = _statement(table, columns)
    batch: list[bytes] = []
    used = rows = 0
    for content, number in lines:
        if batch and used + len(content) > LOAD_BYTES:
            yield text, b"".join(batch), rows
            batch, used, rows = [], 0, 0
        batch.append(content)
        used += len(content)
        rows += number
    if batch:
        yield text, b"".join(batch), rows


def _statement(table: TableDescription, columns: Sequence[str]) -> bytes:
    by_name = {column.name: column for column in table.columns}
    needs_variables = any(_expression(by_name[name], "") for name in columns)
    targets, assignments = [], []
    for number, name in enumerate(columns):
        variable = f"@applier_{number}"
        expression = variable if needs_variables and by_name[name].auto_increment else _expression(by_name[name], variable)
        targets.append(variable if expression else quote_identifier(name))
        if expression:
            assignments.append(f"{quote_identifier(name)}={expression}")
    text = (
        f"LOAD DATA LOCAL INFILE '{FILE_NAME}' REPLACE INTO TABLE {quote_table(table.schema, table.table)} CHARACTER SET utf8mb4"
        f" FIELDS TERMINATED BY {_hexadecimal(FIELD_END)} ENCLOSED BY '' ESCAPED BY {_hexadecimal(ESCAPE)}"
        f" LINES STARTING BY '' TERMINATED BY {_hexadecimal(LINE_END)} ({','.join(targets)})"
    )
    return (f"{text} SET {','.join(assignments)}" if assignments else text).encode()


def _expression(column: ColumnDescription, variable: str) -> str:
    """Return what the column is set to; empty if it takes the text as it is."""
    if column.binary:
        return f"UNHEX({variable})"
    return f"CAST({variable} AS UNSIGNED)" if column.labels or data_type_of(column) == "bit" else ""


def _hexadecimal(sign: str) -> str:
    return f"X'{sign.encode().hex()}'"
