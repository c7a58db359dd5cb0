"""A source whose records are no Open Protocol is applied like any other: nothing behind the source's port knows the format."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, ClassVar

from applier.demo.simulator.producer import LogRecord
from applier.model.errors import ProtocolError
from applier.model.events import AdminEvent, ColumnShape, DdlEvent, KnownKeys, PlacedRow, ResolvedEvent, RowKind, Shape
from applier.model.position import Offset, RecordPosition, Stream, Ts
from applier.model.rejected_event import WHOLE_RECORD, EventPosition
from applier.planner.table_check import Acceptance
from applier.replica.quarantine_retry import QuarantineRetry
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.port import EventHead, Placed, PlacedEvent, PlacedRows, Record, Unplaced
from applier.sources.selected_events import gather_rows
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import STRICT, sqlite_replica

STREAM = Stream("lines", 0)
SHAPE = Shape("shop", "orders", (ColumnShape("id", 3), ColumnShape("note", 15)), KnownKeys(("id",), ("id",), ()))


class LinePlacer:
    """A record's value is lines of words: ``TS put ID NOTE``, ``TS del ID``, ``TS ddl STATEMENT``, ``TS resolved``."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def place_all(self, records: Sequence[Record]) -> Iterator[PlacedRows | PlacedEvent]:
        return gather_rows(self._readable(records))

    def _readable(self, records: Sequence[Record]) -> Iterator[tuple[int, int, Placed]]:
        for record in records:
            for index, event in self.place_each(*record):
                if isinstance(event, Unplaced):
                    raise event.error
                yield record.offset, index, event

    def place_each(self, offset: int, key: bytes | None, value: bytes | None) -> Sequence[tuple[int, Placed | Unplaced]]:
        if not value:
            return [
                (
                    WHOLE_RECORD,
                    Unplaced(ProtocolError.at(RecordPosition(self._stream, Offset(offset)), "empty", "there are no lines"), None),
                )
            ]
        return [(index, self._event(offset, index, line)) for index, line in enumerate(value.splitlines())]

    def _event(self, offset: int, index: int, line: bytes) -> Placed | Unplaced:
        ts, word, *rest = line.split(b" ", 2)
        match word:
            case b"put":
                return PlacedRow(int(ts), RowKind.UPSERT, SHAPE, rest[0].split(b" ")[0], rest[0])
            case b"del":
                return PlacedRow(int(ts), RowKind.DELETE, SHAPE, rest[0], rest[0] + b" ")
            case b"ddl":
                return DdlEvent(commit_ts=Ts(int(ts)), schema="shop", table="orders", query=rest[0].decode(), ddl_type=3)
            case b"resolved":
                return ResolvedEvent(Ts(int(ts)))
            case _:
                error = ProtocolError.at(RecordPosition(self._stream, Offset(offset)), "word", "the line has an unknown word", event=index)
                return Unplaced(error, EventHead(Ts(int(ts)), SHAPE.name, is_ddl=False))


@dataclass(frozen=True)
class LineDecoder:
    """Implements ``Decoder``."""

    keeps_order: ClassVar[bool] = False

    def placer(self, stream: Stream) -> LinePlacer:
        return LinePlacer(stream)

    def image_decoder(self, shape: Shape) -> Callable[[bytes], Sequence[Any]]:
        assert shape == SHAPE
        return lambda image: [int(image.split(b" ")[0]), image.split(b" ", 1)[1].decode()]

    def images_decoder(self, shape: Shape) -> Callable[[Sequence[bytes]], Sequence[Sequence[Any]]]:
        return lambda images: list(zip(*map(self.image_decoder(shape), images), strict=True))

    def decode_key(self, key: bytes) -> Sequence[Any]:
        return [int(key)]

    def events(self, record: Record, place: RecordPosition) -> Sequence[DdlEvent | ResolvedEvent | AdminEvent]:
        raise AssertionError("nothing that is applied comes this way", record, place)


class LineSource(FakeSource):
    @property
    def decoder(self) -> LineDecoder:  # type: ignore[override]  # another format
        return LineDecoder()


def source_of(*values: bytes) -> LineSource:
    return LineSource([LogRecord(STREAM, b"", value, 1_700_000_000_000 + number) for number, value in enumerate(values)])


CREATE = (b"5 ddl CREATE SCHEMA shop", b"6 ddl CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20))", b"7 resolved")


def rows_of(tmp_path):
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        return connection.execute('SELECT id, note FROM "shop.orders" ORDER BY id').fetchall()


def test_rows_deletes_and_ddls_of_another_format_are_applied(tmp_path):
    source = source_of(*CREATE, b"10 put 1 one\n10 put 2 two", b"11 put 1 uno\n12 del 2\n12 put 3 three", b"13 resolved")
    replica = sqlite_replica(tmp_path, source)
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, "uno"), (3, "three")]
    assert [query for _, query in replica.done_ddls()] == [
        "CREATE SCHEMA shop",
        "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20))",
    ]


def test_its_unreadable_events_are_quarantined_with_what_is_known_of_them(tmp_path):
    source = source_of(*CREATE, b"10 put 1 one\n10 pat 2 two", b"", b"13 resolved")
    replica = sqlite_replica(tmp_path, source, quarantines=frozenset({"unreadable"}))
    replica.catch_up()
    assert rows_of(tmp_path) == [(1, "one")]
    first, second = replica.quarantine().values()
    assert (first.event.position.event, first.event.commit_ts, first.event.schema, first.event.table) == (1, 10, "shop", "orders")
    assert (second.event.position.event, second.event.commit_ts) == (WHOLE_RECORD, 0)


def test_its_rows_are_retried_with_its_own_decoder(tmp_path):
    replica = sqlite_replica(
        tmp_path,
        source_of(*CREATE, b"10 put 1 one", b"13 resolved"),
        quarantines=frozenset({"rejected"}),
        accept=STRICT,
    )
    replica.catch_up(until_ts=7)
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        connection.execute("CREATE TRIGGER strict BEFORE INSERT ON \"shop.orders\" BEGIN SELECT RAISE(ABORT, 'no'); END")
    replica.catch_up()
    (entry,) = replica.quarantine().values()
    assert (rows_of(tmp_path), entry.event.key) == ([], "id=1")
    with closing(sqlite3.connect(tmp_path / "replica.db")) as connection:
        connection.execute("DROP TRIGGER strict")
    with open_sink(SinkSettings(url=replica.url, name=replica.name, lock_timeout_s=0.2)) as sink:
        sink.acquire()
        retry = QuarantineRetry(replica.source, sink, "me@here", Acceptance(replica.accept))
        assert retry.retry(EventPosition(STREAM, Offset(3), 0)) == 1
    assert rows_of(tmp_path) == [(1, "one")]
