"""Reads a vault for `applier verify`. Values are digested here; ranges are cut along whole numbers."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from time import time

from applier.ddl.table_draft import parse_type
from applier.ddl.tokens import Cursor
from applier.model.events import TableName
from applier.model.position import Ts
from applier.sinks.bookkeeping.progress_table import ProgressTable
from applier.sinks.settings import SinkSettings
from applier.sinks.table_pair import Names, ServerKind, SideColumn, SideTable, TablePair
from applier.sinks.table_reader import DIGEST_BITS, NOTHING, Checksum, Key, Scope, Value
from tests.vault.catalogue import describe, names_of
from tests.vault.dialect import quote, stored
from tests.vault.session import Vault, raw
from tests.vault.words import bookkeeping_of

VAULT = ServerKind(name="vault", is_wide=True, has_own_types=True, begins=("BEGIN IMMEDIATE",))


class VaultReader:
    kind = VAULT

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings

    def _vault(self):
        return Vault.of(self._settings).transaction()

    def names(self, *, without: Collection[str]) -> Names:
        del without
        with self._vault() as connection:
            tables = tuple(sorted(names_of(raw(connection))))
        return Names(tables=tables, known=frozenset(table.fold() for table in tables))

    def describe(self, tables: Collection[TableName]) -> Sequence[SideTable]:
        with self._vault() as connection:
            found = describe(raw(connection), tables).values()
        typed = {table: tuple(SideColumn(description=c, type=parse_type(Cursor(c.sql_type))) for c in table.columns) for table in found}
        return [SideTable(description=table, columns=columns) for table, columns in typed.items()]

    def begin(self, snapshot_ts: Ts | None = None) -> None:
        del snapshot_ts

    def end(self) -> None:
        pass

    def close(self) -> None:
        pass

    def checkpoint_ts(self) -> Ts | None:
        with self._vault() as connection:
            row = ProgressTable(bookkeeping_of(self._settings)).row(connection)
        return None if row is None else row.checkpoint_ts

    def checksum(self, pair: TablePair, scope: Scope) -> Checksum:
        return sum(self.checksums(pair, scope, 0).values(), NOTHING)

    def checksums(self, pair: TablePair, scope: Scope, bits: int) -> Mapping[int, Checksum]:
        found: Counter[int] = Counter()
        sums: dict[int, Checksum] = {}
        for values in self._within(pair, scope):
            part = self._part(pair, values, bits)
            found[part] += 1
            sums[part] = sums.get(part, NOTHING) + Checksum(1, int(_digest(values)[:15], 16))
        return sums

    def digests(self, pair: TablePair, scope: Scope) -> Sequence[tuple[Key, str]]:
        return [(self._key(pair, values), _digest(values)) for values in self._within(pair, scope)]

    def rows(self, pair: TablePair, keys: Sequence[Key]) -> Sequence[tuple[Value, ...]]:
        return [values for values in self._within(pair, Scope()) if self._key(pair, values) in set(keys)]

    def bound(self, pair: TablePair, low: Key | None, rows: int) -> Key | None:
        keys = sorted((self._key(pair, values)[: len(pair.ranged)] for values in self._within(pair, Scope(low=low))), key=_order)
        return keys[rows - 1] if len(keys) > rows else None

    def is_above(self, pair: TablePair, key: Key, low: Key) -> bool:
        del pair
        return _order(key) > _order(low)

    def clock_ms(self) -> int:
        return int(time() * 1000)

    def _within(self, pair: TablePair, scope: Scope) -> Iterator[tuple[Value, ...]]:
        names = ", ".join(quote(column.sink.name) for column in pair.columns)
        with self._vault() as connection:
            rows = raw(connection).execute(f"SELECT {names} FROM {stored(*pair.sink.name)}").fetchall()
        for row in rows:
            values = tuple(None if value is None else value if isinstance(value, bytes) else str(value).encode() for value in row)
            ranged = self._key(pair, values)[: len(pair.ranged)]
            above = scope.low is None or _order(ranged) > _order(scope.low)
            below = scope.high is None or _order(ranged) <= _order(scope.high)
            if above and below and (not scope.bits or self._part(pair, values, scope.bits) in scope.parts):
                yield values

    def _key(self, pair: TablePair, values: Sequence[Value]) -> Key:
        return tuple(values[at] or b"" for at in pair.key_positions())

    def _part(self, pair: TablePair, values: Sequence[Value], bits: int) -> int:
        return int(sha256(repr(self._key(pair, values)).encode()).hexdigest()[:8], 16) >> (DIGEST_BITS - bits) if bits else 0


def _order(key: Key) -> tuple[int, ...]:
    return tuple(int(part) for part in key)


def _digest(values: Sequence[Value]) -> str:
    return sha256(repr(values).encode()).hexdigest()
