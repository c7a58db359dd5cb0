"""Column selectors with each way in which a changefeed writes updates, through whole replicas on MariaDB and on MySQL."""

from contextlib import closing

import pytest

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.item import ColumnSelector, ImageOptions
from applier.demo.simulator.producer import Producer, ProducerOptions
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import Replica
from tests.rig.oracle import compare, open_oracle
from tests.rig.projection import seen_by_sink
from tests.rig.upstream import NAME, clear_sink

pytestmark = pytest.mark.slow

OPTIONS = [
    ImageOptions(selector=ColumnSelector(1), raw_updates=True, stale_flags=True),
    ImageOptions(selector=ColumnSelector(2), only_updated_columns=True, delete_only_handle_key=True),
]


@pytest.mark.parametrize("images", OPTIONS, ids=["raw updates", "split updates"])
def test_s21_a_sink_of_partial_images_is_what_the_projection_says(images, mysql_url, least_privileged_url):
    history = History(7, HistoryOptions(transactions=60))
    producer = Producer(history, ProducerOptions(seed=7, images=images, partitions=3))
    clear_sink(mysql_url)
    assert Replica(least_privileged_url, FakeSource(list(producer.log())), name=NAME).catch_up().checkpoint_ts == producer.final_ts
    with closing(open_oracle("sqlite:///:memory:")) as oracle:
        oracle.apply(seen_by_sink(history, images), producer.final_ts)
        assert compare(oracle, mysql_url) == []
