"""Two catch-ups of one replica at once: one works, the other exits 5 and names it. A dead one is not waited for."""

from uuid import uuid4

import pytest

from tests.rig.program import catchup, in_contention, run, write_config
from tests.rig.upstream import clear_sink, fence_of, small_upstream

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usually_on("mariadb", reason="tests/integration/test_mysql_ownership.py has two owners on each server"),
]

FENCED = 5
HOUR_S = 3600
LEASE_S = 60
"""A tenth is the interval of the heartbeat. Long enough to distinguish a wait of some intervals from a wait for the lease."""

TRANSACTIONS = 200
"""Enough that the one who works is not done before the other one looks, though that one may start seconds later on a busy machine."""

LIVING_S = 15
"""The lease of one who lives: however busy the machine is, its heartbeat is not that late."""


def contend(config, world, url):
    with in_contention(config, 2) as programs:
        numbers = [program.pid for program in programs]
        ended = [program.wait() for program in programs]
    assert sorted(each.code for each in ended) == [0, FENCED], ended
    loser = next(each for each in ended if each.code == FENCED)
    winner = numbers[1 - ended.index(loser)]
    assert "error: another run owns" in loser.stderr
    assert f"process: {winner}\n" in loser.stderr
    assert "remedy: " in loser.stderr
    assert loser.stdout == ""
    assert world.wrong_in(url) == []


def kill_and_restart(config, world, url):
    with catchup(config) as program:
        assert program.reaches(lambda: fence_of(url)[1] > 5)
        assert program.kill()
    ended = run(config)
    assert ended.result["checkpoint_ts"] == world.final_ts
    assert world.wrong_in(url) == []
    return ended.result


@pytest.fixture(scope="module")
def mock_world(mock_kafka):
    world = small_upstream(41, "contended", transactions=TRANSACTIONS)
    world.produce(mock_kafka)
    return world


@pytest.fixture(scope="module")
def real_world(kafka):
    world = small_upstream(42, f"contended-{uuid4().hex[:8]}", transactions=TRANSACTIONS)
    world.create_topics(kafka.bootstrap_servers)
    world.produce(kafka.bootstrap_servers)
    return world


def test_s24_of_two_on_one_file_one_works_and_the_other_exits_5(tmp_path, mock_kafka, mock_world):
    url = f"sqlite:///{tmp_path}/replica.db"
    contend(
        write_config(tmp_path, servers=mock_kafka, url=url, topics=list(mock_world.topics), protocol=mock_world.protocol, lease_s=LIVING_S),
        mock_world,
        url,
    )


def test_s24_of_two_on_one_server_one_works_and_the_other_exits_5(tmp_path, kafka, mysql_url, least_privileged_url, real_world):
    clear_sink(mysql_url)
    topics = list(real_world.topics)
    config = write_config(
        tmp_path, servers=kafka.bootstrap_servers, url=least_privileged_url, topics=topics, protocol=real_world.protocol, lease_s=LIVING_S
    )
    contend(config, real_world, mysql_url)


def test_after_a_kill_the_next_start_takes_the_file_at_once_whatever_the_lease(tmp_path, mock_kafka, mock_world):
    url = f"sqlite:///{tmp_path}/replica.db"
    config = write_config(
        tmp_path, servers=mock_kafka, url=url, topics=list(mock_world.topics), protocol=mock_world.protocol, lease_s=HOUR_S
    )
    kill_and_restart(config, mock_world, url)


@pytest.mark.soak(reason="tests/integration/test_mysql_ownership.py kills an owner and waits, on each server")
def test_after_a_kill_the_next_start_waits_for_some_heartbeats_and_not_for_the_lease(
    tmp_path, kafka, mysql_url, least_privileged_url, real_world
):
    clear_sink(mysql_url)
    topics = list(real_world.topics)
    config = write_config(
        tmp_path, servers=kafka.bootstrap_servers, url=least_privileged_url, topics=topics, protocol=real_world.protocol, lease_s=LEASE_S
    )
    assert kill_and_restart(config, real_world, mysql_url)["seconds"] < LEASE_S
