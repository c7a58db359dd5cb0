"""Values of an SQLite file in the forms of the comparison, and their digests: what ``mysql_text.py`` lets a server compute."""

from collections.abc import Sequence
from decimal import Decimal
from hashlib import sha256
from zlib import crc32

from applier.ddl.column_type import TypeFamily
from applier.sinks.sqlite.literals import blob, number, plain, text
from applier.sinks.sqlite.names import quote, stored_name
from applier.sinks.sqlite.stored_value import floating, single_precision
from applier.verify.mysql_text import HEX_DIGITS
from applier.verify.reader import Key, Scope, Value
from applier.verify.table_pair import VARIABLE, ColumnPair, Form, TablePair
from applier.verify.value import read_float, read_text, write_float

Stored = int | float | str | bytes | None


class StoredTable:
    """Reads and digests the rows of one table of the file. Names and literals are those of the SQLite sink."""

    def __init__(self, pair: TablePair) -> None:
        self._pair = pair
        self._key = pair.key_positions()
        self.table = quote(stored_name(pair.sink.name))

    def select(self, condition: str) -> str:
        """Write the query of all columns."""
        names = ", ".join(quote(column.sink.name) for column in self._pair.columns)
        return f"SELECT {names} FROM {self.table} WHERE {condition}"  # noqa: S608 - names are quoted, values rendered

    def bound(self, low: Key | None, rows: int) -> str:
        """Write the query of the end of the next range."""
        order = ", ".join(quote(column.sink.name) for column in self._pair.ranged)
        return f"{self.select(self.condition(Scope(low=low)))} ORDER BY {order} LIMIT 1 OFFSET {rows - 1}"

    def condition(self, scope: Scope) -> str:
        """Write the condition of a range of keys."""
        names = ",".join(quote(column.sink.name) for column in self._pair.ranged)
        limits = [(sign, limit) for sign, limit in ((">", scope.low), ("<=", scope.high)) if limit is not None]
        return " AND ".join(f"({names}) {sign} ({self._literals(limit)})" for sign, limit in limits) or "TRUE"

    def among(self, keys: Sequence[Key]) -> str:
        """Write the condition of some keys."""
        columns = self._pair.key
        each = (" AND ".join(f"{quote(c.sink.name)} = {_literal(c, v)}" for c, v in zip(columns, key, strict=True)) for key in keys)
        return f"(({') OR ('.join(each)}))"

    def values(self, row: Sequence[Stored]) -> tuple[Value, ...]:
        """Return the values of a row in the forms of the comparison."""
        return tuple(None if value is None else _form(column, value) for column, value in zip(self._pair.columns, row, strict=True))

    def key(self, values: Sequence[Value]) -> Key:
        """Return the key of a row."""
        return tuple(values[at] or b"" for at in self._key)

    def key_digest(self, values: Sequence[Value]) -> int:
        """Return the digest of the key."""
        return crc32(_joined(self._pair.key, [values[at] for at in self._key])) if self._key else 0

    def row_digest(self, values: Sequence[Value]) -> str:
        """Return the digest of the whole row."""
        return sha256(_joined(self._pair.columns, values)).hexdigest()

    def _literals(self, key: Key) -> str:
        return ",".join(_literal(column, value) for column, value in zip(self._pair.ranged, key, strict=True))


def summand(digest: str) -> int:
    """Return the part of a digest that is summed."""
    return int(digest[:HEX_DIGITS], 16)


def _joined(columns: Sequence[ColumnPair], values: Sequence[Value]) -> bytes:
    parts = [b"1" if value is None else b"0" for column, value in zip(columns, values, strict=True) if column.is_nullable]
    for column, value in zip(columns, values, strict=True):
        if value is None:
            continue
        if column.is_large:
            parts.append(sha256(value).hexdigest().encode())
        elif column.form in VARIABLE:
            parts += [str(len(value)).encode(), value]
        else:
            parts.append(value)
    return b",".join(parts)


def _form(column: ColumnPair, value: Stored) -> bytes:  # noqa: PLR0911 - one per form
    """Write a stored value in its form; a value of another kind is written so that it equals nothing."""
    match column.form, value:
        case Form.INTEGER, int() | str():
            return str(value).encode()
        case Form.DECIMAL, int() | str():
            return _decimal(column, str(value))
        case Form.DOUBLE, int() | float() | str():
            return write_float(_number(column, float(value)))
        case Form.BYTES, bytes():
            return _padded(column, value)
        case Form.MOMENT, str():
            return _moment(column, value).encode()
        case ((Form.TEXT | Form.LABEL | Form.JSON | Form.VECTOR), str()):
            return value.encode("utf-8", "surrogateescape")
        case _:
            return f"stored as {type(value).__name__}: {value!r}".encode("utf-8", "surrogateescape")


def _decimal(column: ColumnPair, value: str) -> bytes:
    exact = Decimal(value)
    shown = f"{exact:.{column.scale}f}"
    # More digits than the column has: as they are, so that they differ.
    return shown.removeprefix("-").encode() if not exact else (shown if Decimal(shown) == exact else value).encode()


def _number(column: ColumnPair, value: float) -> float:
    """Return the 32-bit number that the file's text of a FLOAT stands for."""
    kind = column.upstream.type
    return single_precision(value) if kind is not None and kind.family is TypeFamily.FLOAT else value


def _padded(column: ColumnPair, value: bytes) -> bytes:
    kind = column.upstream.type
    return value.ljust(kind.max_characters or 0, b"\0") if kind is not None and kind.base == "binary" else value


def _moment(column: ColumnPair, value: str) -> str:
    is_date = column.upstream.type is not None and column.upstream.type.family is TypeFamily.DATE
    whole, point, fraction = value.partition(".")
    if is_date and not (column.sink.type is None or column.sink.type.family is TypeFamily.DATE):
        whole = whole if " " in whole else f"{whole} 00:00:00"
    return whole + ("." + fraction.ljust(column.scale, "0") if column.scale or point else "")


def _literal(column: ColumnPair, value: bytes) -> str:
    """Write a value of a key as the file stores it."""
    match column.form:
        case Form.INTEGER:
            return plain(int(value))
        case Form.BYTES:
            return blob(value)
        case Form.DOUBLE:
            return number(_as_stored(column, read_float(value)))
        case _:
            return text(read_text(value))


def _as_stored(column: ColumnPair, value: float) -> float:
    """Return the number that the file has for a value of the form: of a FLOAT, that of its shortest text."""
    kind = column.upstream.type
    return floating(value, kind) if kind is not None and kind.family is TypeFamily.FLOAT else value
