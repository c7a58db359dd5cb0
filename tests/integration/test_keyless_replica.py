"""Random histories of tables without a key on real servers, with restarts of the producer and of the replica: identical to the oracle."""

import pytest

from applier.planner.keyless import EqualRows
from tests.histories.test_keyless_histories import world
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import Replica
from tests.rig.upstream import NAME, Upstream, clear_sink


@pytest.mark.parametrize("seed", [3040, 3041, 3044])
def test_s22_the_sink_equals_the_oracle(seed, mysql_url):
    history, producer, log = world(seed, replays=seed % 5)
    upstream = Upstream(history, tuple(log), producer.final_ts)
    clear_sink(mysql_url)
    steps = list(history)
    replica = Replica(mysql_url, FakeSource(log), name=NAME, writes_keyless=True, equal_rows=EqualRows.ALL)
    replica.catch_up(until_ts=steps[len(steps) // 2].ts)
    assert replica.catch_up().checkpoint_ts == producer.final_ts
    assert upstream.wrong_in(mysql_url) == []
    clear_sink(mysql_url)
