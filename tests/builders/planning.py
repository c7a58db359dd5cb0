"""Planner's test rig: rows on one line, a sink's tables, and a dialect whose statements can be read back."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from applier.model.chunk import Chunk, pack
from applier.model.errors import FatalSinkError
from applier.model.events import FoldedName, RowKind, Shape
from applier.model.position import Stream, Ts
from applier.model.segment import SegmentWindow
from applier.planner import PlanTarget, TransactionSet, plan_bucket
from applier.planner.port import ColumnDescription, Phase, Statement, TableDescription
from applier.sources.column_flags import Flag, shape_of
from applier.sources.open_protocol import OPEN_PROTOCOL, encode_key

INT, TEXT, BLOB = 3, 15, 252
KEY = int(Flag.HANDLE_KEY | Flag.PRIMARY_KEY | Flag.BINARY)
ORDERS = FoldedName("shop", "orders")
STREAM = Stream("feed", 3)


def shape(*columns: tuple[str, int, int], table: str = "orders") -> Shape:
    return shape_of("shop", table, columns)


ORDERS_SHAPE = shape(("id", INT, KEY), ("name", TEXT, int(Flag.NULLABLE)))


def sink_column(name: str, **facts: Any) -> ColumnDescription:
    return ColumnDescription(**({"name": name, "sql_type": "text", "nullable": False} | facts))


def sink_table(
    *columns: str | ColumnDescription, primary: Sequence[str] = ("id",), unique: Sequence[Sequence[str]] = (), table: str = "orders"
) -> TableDescription:
    described = tuple(sink_column(column) if isinstance(column, str) else column for column in columns)
    keys = ((tuple(primary),) if primary else ()) + tuple(tuple(key) for key in unique)
    return TableDescription(schema="shop", table=table, columns=described, unique_keys=keys, primary_key=tuple(primary))


ORDERS_TABLE = sink_table("id", "name")


@dataclass(frozen=True)
class Row:
    """A cached row; ``image`` overrides the bytes made of ``values``."""

    commit_ts: int
    kind: RowKind
    values: tuple[Any, ...]
    offset: int = 0
    index: int = 0
    shape: Shape = ORDERS_SHAPE
    image: bytes | None = None

    def key(self) -> bytes:
        names = [column.name for column in self.shape.columns]
        return encode_key([self.values[names.index(column.name)] for column in self.shape.handle_key])

    def bytes(self) -> bytes:
        if self.image is not None:
            return self.image
        columns = {c.name: {"t": c.mysql_type, "f": c.flags, "v": v} for c, v in zip(self.shape.columns, self.values, strict=True)}
        return json.dumps(columns).encode()


def put(commit_ts: int, *values: Any, **more: Any) -> Row:
    return Row(commit_ts, RowKind.UPSERT, values, **more)


def gone(commit_ts: int, *values: Any, **more: Any) -> Row:
    return Row(commit_ts, RowKind.DELETE, values, **more)


def chunk(*rows: Row, stream: Stream = STREAM) -> Chunk:
    shapes = list(dict.fromkeys(row.shape for row in rows))
    return Chunk(
        origins=[(stream, shape) for shape in shapes],
        origin=[shapes.index(row.shape) for row in rows],
        commit_ts=[row.commit_ts for row in rows],
        kind=[int(row.kind) for row in rows],
        offset=[row.offset for row in rows],
        index=[row.index for row in rows],
        key=[row.key() for row in rows],
        image=[row.bytes() for row in rows],
    )


def packed(*rows: Row, stream: Stream = STREAM) -> bytes:
    return pack(0, chunk(*rows, stream=stream)).data


def _plain(value: Any) -> str:
    return json.dumps({"bytes": value.hex()} if isinstance(value, bytes) else value)


@dataclass(frozen=True)
class PlainDialect:
    """Statements as JSON: ``[operation, table, columns, rows]``; at most ``most`` rows each, no row longer than ``longest``."""

    most: int = 1000
    longest: int = 10_000
    keyless: bool = False

    def literal(self, column: ColumnDescription, mysql_type: int, *, is_bytes: bool = False) -> Any:
        if mysql_type == INT:
            return lambda value: _plain(None if value is None else int.__index__(value))
        return _plain

    def whole_rows(self) -> "PlainDialect":
        return PlainDialect(1, self.longest, keyless=True)

    def deletes(self, table: TableDescription, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[tuple[str, int]]:
        yield from self._statements("delete", table, columns, (f"[{','.join(row)}]" for row in rows))

    def replaces(self, table: TableDescription, columns: Sequence[str], rows: Iterable[str]) -> Iterator[tuple[str, int]]:
        yield from self._statements("insert" if self.keyless else "replace", table, columns, (f"[{row[1:-1]}]" for row in rows))

    def reads(
        self, table: TableDescription, key: Sequence[str], rows: Iterable[Sequence[str]], columns: Sequence[str]
    ) -> Iterator[tuple[str, int]]:
        texts = (f"[{','.join(row)}]" for row in rows)
        yield from self._statements(f"read {','.join(columns)} by", table, key, texts)

    def read_literal(self, value: Any) -> str | None:
        return _plain(value)

    def _statements(
        self, operation: str, table: TableDescription, columns: Sequence[str], rows: Iterable[str]
    ) -> Iterator[tuple[str, int]]:
        batch: list[str] = []
        for row in rows:
            if batch and (len(batch) == self.most or len(row) > self.longest):
                yield f'["{operation}", "{table.table}", {json.dumps(list(columns))}, [{",".join(batch)}]]', len(batch)
                batch = []
            if len(row) > self.longest:
                raise FatalSinkError("too long", bytes=len(row))
            batch.append(row)
        if batch:
            yield f'["{operation}", "{table.table}", {json.dumps(list(columns))}, [{",".join(batch)}]]', len(batch)


def between(after: int = 0, upto: int = 100, *, again: bool = False, settled: Iterable[FoldedName] | None = ()) -> SegmentWindow:
    tables = None if settled is None else frozenset(settled)
    return SegmentWindow(after_ts=Ts(after), upto_ts=Ts(upto), again=again, settled_tables=tables)


def plan(
    *chunks: bytes,
    window: SegmentWindow | None = None,
    tables: Sequence[TableDescription] = (ORDERS_TABLE,),
    rekeyed: Mapping[FoldedName, tuple[str, ...]] | None = None,
    dialect: Any = None,
) -> tuple[list[Statement], TransactionSet]:
    described = {table.folded: table for table in tables}
    *statements, commits = plan_bucket(
        chunks, window or between(), PlanTarget(described, rekeyed or {}, dialect or PlainDialect()), OPEN_PROTOCOL
    )
    assert isinstance(commits, TransactionSet)
    return statements, commits


def written(*chunks: bytes, **more: Any) -> list[list[Any]]:
    """Plan, and return what the statements say, in the writer's order."""
    statements, _ = plan(*chunks, **more)
    for statement in statements:
        assert (statement.phase is Phase.DELETE) == statement.text.startswith(b'["delete"')
    return [json.loads(statement.text) for statement in sorted(statements, key=lambda one: one.phase)]
