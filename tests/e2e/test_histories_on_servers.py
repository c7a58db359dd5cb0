"""Histories from a real Kafka to a real database, over every dispatcher and 1 to 8 partitions: identical, keys and indexes included.

Most run in this process, for speed: five of whole rows on each server, fifteen in all forms of the wire on MariaDB. Three are the program
on Spark, while a reader adds up the money in consistent snapshots.
"""

from dataclasses import replace
from uuid import uuid4

import pytest

from applier.demo.simulator.dispatch import Dispatcher
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import ProducerOptions
from applier.demo.simulator.session_zone import SESSION_ZONE
from applier.sources.factory import open_source
from applier.sources.kafka.settings import KafkaSettings
from tests.rig.local_replica import Replica
from tests.rig.money import reading_money
from tests.rig.program import run, write_config
from tests.rig.protocol import families_of, in_format
from tests.rig.upstream import NAME, Upstream, clear_sink, upstream
from tests.rig.wire_forms import Form, upstream_of, world_of

pytestmark = pytest.mark.slow

DISPATCHERS = list(Dispatcher)
IN_PROCESS = range(70, 75)
ON_SPARK = [75, *(pytest.param(seed, marks=pytest.mark.soak(reason="through Spark: 15 s")) for seed in (76, 77))]
SOME_READS = 50
IN_EVERY_FORM = range(2500, 2515)


def played(seed, servers):
    """Play a history that is drawn from its seed; the seeds go through all dispatchers and all numbers of partitions."""
    drawn = ProducerOptions.drawn(seed)
    topic = f"history-{uuid4().hex[:8]}"
    options = replace(drawn, topic=topic, dispatcher=DISPATCHERS[seed % len(DISPATCHERS)], partitions=1 + seed % 8, open_tail=False)
    options = in_format(options)
    world = upstream(History(seed, HistoryOptions(transactions=50, families=families_of(seed))), options)
    world.create_topics(servers)
    world.produce(servers)
    return world, options.form.protocol


@pytest.mark.parametrize("seed", IN_PROCESS)
def test_a_history_ends_identical_on_a_real_server(seed, kafka, mysql_url, least_privileged_url):
    world, protocol = played(seed, kafka.bootstrap_servers)
    clear_sink(mysql_url)
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topics=tuple(world.topics), group_id=NAME, protocol=protocol)
    with open_source(settings, zone_of_sessions=lambda: SESSION_ZONE) as source:
        result = Replica(least_privileged_url, source, name=NAME).catch_up()
    assert result.checkpoint_ts == world.final_ts
    assert world.wrong_in(mysql_url) == []


@pytest.mark.usually_on("mariadb", reason="the histories of whole rows show each server")
@pytest.mark.parametrize("seed", IN_EVERY_FORM)
def test_a_history_in_any_form_of_the_wire_ends_identical_on_a_real_server(seed, tmp_path, kafka, mysql_url, least_privileged_url):
    drawn = world_of(seed, tmp_path, topic=f"forms-{uuid4().hex[:8]}", open_tail=False)
    world = Upstream(list(drawn.expected), drawn.log, drawn.final_ts)
    world.create_topics(kafka.bootstrap_servers)
    world.produce(kafka.bootstrap_servers)
    clear_sink(mysql_url)
    settings = KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topics=tuple(world.topics), group_id=NAME)
    with upstream_of(drawn) as upstream_url, open_source(settings, drawn.decoder(upstream_url), lambda: SESSION_ZONE) as source:
        # The user with the least privileges may not write to schemas that only routes name.
        url = least_privileged_url if Form.SELECTION not in drawn.forms else mysql_url
        result = Replica(url, source, name=NAME, **drawn.settings).catch_up()
    assert result.checkpoint_ts == world.final_ts
    assert drawn.differences(mysql_url) == []


@pytest.mark.usually_on("mariadb", reason="the histories in this process show each server")
@pytest.mark.parametrize("seed", ON_SPARK)
def test_s1_a_history_ends_identical_through_spark_and_no_reader_ever_sees_another_total(
    seed, tmp_path, kafka, mysql_url, least_privileged_url
):
    world, protocol = played(seed, kafka.bootstrap_servers)
    clear_sink(mysql_url)
    config = write_config(
        tmp_path,
        servers=kafka.bootstrap_servers,
        url=least_privileged_url,
        topics=list(world.topics),
        master="local[2]",
        protocol=protocol,
    )
    with reading_money(mysql_url) as reader:
        ended = run(config)
    assert ended.result["checkpoint_ts"] == world.final_ts
    # All accounts are opened in one transaction: before it they are empty.
    assert reader.totals in ([0, world.history.money_total()], [world.history.money_total()])
    assert reader.reads > SOME_READS
    assert world.wrong_in(mysql_url) == []


MANY_ROWS = HistoryOptions(transactions=60, rows_per_transaction=600, live_rows=5_000, ddl_share=0.02, ddl_kinds=frozenset())


@pytest.mark.parametrize("writers", [2, *(pytest.param(many, marks=pytest.mark.soak(reason="through Spark: 15 s")) for many in (4, 8))])
def test_rows_ahead_of_the_watermark_end_identical_through_spark(writers, tmp_path, kafka, mysql_url, least_privileged_url):
    drawn = ProducerOptions.drawn(writers)
    images = replace(drawn.images, raw_updates=False)
    options = replace(drawn, topic=f"rows-{uuid4().hex[:8]}", dispatcher=Dispatcher.INDEX_VALUE, partitions=4, images=images, growth=0)
    world = upstream(History(writers, MANY_ROWS), replace(options, open_tail=False, replays=0))
    world.create_topics(kafka.bootstrap_servers)
    world.produce(kafka.bootstrap_servers)
    clear_sink(mysql_url)
    config = write_config(tmp_path, servers=kafka.bootstrap_servers, url=least_privileged_url, topics=list(world.topics), master="local[2]")
    text = config.read_text().replace("[sink]\n", f'[sink]\nconsistency = "row"\nwriters = {writers}\n')
    config.write_text(text.replace("[source]\n", '[source]\ndispatcher = "index-value"\n'))
    assert run(config).result["checkpoint_ts"] == world.final_ts
    assert world.wrong_in(mysql_url) == []
