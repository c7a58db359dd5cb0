"""Streams written by hand that no simulator writes: stale flags, names in statements, records without a place (in process, on SQLite)."""

import sqlite3

import pytest

from applier.model.errors import FatalSinkError, NeedsOperator
from tests.builders.handwritten import (
    CREATE_SCHEMA,
    KEY,
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
from tests.builders.wire import column, text
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


def test_a_table_that_a_view_only_mentions_is_still_checked_before_its_first_row(tmp_path):
    log = log_of(
        *everywhere(CREATE_SCHEMA),
        *everywhere(ddl(10, "CREATE VIEW short AS SELECT id FROM orders", table="short", t=21)),
        (ONE, row(20, id=column(3, KEY, 2))),
        *everywhere(resolved(30)),
    )
    begun = [*log[:2], *log_of(*everywhere(resolved(8)))]
    replica = sqlite_replica(tmp_path, FakeSource(begun))
    replica.catch_up()
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        connection.execute('CREATE TABLE "shop.orders" (id INTEGER PRIMARY KEY)')
        connection.execute('INSERT INTO "shop.orders" VALUES (1)')
    replica.source = FakeSource([*begun, *log[2:]])
    with pytest.raises(NeedsOperator) as caught:
        replica.catch_up()
    assert (caught.value.facts["kind"], caught.value.facts["table"]) == ("not_empty", "shop.orders")


def test_rows_without_a_key_stop_with_their_place(tmp_path):
    log = log_of(
        *everywhere(CREATE_SCHEMA),
        *everywhere(ddl(10, "CREATE TABLE orders (note VARCHAR(9))")),
        (TWO, row(20, note=text("x"))),
        *everywhere(resolved(30)),
    )
    with pytest.raises(NeedsOperator) as caught:
        sqlite_replica(tmp_path, FakeSource(log)).catch_up()
    facts = caught.value.facts
    assert (facts["topic"], facts["partition"], facts["offset"], facts["table"], facts["commit_ts"]) == (*TWO, 2, "shop.orders", 20)


def test_a_ddl_that_stops_is_named_with_its_place(tmp_path):
    log = log_of(
        *everywhere(CREATE_SCHEMA), (ONE, resolved(6)), *everywhere(ddl(20, "TRUNCATE TABLE nope", t=11)), *everywhere(resolved(30))
    )
    with pytest.raises(FatalSinkError) as caught:
        sqlite_replica(tmp_path, FakeSource(log)).catch_up()
    facts = caught.value.facts
    assert (facts["topic"], facts["partition"], facts["offset"], facts["commit_ts"]) == (*ONE, 2, 20)
