"""A row of the sink that cannot be found again by its key is a difference all the same."""

import sqlite3
from contextlib import closing

import pytest

from applier.model.events import DdlEvent, TableName
from applier.model.position import Ts
from applier.sinks.settings import SinkSettings
from applier.sinks.sqlite.schema_change import apply_ddl
from applier.sinks.sqlite.table_reader import SqliteReader
from applier.sinks.table_pair import TablePair, pair_tables
from applier.sinks.table_reader import Scope
from applier.verify.comparison import TableComparison
from applier.verify.difference import RowState
from applier.verify.sides import Sides
from applier.verify.value import wire_value
from tests.unit.verify.pairs import column_pair

TABLE = TableName("shop", "t")


def reader(path, key, *rows):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        query = f"CREATE TABLE t (k {key} NOT NULL PRIMARY KEY, v INT)"
        apply_ddl(connection, DdlEvent(commit_ts=Ts(5), schema="shop", table="t", query=query, ddl_type=3), "UTC")
        connection.executemany('INSERT INTO "shop.t" VALUES (?, ?)', rows)
    return SqliteReader(SinkSettings(url=f"sqlite:///{path}"))


def test_a_float_is_repaired_by_the_number_that_the_wire_would_bring():
    pair = column_pair("float")
    assert [wire_value(pair, text) for text in (b"1.10000002384185791", b"-3.4028234663852886e38", b"0", None)] == [
        1.1,
        -3.4028235e38,
        0.0,
        None,
    ]
    assert wire_value(column_pair("double"), b"1.10000002384185791") == 1.100000023841858


def compared(tmp_path, key, *rows):
    upstream, sink = reader(tmp_path / "up.db", key), reader(tmp_path / "down.db", key, *rows)
    with closing(upstream), closing(sink):
        (one,), (other,) = upstream.describe([TABLE]), sink.describe([TABLE])
        pair = pair_tables(one, other, (upstream.kind, sink.kind))
        assert isinstance(pair, TablePair)
        return TableComparison(pair, Sides(upstream, sink), 10).compare(Scope())


def test_a_row_with_a_float_as_key_is_found(tmp_path):
    found = compared(tmp_path, "FLOAT", (1.1, 1))
    assert ([each.state for each in found.differences], found.is_cut) == ([RowState.EXTRA], False)


@pytest.mark.parametrize(("key", "value"), [("BINARY(4)", b"ab"), ("DECIMAL(6,2)", "1.5"), ("DATETIME(3)", "2020-01-01 00:00:00")])
def test_a_row_that_somebody_stored_in_other_words_is_never_taken_for_none(tmp_path, key, value):
    found = compared(tmp_path, key, (value, 1))
    assert found.differences or found.is_cut
