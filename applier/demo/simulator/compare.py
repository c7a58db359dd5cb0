"""Comparison of two databases: tables, columns, indexes and every value, in a form that does not depend on either's types.

What a value means is decided by the upstream's column type, known from the history: a sink may store a DECIMAL as text, but not as a
floating point number, and ENUM and SET by their labels.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from applier.demo.simulator.column_type import TypeClass, UpstreamType
from applier.demo.simulator.mysql_text import label_text
from applier.demo.simulator.schema import Table, UpstreamColumn
from applier.model.events import TableName

_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFacts:
    """An index: ``name`` is "" where the database does not keep it (an SQLite constraint)."""

    name: str
    columns: tuple[str, ...]
    unique: bool
    primary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """A column as a database describes it. ``type_text`` "" where the declared type means nothing."""

    name: str
    nullable: bool
    type_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """A table of one database with all its rows, as the driver gave them."""

    columns: tuple[ColumnFacts, ...]
    indexes: frozenset[IndexFacts]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseFacts:
    """Everything in one database that can be compared."""

    tables: Mapping[TableName, TableFacts]
    views: frozenset[TableName]


def canonical(kind: UpstreamType, value: Any) -> str:
    """Write a value so that equal values, and only they, have equal text; a value of a wrong kind is marked."""
    if value is None:
        return "NULL"
    try:
        return _CANONICAL[kind.kind](kind, value)
    except (ValueError, TypeError, AttributeError, InvalidOperation, UnicodeDecodeError, struct.error) as error:
        # A value of a wrong kind is a difference between the databases, not an error of the comparison.
        return f"not a {kind.sql}: {value!r} ({error})"


def _number(kind: UpstreamType, value: Any) -> str:
    if isinstance(value, bytes) and kind.kind is TypeClass.BIT:
        return str(int.from_bytes(value))
    # A float may print as the number and have lost digits all the same.
    if isinstance(value, float):
        raise TypeError("floating point")
    return str(int(value))


def _decimal(kind: UpstreamType, value: Any) -> str:
    if isinstance(value, float):
        raise TypeError("floating point")
    exact = Decimal(value)
    text = f"{exact:.{kind.scale}f}"
    if Decimal(text) != exact:
        raise ValueError("more digits than the column has")
    return text


def _single(_kind: UpstreamType, value: Any) -> str:
    return str(struct.unpack("<f", struct.pack("<f", _real(value)))[0])


def _double(_kind: UpstreamType, value: Any) -> str:
    return repr(_real(value))


def _real(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError("text")
    return float(value)


def _text(_kind: UpstreamType, value: Any) -> str:
    if isinstance(value, bytes):  # how SQLite's driver shows text that is not UTF-8
        value = value.decode("utf-8", "surrogateescape")
    if not isinstance(value, str):
        raise TypeError("not text")
    return "text " + value


def _bytes(_kind: UpstreamType, value: Any) -> str:
    if not isinstance(value, bytes):
        raise TypeError("not bytes")
    return "bytes " + value.hex()


def _label(kind: UpstreamType, value: Any) -> str:
    column = UpstreamColumn(name="", type=kind)
    return "label " + (label_text(column, value) if isinstance(value, int) else str(value))


def _moment(kind: UpstreamType, value: Any) -> str:
    match value:
        case datetime():
            return value.strftime("%Y-%m-%d %H:%M:%S") + (f".{value.microsecond:06d}"[: kind.size + 1] if kind.size else "")
        case date():
            return value.isoformat()
        case timedelta():
            raise TypeError("an interval: read TIME as text")
        case _:
            return str(value)


_CANONICAL = {
    TypeClass.INTEGER: _number,
    TypeClass.YEAR: _number,
    TypeClass.BIT: _number,
    TypeClass.DECIMAL: _decimal,
    TypeClass.FLOAT: _single,
    TypeClass.DOUBLE: _double,
    TypeClass.STRING: _text,
    TypeClass.TEXT: _text,
    TypeClass.JSON: _text,
    TypeClass.BINARY: _bytes,
    TypeClass.BLOB: _bytes,
    TypeClass.ENUM: _label,
    TypeClass.SET: _label,
    TypeClass.DATE: _moment,
    TypeClass.DATETIME: _moment,
    TypeClass.TIMESTAMP: _moment,
    TypeClass.TIME: _moment,
}


def differences(expected: DatabaseFacts, actual: DatabaseFacts, tables: Mapping[TableName, Table]) -> list[str]:
    """List what differs, one line each; [] if the databases are equal. ``tables`` are the upstream's definitions."""
    found = _set_differences("table", expected.tables, actual.tables)
    found += _set_differences("view", expected.views, actual.views)
    for name in sorted(expected.tables.keys() & actual.tables.keys()):
        found += _table_differences(name, expected.tables[name], actual.tables[name], tables[name])
    return found


def _set_differences(what: str, expected: Iterable[TableName], actual: Iterable[TableName]) -> list[str]:
    wanted, given = set(expected), set(actual)
    return [f"{what} {name} is missing" for name in sorted(wanted - given)] + [
        f"{what} {name} is too many" for name in sorted(given - wanted)
    ]


def _table_differences(name: TableName, expected: TableFacts, actual: TableFacts, table: Table) -> list[str]:
    if [column.name for column in expected.columns] != [column.name for column in actual.columns]:
        want, got = ([column.name for column in facts.columns] for facts in (expected, actual))
        return [f"columns of {name}: expected {want}, found {got}"]
    found = [
        f"column {name}.{want.name}: expected {want}, found {got}"
        for want, got in zip(expected.columns, actual.columns, strict=True)
        if want.nullable != got.nullable or (want.type_text and got.type_text and want.type_text != got.type_text)
    ]
    return found + _index_differences(name, expected, actual) + _row_differences(name, expected, actual, table)


def _index_differences(name: TableName, expected: TableFacts, actual: TableFacts) -> list[str]:
    """Compare indexes by columns and kind, and by name where both databases keep names."""
    found = []
    want, got = (Counter((i.columns, i.unique, i.primary) for i in facts.indexes) for facts in (expected, actual))
    found += [f"index on {name}{shape[0]} is missing (unique, primary: {shape[1:]})" for shape in (want - got)]
    found += [f"index on {name}{shape[0]} is too many (unique, primary: {shape[1:]})" for shape in (got - want)]
    names = [{i.name for i in facts.indexes if not i.primary} for facts in (expected, actual)]
    if not found and "" not in names[0] | names[1] and names[0] != names[1]:
        found.append(f"index names of {name}: expected {sorted(names[0])}, found {sorted(names[1])}")
    return found


def _row_differences(name: TableName, expected: TableFacts, actual: TableFacts, table: Table) -> list[str]:
    kinds = [column.type for column in table.columns]
    if len(kinds) != len(expected.columns):
        return [f"the history knows {len(kinds)} columns of {name}, the databases {len(expected.columns)}"]
    # Counted, not a set: a table without a key may hold equal rows.
    want, got = (Counter(tuple(map(canonical, kinds, row)) for row in facts.rows) for facts in (expected, actual))
    missing, extra = want - got, got - want
    lines = [f"row of {name} is missing: {_shown(table, row)}" for row in list(missing)[:_SHOWN]]
    lines += [f"row of {name} is too many: {_shown(table, row)}" for row in list(extra)[:_SHOWN]]
    rest = missing.total() + extra.total() - len(lines)
    return lines + ([f"… and {rest} more rows of {name}"] if rest > 0 else [])


def _shown(table: Table, row: tuple[str, ...]) -> str:
    return ", ".join(f"{column.name}={value[:60]!r}" for column, value in zip(table.columns, row, strict=True))
