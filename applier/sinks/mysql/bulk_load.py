"""The statement of a bulk load (``LOAD DATA LOCAL INFILE … REPLACE INTO TABLE``), with the meaning of a REPLACE. ``row`` renders its lines.

Everything that a server could take from its own settings is written out: the character set, the ends, the columns. Whatever is not
read from text as REPLACE reads it from a literal goes through a variable: bytes as hexadecimal digits, and BIT, ENUM and SET as numbers
(as text, ``1`` in a BIT column is the character, and in an ENUM the label). Beside such columns, MariaDB takes a zero that is read into an
AUTO_INCREMENT column for the next number; one that is assigned is a zero.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from applier.copy.lines import ESCAPE, FIELD_END, LINE_END
from applier.mysql.names import quote_identifier, quote_table
from applier.planner.port import ColumnDescription, TableDescription
from applier.sinks.mysql.fitting import data_type_of

FILE_NAME: Final = "applier-rows"
"""The name that the statement asks for. This file does not exist: the rows are sent from memory, and no other name is answered."""
BYTES: Final = "UNHEX({})"
NUMBER: Final = "CAST({} AS UNSIGNED)"
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
    return load_statement(table, [LoadedField(by_name[name], _form(by_name[name])) for name in columns])


class LoadedField(NamedTuple):
    """A field of the lines: the column that takes it, in the form of an expression of the field ("" for the text as it is)."""

    column: ColumnDescription | None
    """None: the field is read and not stored."""
    form: str = ""
    """With ``{}`` for the field."""


def load_statement(table: TableDescription, fields: Sequence[LoadedField], *, replaces: bool = True) -> bytes:
    """Return the statement that loads lines of these fields. Without ``replaces``, a row with the key of another one is a warning."""
    needs_variables = any(form for _, form in fields)
    targets, assignments = [], []
    for number, (column, form) in enumerate(fields):
        variable = f"@applier_{number}"
        expression = variable if column is not None and column.auto_increment and needs_variables else form.format(variable)
        targets.append(variable if column is None or expression else quote_identifier(column.name))
        if column is not None and expression:
            assignments.append(f"{quote_identifier(column.name)}={expression}")
    replace = " REPLACE" if replaces else ""
    text = (
        f"LOAD DATA LOCAL INFILE '{FILE_NAME}'{replace} INTO TABLE {quote_table(table.schema, table.table)} CHARACTER SET utf8mb4"
        f" FIELDS TERMINATED BY X'{FIELD_END.hex()}' ENCLOSED BY '' ESCAPED BY X'{ESCAPE.hex()}'"
        f" LINES STARTING BY '' TERMINATED BY X'{LINE_END.hex()}' ({','.join(targets)})"
    )
    return (f"{text} SET {','.join(assignments)}" if assignments else text).encode()


def _form(column: ColumnDescription) -> str:
    """Return what the column is set to; empty if it takes the text as it is."""
    if column.binary:
        return BYTES
    return NUMBER if column.labels or data_type_of(column) == "bit" else ""
