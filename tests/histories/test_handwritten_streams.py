"""Streams written by hand that no simulator writes: stale flags, names in statements, rows without a key (in process, on SQLite).

Flags of columns are Open Protocol's alone: canal-json has the names of the primary key, simple has the indexes of the schema.
"""

import sqlite3

import pytest

from applier.demo.simulator import column_type as of
from applier.demo.simulator.operation import CreateSchema, CreateTable, CreateView, TruncateTable
from applier.demo.simulator.schema import Table, primary
from applier.demo.simulator.schema import column as column_of
from applier.demo.simulator.wire_format import WireFormat
from applier.model.errors import FatalSinkError, NeedsOperator
from applier.model.events import TableName
from tests.builders.handwritten import (
    CREATE_SCHEMA,
    ONE,
    PLAIN,
    STRING_KEY,
    TWO,
    UNIQUE,
    ddl,
    everywhere,
    log_of,
    resolved,
    row,
    rows_of,
)
from tests.builders.wire import column
from tests.builders.wire_log import WireLog
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica


def test_a_stale_handle_key_that_is_not_unique_any_more_does_not_delete_other_rows(tmp_path):
    created = ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, code INT NOT NULL)")

    def stale(ts, number, *, deleted=False):
        return row(ts, deleted=deleted, id=column(3, 1, number), code=column(3, UNIQUE, 7))

    log = log_of(
        *everywhere(CREATE_SCHEMA),
        *everywhere(created),
        *[(ONE, stale(20 + number, number)) for number in range(4)],
        *everywhere(resolved(30)),
        (ONE, stale(40, 2, deleted=True)),
        *everywhere(resolved(50)),
    )
    sqlite_replica(tmp_path, FakeSource(log)).catch_up()
    assert rows_of(tmp_path) == [(0, 7), (1, 7), (3, 7)]


def test_versions_of_one_row_whose_key_is_text_here_and_bytes_there_meet(tmp_path):
    created = ddl(10, "CREATE TABLE orders (id VARBINARY(20) PRIMARY KEY, n INT)")

    def version(ts, flags, number, name):
        return row(ts, id=column(15, flags, f"{name}\\x00"), n=column(3, PLAIN, number))

    names = [chr(ord("a") + number) for number in range(12)]
    log = log_of(
        *everywhere(CREATE_SCHEMA),
        *everywhere(created),
        *[(ONE, version(20, STRING_KEY, 1, name)) for name in names],
        *[(TWO, version(21, STRING_KEY | 1, 2, name)) for name in names],
        *everywhere(resolved(30)),
    )
    sqlite_replica(tmp_path, FakeSource(log)).catch_up()
    assert rows_of(tmp_path) == [(name.encode() + b"\0", 2) for name in names]


SHOP = CreateSchema("shop")
ORDERS = Table(name=TableName("shop", "orders"), columns=(column_of("id", of.integer(), null=False),), indexes=(primary("id"),))


@pytest.fixture(params=list(WireFormat), ids=str)
def log(request):
    return WireLog(request.param)


def test_a_table_that_a_view_only_mentions_is_still_checked_before_its_first_row(tmp_path, log):
    log.ddl(5, SHOP)
    log.watermark(8)
    replica = sqlite_replica(tmp_path, FakeSource(log.records))
    replica.catch_up()
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        connection.execute('CREATE TABLE "shop.orders" (id INTEGER PRIMARY KEY)')
        connection.execute('INSERT INTO "shop.orders" VALUES (1)')
    log.ddl(10, CreateView(TableName("shop", "short"), ORDERS.name, ("id",)))
    log.row(20, ORDERS, None, (2,))
    log.watermark(30)
    replica.source = FakeSource(log.records)
    with pytest.raises(NeedsOperator) as caught:
        replica.catch_up()
    assert (caught.value.facts["kind"], caught.value.facts["table"]) == ("not_empty", "shop.orders")


def test_rows_without_a_key_stop_with_their_place(tmp_path, log):
    notes = Table(name=ORDERS.name, columns=(column_of("note", of.varchar(9)),), indexes=())
    log.ddl(5, SHOP)
    log.ddl(10, CreateTable(notes))
    log.row(20, notes, None, ("x",), partition=1)
    place = log.place_of_last()
    log.watermark(30)
    with pytest.raises(NeedsOperator) as caught:
        sqlite_replica(tmp_path, FakeSource(log.records)).catch_up()
    facts = caught.value.facts
    assert (facts["topic"], facts["partition"], facts["offset"], facts["table"], facts["commit_ts"]) == (*place, "shop.orders", 20)


def test_a_ddl_that_stops_is_named_with_its_place(tmp_path, log):
    log.ddl(5, SHOP)
    log.watermark(6, 0)
    log.ddl(20, TruncateTable(TableName("shop", "nope")))
    log.watermark(30)
    with pytest.raises(FatalSinkError) as caught:
        sqlite_replica(tmp_path, FakeSource(log.records)).catch_up()
    facts = caught.value.facts
    assert (facts["topic"], facts["partition"], facts["offset"], facts["commit_ts"]) == (*ONE, 2, 20)
