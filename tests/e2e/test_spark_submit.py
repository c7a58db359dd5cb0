"""``spark-submit``: with ``local[*]`` and on a standalone cluster of real processes, one of whose workers is killed in mid-run.

The package travels as a zip; the interpreter of driver and executors does not have it installed.
"""

from uuid import uuid4

import pytest

from applier.demo.simulator.wire_format import WireFormat
from tests.rig.program import write_config
from tests.rig.spark_cluster import make_submission, running_cluster
from tests.rig.upstream import clear_sink, fence_of, small_upstream

pytestmark = pytest.mark.slow

LOCAL = "local[*]"
WINDOWS_BEFORE_THE_KILL = 20
"""The tables are made by then, and rows are cached on both workers; most of the history is still to come."""


@pytest.fixture(scope="module")
def submission(tmp_path_factory):
    return make_submission(tmp_path_factory.mktemp("submission"))


def test_a_submitted_catch_up_is_identical_and_spark_submit_passes_its_result_on(submission, tmp_path, mock_kafka):
    world = small_upstream(31, "submitted", transactions=20, form=WireFormat.CANAL_JSON)
    world.produce(mock_kafka)
    url = f"sqlite:///{tmp_path}/replica.db"
    with submission.catchup(
        write_config(tmp_path, servers=mock_kafka, url=url, topics=list(world.topics), protocol=world.protocol), LOCAL
    ) as program:
        ended = program.wait()
        assert program.orphans() == []
    assert ended.result["checkpoint_ts"] == world.final_ts
    assert world.wrong_in(url) == []


def test_a_file_of_the_drivers_machine_is_refused_under_a_master_that_is_not_local(submission, tmp_path):
    url = f"sqlite:///{tmp_path}/replica.db"
    with submission.catchup(write_config(tmp_path, servers="127.0.0.1:9", url=url), "spark://127.0.0.1:9") as program:
        ended = program.wait()
    assert ended.code == 2, ended.stdout
    # Spark hands the program's standard error on as standard output.
    assert "error: a SQLite file as a sink needs a local Spark master" in ended.stdout
    assert "remedy: " in ended.stdout
    assert not (tmp_path / "replica.db").exists()


@pytest.mark.usually_on("mariadb", reason="what dies is a worker of Spark; a cluster takes a minute to start")
def test_a_worker_that_dies_in_mid_run_changes_nothing(submission, tmp_path, kafka, mysql_url, least_privileged_url):
    world = small_upstream(32, f"cluster-{uuid4().hex[:8]}", transactions=100, form=WireFormat.SIMPLE_AVRO)
    world.create_topics(kafka.bootstrap_servers)
    world.produce(kafka.bootstrap_servers)
    clear_sink(mysql_url)
    config = write_config(
        tmp_path, servers=kafka.bootstrap_servers, url=least_privileged_url, topics=list(world.topics), protocol=world.protocol
    )
    memory = {"spark_executor_memory": "512m", "spark_driver_memory": "512m"}
    with running_cluster(submission, workers=2) as cluster, submission.catchup(config, cluster.master, **memory) as program:
        assert program.reaches(lambda: fence_of(mysql_url)[1] >= WINDOWS_BEFORE_THE_KILL), program.wait()
        assert cluster.comes_to(lambda cores: list(cores.values()) == [1, 1])
        cluster.workers[0].kill_all()
        ended = program.wait()
        assert cluster.comes_to(lambda cores: len(cores) == 1)
    assert ended.result["checkpoint_ts"] == world.final_ts
    assert world.wrong_in(mysql_url) == []
