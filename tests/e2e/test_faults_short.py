"""The daemon through faults of every kind, in an order and at moments drawn from a seed, while upstream lives and changes its tables.

In ``make soak`` then through the two of a cluster, whose executors and their Python workers are not the driver's. A reader adds up the
money in consistent snapshots all along. ``make chaos`` is the long form.
"""

import random

import pytest

from tests.rig.database import own_database
from tests.rig.fault import Fault, Stage, user_of
from tests.rig.fault_run import FEED, live_history, run_faults
from tests.rig.kafka import own_kafka
from tests.rig.least_privilege import make_user
from tests.rig.live_feed import LiveFeed
from tests.rig.program import write_config
from tests.rig.spark_cluster import cluster_for
from tests.rig.supervisor import supervised
from tests.rig.upstream import clear_sink

pytestmark = [pytest.mark.slow, pytest.mark.integration, pytest.mark.timeout(1800)]

TOPIC = "live"
SEED = 4
ONCE = (Fault.DRIVER, Fault.DRIVER_AT_DDL, Fault.WORKER, Fault.JVM, Fault.DATABASE, Fault.KAFKA, Fault.CONNECTIONS, Fault.LOCK)
ON_A_CLUSTER = (Fault.EXECUTOR, Fault.WORKER)
TWICE = (Fault.WORKER, Fault.CONNECTIONS)
LOCK_S = 3
SOME_READS = 200


@pytest.fixture(scope="module")
def servers(database_kind):
    with own_database(database_kind) as database, own_kafka() as kafka:
        yield database, kafka


@pytest.mark.usually_on("mariadb", reason="`make chaos` draws faults for both")
@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(ONCE, id="each once"),
        pytest.param((*ONCE, *TWICE), id="ten", marks=pytest.mark.soak(reason="each kind once shows what there is")),
    ],
)
def test_faults_of_every_kind_change_nothing(faults, servers, tmp_path):
    database, kafka = servers
    topic = f"{TOPIC}-{len(faults)}"
    kafka.create_topic(topic, FEED.partitions, retention_ms="-1")
    clear_sink(database.url)
    url = make_user(database.url)
    config = write_config(tmp_path, servers=kafka.bootstrap_servers, url=url, topics=[topic], rows=2000, lock_timeout_s=60)
    faults = list(faults)
    rng = random.Random(SEED)
    rng.shuffle(faults)
    feed = LiveFeed(kafka.bootstrap_servers, topic, live_history(SEED), FEED)
    with supervised(config) as supervisor:
        stage = Stage(supervisor=supervisor, database=database, kafka=kafka, user=user_of(url), lock_s=LOCK_S, rng=rng)
        verdict = run_faults(stage, feed, faults, print)
    assert verdict.wrong == []
    assert sum(verdict.faults.values()) == len(faults)
    assert verdict.money_reads > SOME_READS
    assert verdict.ddls > 0


@pytest.mark.soak(reason="test_spark_submit.py kills a worker of a cluster; `make chaos` draws these faults on a cluster")
@pytest.mark.usually_on("mariadb", reason="what dies is Spark's, and the tables it writes to are those of the test before")
def test_an_executor_and_a_python_worker_of_a_cluster_die_and_change_nothing(servers, tmp_path):
    database, kafka = servers
    topic = f"{TOPIC}-on-a-cluster"
    kafka.create_topic(topic, FEED.partitions, retention_ms="-1")
    clear_sink(database.url)
    url = make_user(database.url)
    config = write_config(tmp_path, servers=kafka.bootstrap_servers, url=url, topics=[topic], rows=2000, lock_timeout_s=60)
    feed = LiveFeed(kafka.bootstrap_servers, topic, live_history(SEED), FEED)
    rng = random.Random(SEED)
    with cluster_for(config, workers=2) as cluster, supervised(config) as supervisor:
        stage = Stage(supervisor=supervisor, database=database, kafka=kafka, user=user_of(url), lock_s=LOCK_S, rng=rng, cluster=cluster)
        verdict = run_faults(stage, feed, ON_A_CLUSTER, print)
    assert verdict.wrong == []
    assert set(verdict.faults) == set(ON_A_CLUSTER)
    assert verdict.exits.total() == 0, "Spark starts both again, and the daemon continues"
    assert verdict.money_reads > 0
    assert verdict.ddls > 0
