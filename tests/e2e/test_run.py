"""The daemon as a process: it follows a feed, shows its offsets, refuses a second one beside it, and ends when it is asked to."""

import json
import signal
import time
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition
from sqlalchemy import make_url

from applier.demo.simulator.kafka_log import produce_log
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from tests.integration.tcp_proxy import proxy_to
from tests.rig.http_client import get
from tests.rig.port import free_port
from tests.rig.process_tree import Role, processes
from tests.rig.program import APPLIER, ROOT, Program, daemon, write_config
from tests.rig.upstream import NAME, clear_sink, fence_of, small_upstream

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usually_on("mariadb", reason="what a daemon does beside its writes is the same on each server"),
]

FENCED = 5
RETRY = "error=RetryableSinkError"
RECOVERED = "applier: recovered after_s="
FAILING = {"failing_since", "error", "attempt", "gives_up_at"}
QUIET_S = 10
MOST_LINES = 6
LEASE_S = 60


def checkpoint_of(url):
    with open_sink(SinkSettings(url=url, name=NAME)) as sink:
        progress = sink.load()
        return 0 if progress is None else progress.checkpoint_ts


def committed(servers, topics):
    consumer = Consumer({"bootstrap.servers": servers, "group.id": f"applier-{NAME}"})
    try:
        asked = [TopicPartition(topic, partition) for topic, count in topics.items() for partition in range(count)]
        return {(each.topic, each.partition): each.offset for each in consumer.committed(asked, timeout=60)}
    finally:
        consumer.close()


def kill_one(program, role):
    """SIGKILL a process that the daemon has started, as soon as there is one."""
    assert program.reaches(lambda: processes(program.pid, role))
    processes(program.pid, role)[0].signal(signal.SIGKILL)


def test_a_daemon_outlives_its_python_workers_and_its_java_process(tmp_path, mock_kafka):
    url = f"sqlite:///{tmp_path}/replica.db"
    world = small_upstream(62, f"outlived-{uuid4().hex[:8]}", transactions=30)
    third = len(world.log) // 3
    produce_log(world.log[:third], mock_kafka)
    config = write_config(tmp_path, servers=mock_kafka, url=url, topics=list(world.topics), protocol=world.protocol)
    with daemon(config) as program:
        assert program.reaches(lambda: fence_of(url)[1] > 0)
        kill_one(program, Role.WORKER)
        produce_log(world.log[third : 2 * third], mock_kafka)
        begun = fence_of(url)
        assert program.reaches(lambda: fence_of(url) > begun)
        kill_one(program, Role.JVM)
        produce_log(world.log[2 * third :], mock_kafka)
        assert program.reaches(lambda: checkpoint_of(url) == world.final_ts)
        program.send(signal.SIGINT)
        ended = program.wait()
        assert ended.code == 0, ended.stderr
        assert "the Spark session ended during a job" in ended.stderr or "lost with the previous Spark session" in ended.stderr
        assert "Exception occurred during processing of request" not in ended.stderr
        assert program.orphans() == []
    assert world.wrong_in(url) == []


def test_a_daemon_follows_a_feed_beside_which_no_other_runs_and_ends_when_it_is_asked_to(tmp_path, kafka, mysql_url, least_privileged_url):
    clear_sink(mysql_url)
    servers = kafka.bootstrap_servers
    world = small_upstream(61, f"followed-{uuid4().hex[:8]}", transactions=30)
    world.create_topics(servers)
    middle = len(world.log) // 2
    produce_log(world.log[:middle], servers)
    config = write_config(
        tmp_path, servers=servers, url=least_privileged_url, topics=list(world.topics), protocol=world.protocol, lease_s=LEASE_S
    )
    with daemon(config) as program:
        assert program.reaches(lambda: fence_of(mysql_url)[1] > 0)
        with daemon(config) as second:
            refused = second.wait()
        assert refused.code == FENCED, refused.stderr
        assert f"process: {program.pid}\n" in refused.stderr
        produce_log(world.log[middle:], servers)
        assert program.reaches(lambda: checkpoint_of(mysql_url) == world.final_ts)
        program.send(signal.SIGTERM)
        ended = program.wait()
        assert ended.code == 0, ended.stderr
        assert program.orphans() == []
    assert world.wrong_in(mysql_url) == []
    with open_sink(SinkSettings(url=mysql_url, name=NAME)) as sink:
        positions = sink.load().positions
    assert committed(servers, world.topics) == {(s.topic, s.partition): p.next_offset for s, p in positions.items()}


def status_shown(config):
    with Program([*APPLIER, "status", "--config", config, "--json"], config.parent, PYTHONPATH=str(ROOT)) as asking:
        ended = asking.wait()
    return ended.code, json.loads(ended.stdout) if ended.stdout else ended.stderr


def test_a_daemon_waits_for_its_database_says_so_everywhere_and_ends_in_good_order_while_it_waits_again(
    tmp_path, mock_kafka, mysql_url, least_privileged_url
):
    clear_sink(mysql_url)
    world = small_upstream(63, f"waited-{uuid4().hex[:8]}", transactions=10)
    world.produce(mock_kafka)
    server, port, http = make_url(least_privileged_url), free_port(), f"127.0.0.1:{free_port()}"
    url = server.set(host="127.0.0.1", port=port).render_as_string(hide_password=False)
    config = write_config(tmp_path, servers=mock_kafka, url=url, topics=list(world.topics), protocol=world.protocol)
    with config.open("a", encoding="utf-8") as file:
        file.write(f'[http]\nlisten = "{http}"\n')
    with daemon(config) as program:
        assert program.reaches(lambda: RETRY in program.said())
        with proxy_to(server.host, server.port or 3306, own_port=port):
            assert program.reaches(lambda: fence_of(mysql_url)[1] > 0)
            assert program.reaches(lambda: checkpoint_of(mysql_url) == world.final_ts)
            assert program.reaches(lambda: get(http, "/readyz")[0] == 200)
            assert program.said().count(RECOVERED) == 1
        heard = program.said().count(RETRY)
        assert program.reaches(lambda: program.said().count(RETRY) > heard)
        assert (get(http, "/readyz")[0], get(http, "/healthz")[0]) == (503, 200)
        code, shown = status_shown(config)
        assert (code, shown["health"], shown["checkpoint_ts"]) == (3, "hindered", world.final_ts)
        assert {name for name in ("failing_since", "error", "attempt", "gives_up_at") if shown["daemon"][name]} == FAILING
        time.sleep(QUIET_S)
        # Lines come at growing intervals: after 0, 1, 2, 4, 8 seconds.
        assert program.said().count(RETRY) - heard <= MOST_LINES
        assert program.said().count(RECOVERED) == 1, "nothing has recovered"
        ended = program.stop()
        assert ended.code == 0, ended.stderr
        assert program.orphans() == []
    assert "Traceback" not in ended.stderr
    assert world.wrong_in(mysql_url) == []
