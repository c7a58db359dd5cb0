"""Random histories of which the topic has handle keys only, above a limit: the sink ends identical with upstream, through its DDLs."""

from contextlib import closing
from dataclasses import replace

import pytest

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.item import LargeRowOption, LargeRowSettings
from applier.demo.simulator.producer import Producer, ProducerOptions
from applier.demo.simulator.wire_format import WireFormat
from applier.sources.ticdc.large_row import WholeRowSources
from applier.upstream.row_lookup import TidbRowLookup
from applier.upstream.settings import UpstreamSettings
from tests.rig.fake_source import FakeSource
from tests.rig.local_replica import sqlite_replica
from tests.rig.oracle import compare, open_oracle
from tests.rig.protocol import form_of, in_format
from tests.rig.tidb import tidb_server
from tests.rig.tidb_history import give_history

SURE = range(4101, 4104)
"""Seeds whose histories end with placeholders."""

LEAST_LIMIT = {WireFormat.CANAL_JSON: 600}
"""A row that has its handle key only must fit. canal-json names and types each of its columns four times."""

pytestmark = pytest.mark.usefixtures("without_waiting")


def source_of(upstream, history, options):
    give_history(upstream, history)
    producer = Producer(history, in_format(options))
    source = FakeSource(producer.log())
    source.whole_rows = WholeRowSources(lookup=TidbRowLookup(UpstreamSettings(url=upstream.url)))
    return source, producer


@pytest.mark.parametrize("seed", range(4100, 4116))
def test_a_history_of_placeholders_ends_identical(seed, tmp_path):
    history = History(seed, HistoryOptions(transactions=30))
    large = LargeRowSettings(option=LargeRowOption.HANDLE_KEY_ONLY, limit=LEAST_LIMIT.get(form_of(seed), 400) + 100 * (seed % 4))
    options = replace(ProducerOptions.drawn(seed), large=large)
    with tidb_server() as upstream:
        source, producer = source_of(upstream, history, options)
        replica = sqlite_replica(tmp_path, source)
        assert replica.catch_up().checkpoint_ts == producer.final_ts
        assert upstream.queries() or seed not in SURE
    with closing(open_oracle("sqlite:///:memory:")) as oracle:
        oracle.apply(history, producer.final_ts)
        assert compare(oracle, replica.url) == []
