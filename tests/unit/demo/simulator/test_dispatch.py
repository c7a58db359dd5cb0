"""Topics and partitions as TiCDC chooses them."""

import pytest

from applier.demo.simulator.dispatch import PositionHash, row_hash, topic_of
from applier.model.events import TableName


@pytest.mark.parametrize(("table", "partition"), [("t1", 15), ("t2", 5), ("t3", 3)])
def test_the_table_dispatcher_hashes_schema_and_table(table, partition):
    assert row_hash(TableName("test", table), ()) % 16 == partition


@pytest.mark.parametrize(
    ("table", "pairs", "partition"),
    [
        ("t1", [("a", 11)], 2),
        ("t1", [("a", 22)], 11),
        ("t2", [("a", 11), ("b", 22)], 5),
        ("t2", [("b", 22), ("a", 11)], 5),
        ("t2", [("a", 11), ("b", 0)], 14),
        ("t2", [("a", 11), ("b", 33)], 2),
    ],
)
def test_the_index_value_dispatcher_hashes_the_key_in_any_column_order(table, pairs, partition):
    assert row_hash(TableName("test", table), pairs) % 16 == partition


def test_the_hash_xors_the_checksum_of_each_write():
    state = PositionHash()
    for word in (b"hash", b"pingcap", b"ticdc", b"tools"):
        state.write(b"hello", word)
    assert state.state == 0x914505A7


def test_a_topic_per_schema_has_a_name_that_kafka_allows():
    assert topic_of("odd schema/é", "feed", per_schema=True) == "feed_odd_schema__"
    assert topic_of("shop", "feed", per_schema=False) == "feed"
