"""Loads the rows of dumps into a vault, each file in a transaction."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

from applier.model.events import TableName
from applier.mysql.insert_values import LiteralKind, columns_of, rows_of
from applier.sinks.dump_loader import DumpForm
from applier.sinks.settings import SinkSettings
from tests.vault.catalogue import describe, names_of
from tests.vault.dialect import VaultDialect, stored, written
from tests.vault.session import Vault, raw


class VaultRows:
    def __init__(self, settings: SinkSettings) -> None:
        self._vault, self._stack = Vault.of(settings), ExitStack()

    def set_charset(self, name: str) -> None:
        pass

    def set_zone(self, zone: str) -> None:
        pass

    def write(self, statement: bytes, end: int, table: TableName) -> int:
        (described,) = describe(self._raw, [table]).values()
        listed, at = columns_of(statement, end)
        names = listed or [column.name for column in described.columns]
        texts = [f"({','.join(map(_literal, row))})" for row in rows_of(statement, at)]
        for query, _ in VaultDialect().replaces(described, names, texts):
            self._raw.execute(query)
        return len(texts)

    def commit(self) -> None:
        self._stack.close()
        self.__enter__()

    def __enter__(self) -> Self:
        self._raw = raw(self._stack.enter_context(self._vault.transaction()))
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.__exit__(*raised)


@dataclass(frozen=True, slots=True)
class VaultLoader:
    settings: SinkSettings

    def present(self, names: Sequence[TableName]) -> Sequence[TableName]:
        with Vault.of(self.settings).transaction() as connection:
            found = {name.fold() for name in names_of(raw(connection))}
        return [name for name in names if name.fold() in found]

    def drop(self, tables: Sequence[TableName], views: Sequence[TableName]) -> None:
        del views
        found = self.present(tables)
        with Vault.of(self.settings).transaction() as connection:
            for name in found:
                raw(connection).execute(f"DROP TABLE {stored(*name)}")

    def count(self, tables: Sequence[TableName]) -> Mapping[TableName, int]:
        with Vault.of(self.settings).transaction() as connection:
            return {name: raw(connection).execute(f"SELECT COUNT(*) FROM {stored(*name)}").fetchone()[0] for name in tables}

    def open_rows(self, form: DumpForm, file: str) -> VaultRows:
        del form, file
        return VaultRows(self.settings)


def _literal(value: tuple[LiteralKind, bytes] | None) -> str:
    if value is None:
        return "NULL"
    kind, data = value
    return data.decode() if kind is LiteralKind.NUMBER else written(data.decode() if kind is LiteralKind.TEXT else data)
