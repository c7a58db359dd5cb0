"""Records that cannot be read, and rows that the sink refuses: each way on that the message names leads to the end."""

import pytest

from tests.builders.handwritten import resolved
from tests.builders.wire import record
from tests.rig.walked_feed import begun, order


@pytest.fixture
def feed(newcomer):
    return begun(newcomer)


@pytest.fixture
def with_garbage(newcomer, feed):
    feed.write(order(21, 1))
    feed.write_raw(b"garbage", b"more garbage")
    feed.write(order(22, 2))
    feed.everywhere(resolved(30))
    return newcomer.fails("catchup", 3)


def test_a_garbage_record_is_skipped_by_the_command_of_its_remedy(newcomer, with_garbage):
    newcomer.follow(with_garbage, only="inspect")
    newcomer.follow(with_garbage, only="skip")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new"), (2, "new")]


def test_garbage_records_are_quarantined_by_the_setting_of_their_remedy(newcomer, feed, with_garbage):
    newcomer.change(with_garbage.settings)
    ended = newcomer.succeeds("catchup")
    assert "1 event in quarantine, not applied: `applier quarantine list` names them" in ended.stdout
    assert f"{feed.topic}/0" in newcomer.succeeds("quarantine list").stdout
    assert newcomer.rows() == [(1, "new"), (2, "new")]


def test_a_damaged_record_is_skipped_whole_by_the_command_of_its_remedy(newcomer, feed):
    key, _ = record(order(21, 1))
    feed.write_raw(key, b"damaged")
    feed.write(order(22, 2))
    feed.everywhere(resolved(30))
    said = newcomer.fails("catchup", 3)
    (skip,) = [command for command in said.commands if command.startswith("skip")]
    newcomer.fails(f"{skip} --event 0", 2)
    newcomer.succeeds(skip)
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(2, "new")]


CANAL = b'{"isDdl": false, "es": 5, "database": "d", "table": "t", "type": "INSERT", "data": [{"a": "1"}]%s}'
FOREIGN = {
    "canal-json without enable-tidb-extension": CANAL % b"",
    "canal-json": CANAL % b', "_tidb": {"commitTs": 5}',
    "debezium": b'{"payload": {}}',
}


@pytest.mark.parametrize("protocol", FOREIGN)
def test_a_record_of_another_protocol_is_named_and_skipped_by_the_command_of_its_remedy(newcomer, feed, protocol):
    feed.write(order(21, 1))
    feed.write_raw(None, FOREIGN[protocol])
    feed.write(order(22, 2))
    feed.everywhere(resolved(30))
    said = newcomer.fails("catchup", 3)
    assert f"the record is {protocol}, not Open Protocol" in said.stderr
    newcomer.follow(said, only="skip")
    newcomer.succeeds("catchup")
    assert newcomer.rows() == [(1, "new"), (2, "new")]
