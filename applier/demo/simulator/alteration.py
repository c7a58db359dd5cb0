"""What ALTER TABLE does to a definition and to the rows that are there: pure functions, shared by generator and oracles.

Changes of a type after which old values differ are the ones that every server makes alike: fewer digits, ordinals, bytes, text. A change
that servers make differently stops a replica, so no history has it; the tests' builder ``conversions`` has those cases.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from applier.demo.simulator import column_type as of
from applier.demo.simulator.column_type import TypeClass, UpstreamType
from applier.demo.simulator.operation import (
    AddColumn,
    AddForeignKey,
    AddIndex,
    AlterTable,
    Clause,
    CreateTable,
    Ddl,
    DropColumn,
    DropForeignKey,
    DropIndex,
    ModifyColumn,
    RenameColumn,
    RenameIndex,
    SetComment,
    SetDefault,
)
from applier.demo.simulator.schema import Table, UpstreamColumn, UpstreamIndex
from applier.demo.simulator.session_zone import in_session
from applier.model.events import Value

_DIGITS: Final = Context(prec=70, rounding=ROUND_HALF_UP)
"""A DECIMAL has 65 digits at most, and each server rounds half away from zero."""

_Convert = Callable[[Value, UpstreamType, UpstreamType], Value]


def converting_types(kind: UpstreamType) -> tuple[UpstreamType, ...]:  # noqa: PLR0911 - one case per kind of type
    """Return types that a column of ``kind`` may get."""
    match kind.kind:
        case TypeClass.DECIMAL if kind.scale > 1:
            return (of.decimal(kind.size, 1), of.integer("BIGINT"), of.varchar(60)) if kind.size < 18 else ()
        case TypeClass.DECIMAL if kind.size < 18:
            return (of.integer("BIGINT"),)
        case TypeClass.ENUM | TypeClass.BIT:
            return (of.integer("INT"),)
        case TypeClass.SET:
            return (of.varchar(60),)
        case TypeClass.DATE:
            return (of.datetime(), of.varchar(30))
        case TypeClass.DATETIME:
            return (of.varchar(30),)
        case TypeClass.TIMESTAMP:
            return (of.datetime(kind.size), of.varchar(30))
        case TypeClass.STRING if kind.sql == "VARCHAR(30)":
            return (of.varbinary(120),)
        case _:
            return ()


def converted(value: Value, old: UpstreamType, new: UpstreamType) -> Value:
    """Return what a value becomes; one that is the same in both types, or whose text it is, stays. Labels may come for ENUM and SET."""
    if value is None:
        return None
    rule = _RULES.get((old.kind, new.kind))
    return value if rule is None else rule(value, old, new)


def _rounded(value: Value, _old: UpstreamType, new: UpstreamType) -> str:
    number = Decimal(str(value)).quantize(Decimal(1).scaleb(-new.scale), context=_DIGITS)
    return f"{number or abs(number):f}"


def _whole(value: Value, old: UpstreamType, new: UpstreamType) -> int:
    return int(_rounded(value, old, new))


def _ordinal(value: Value, old: UpstreamType, _new: UpstreamType) -> Value:
    if isinstance(value, str):
        return old.labels.index(value) + 1 if value else 0
    return value


def _label_list(value: Value, old: UpstreamType, _new: UpstreamType) -> Value:
    if isinstance(value, int):
        return ",".join(label for place, label in enumerate(old.labels) if value >> place & 1)
    return value


def _encoded(value: Value, _old: UpstreamType, _new: UpstreamType) -> bytes:
    return str(value).encode()


def _midnight(value: Value, _old: UpstreamType, _new: UpstreamType) -> str:
    return str(value) + " 00:00:00"


def _in_session(value: Value, _old: UpstreamType, _new: UpstreamType) -> str:
    return in_session(str(value))


_RULES: Final[dict[tuple[TypeClass, TypeClass], _Convert]] = {
    (TypeClass.DECIMAL, TypeClass.DECIMAL): _rounded,
    (TypeClass.INTEGER, TypeClass.DECIMAL): _rounded,
    (TypeClass.DECIMAL, TypeClass.INTEGER): _whole,
    (TypeClass.ENUM, TypeClass.INTEGER): _ordinal,
    (TypeClass.SET, TypeClass.STRING): _label_list,
    (TypeClass.STRING, TypeClass.BINARY): _encoded,
    (TypeClass.DATE, TypeClass.DATETIME): _midnight,
    (TypeClass.TIMESTAMP, TypeClass.DATETIME): _in_session,
    (TypeClass.TIMESTAMP, TypeClass.STRING): _in_session,
    (TypeClass.INTEGER, TypeClass.STRING): lambda value, *_: str(value),
}


def _with_fraction(text: str) -> Callable[[UpstreamType], Value]:
    return lambda kind: text + ("." + "0" * kind.size if kind.size else "")


_IMPLICIT: dict[TypeClass, Callable[[UpstreamType], Value]] = {
    TypeClass.DATE: lambda _: "0000-00-00",
    TypeClass.DATETIME: _with_fraction("0000-00-00 00:00:00"),
    TypeClass.TIMESTAMP: _with_fraction("0000-00-00 00:00:00"),
    TypeClass.TIME: _with_fraction("00:00:00"),
    TypeClass.DECIMAL: lambda kind: f"{Decimal(0):.{kind.scale}f}",
    TypeClass.STRING: lambda _: "",
    TypeClass.TEXT: lambda _: "",
    TypeClass.BINARY: lambda kind: bytes(kind.size if kind.sql.startswith("BINARY") else 0),
    TypeClass.BLOB: lambda _: b"",
    TypeClass.ENUM: lambda _: 1,
    TypeClass.FLOAT: lambda _: 0.0,
    TypeClass.DOUBLE: lambda _: 0.0,
}


def implicit_default(kind: UpstreamType) -> Value:
    """Return what ADD COLUMN … NOT NULL without a default gives to existing rows."""
    maker = _IMPLICIT.get(kind.kind)
    return maker(kind) if maker else 0


def convert(value: Value, old: UpstreamType, new: UpstreamType) -> Value:
    """Convert a value as MODIFY COLUMN does."""
    return converted(value, old, new)


def fill_of(column: UpstreamColumn) -> Value:
    """Return the value that an added column has in rows that were there before."""
    return column.default if column.has_default or column.nullable else implicit_default(column.type)


def altered(table: Table, clauses: Sequence[Clause]) -> tuple[Table, list[str | None]]:
    """Return the definition after the clauses, and for each of its columns the old column that it comes from (None: added)."""
    columns = [(column, column.name) for column in table.columns]
    origin: list[tuple[UpstreamColumn, str | None]] = list(columns)
    for clause in clauses:
        table, origin = _alter_one(table, origin, clause)
    return replace(table, columns=tuple(column for column, _ in origin)), [source for _, source in origin]


def explicit(ddl: Ddl) -> Ddl:
    """Return a DDL that leaves nothing to the server: indexes have the names, and generated columns the values, of upstream."""
    match ddl:
        case CreateTable(table, batch):
            columns = tuple(replace(column, generation=None) for column in table.columns)
            indexes = tuple(replace(index, named=True) for index in table.indexes)
            return CreateTable(replace(table, columns=columns, indexes=indexes), batch)
        case AlterTable(before, clauses):
            return AlterTable(before, tuple(_explicit_clause(clause) for clause in clauses))
        case _:
            return ddl


def is_compared(ddl: Ddl) -> bool:
    """Return whether a DDL changes what is compared.

    Indexes of expressions are not, because not every database has them; nor are foreign keys: their names are upstream's in each table,
    and another server's in each schema.
    """
    return not (isinstance(ddl, AlterTable) and any(_is_of_some_servers(ddl.before, clause) for clause in ddl.clauses))


def _is_of_some_servers(before: Table, clause: Clause) -> bool:
    match clause:
        case AddForeignKey() | DropForeignKey():
            return True
        case AddIndex(index, _):
            return bool(index.expression)
        case DropIndex(name):
            return any(index.name == name and index.expression for index in before.indexes)
        case _:
            return False


def _explicit_clause(clause: Clause) -> Clause:
    match clause:
        case AddIndex(index, _):
            return replace(clause, index=replace(index, named=True))
        case _:
            return clause


_Origin = list[tuple[UpstreamColumn, str | None]]


def _alter_one(table: Table, origin: _Origin, clause: Clause) -> tuple[Table, _Origin]:  # noqa: C901, PLR0912 - one case per kind of clause
    match clause:
        case AddColumn(column, after):
            origin = _placed(origin, (column, None), after)
        case DropColumn(name):
            origin = [pair for pair in origin if pair[0].name != name]
        case RenameColumn(old, new, _):
            origin = [(replace(column, name=new) if column.name == old else column, source) for column, source in origin]
            indexes = tuple(replace(i, columns=tuple(new if name == old else name for name in i.columns)) for i in table.indexes)
            table = replace(table, indexes=indexes)
        case ModifyColumn(column, after):
            source = next(source for present, source in origin if present.name == column.name)
            if after is None:
                origin = [(column, src) if present.name == column.name else (present, src) for present, src in origin]
            else:
                origin = _placed([pair for pair in origin if pair[0].name != column.name], (column, source), after)
        case SetDefault(column):
            origin = [(column if present.name == column.name else present, source) for present, source in origin]
        case AddIndex(index, _):
            table = replace(table, indexes=(*table.indexes, index))
        case DropIndex(name):
            table = replace(table, indexes=tuple(index for index in table.indexes if index.name != name))
        case RenameIndex(old, new):
            table = replace(table, indexes=tuple(_renamed_index(index, old, new) for index in table.indexes))
        case AddForeignKey(name, _, _):
            number = table.last_foreign_key + 1
            table = replace(table, foreign_keys=(*table.foreign_keys, name), last_foreign_key=number)
        case DropForeignKey(name):
            table = replace(table, foreign_keys=tuple(key for key in table.foreign_keys if key != name))
        case SetComment(comment):
            table = replace(table, comment=comment)
    return table, origin


def _renamed_index(index: UpstreamIndex, old: str, new: str) -> UpstreamIndex:
    return replace(index, name=new, named=True) if index.name == old else index


def _placed(origin: _Origin, pair: tuple[UpstreamColumn, str | None], after: str | None) -> _Origin:
    if after is None:
        return [*origin, pair]
    place = 1 + [column.name for column, _ in origin].index(after) if after else 0
    return [*origin[:place], pair, *origin[place:]]
