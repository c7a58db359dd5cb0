"""How rows are written down for a vault: row by row, by INSERT … ON CONFLICT."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from applier.model.errors import FatalSinkError, Remedy
from applier.planner.port import ColumnDescription, Literal, TableDescription, WritingDialect


def quote(name: str) -> str:
    return "[" + name.replace("]", "") + "]"


def stored(schema: str, table: str) -> str:
    return quote(f"{schema}!{table}")


@dataclass(frozen=True, slots=True)
class VaultDialect:
    def literal(self, column: ColumnDescription, mysql_type: int, *, is_bytes: bool = False) -> Literal:
        del column, mysql_type, is_bytes
        return written

    def deletes(self, table: TableDescription, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, int]]:
        for row in rows:
            yield f"DELETE FROM {stored(table.schema, table.table)} WHERE {_found(columns, row)}", 1

    def replaces(self, table: TableDescription, columns: Sequence[str], rows: Iterable[str]) -> Iterator[tuple[str, int]]:
        key = ",".join(map(quote, table.primary_key))
        changes = ",".join(f"{quote(name)}=excluded.{quote(name)}" for name in columns)
        names = ",".join(map(quote, columns))
        for row in rows:
            into = f"INSERT INTO {stored(table.schema, table.table)} ({names})"
            yield f"{into} VALUES {row} ON CONFLICT ({key}) DO UPDATE SET {changes}", 1

    def reads(
        self, table: TableDescription, key: Sequence[str], rows: Iterable[Sequence[str]], columns: Sequence[str]
    ) -> Iterator[tuple[str, int]]:
        names = ",".join(map(quote, columns))
        for number, row in enumerate(rows):
            yield f"SELECT {number},{names} FROM {stored(table.schema, table.table)} WHERE {_found(key, row)}", 1

    def read_literal(self, value: Any) -> str | None:
        return written(value)

    def whole_rows(self) -> WritingDialect:
        raise FatalSinkError("a vault takes no table without a key", remedy=Remedy("vault.give-key", "Give the table a primary key"))


def written(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return f"CAST(x'{value.encode().hex()}' AS TEXT)"
    return f"x'{value.hex()}'" if isinstance(value, bytes) else repr(value)


def _found(columns: Sequence[str], row: Sequence[str]) -> str:
    return " AND ".join(f"{quote(name)} IS {value}" for name, value in zip(columns, row, strict=True))
