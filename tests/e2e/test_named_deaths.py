"""Death at each named point between a statement and what is written about it: the driver's at a DDL, a writer's at a COMMIT."""

import signal
from uuid import uuid4

import pytest

from tests.rig.program import catchup, daemon, run, write_config
from tests.rig.upstream import clear_sink, differences_now, fence_of, small_upstream

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usually_on("mariadb", reason="tests/integration/test_deaths_around_ddls.py has the deaths on each server"),
]

DDL = ("ddl.before_intent", "ddl.after_statement", "ddl.before_done", "ddl.after_done")
STATEMENT_IN_DOUBT = {"ddl.after_statement", "ddl.before_done"}
"""On a server the statement has run, and the ledger does not call it done yet."""
THIRD = ":3"
WRITER = ("write.before_commit", "write.after_commit")
"""They kill the Python worker in which they are reached; each new one counts from zero, and dies again. So does a driver that writes."""
MAX_STARTS = 10


def die_at(start, config, point):
    with start(config, APPLIER_FAILPOINT=point + THIRD) as program:
        assert program.wait().code == -signal.SIGKILL, point
        assert program.orphans() == []


def lose_writers_at(config, world, url, point):
    for _ in range(MAX_STARTS):
        ended = run(config, APPLIER_FAILPOINT=point + THIRD)
        if ended.code != -signal.SIGKILL:
            break
    assert ended.result["checkpoint_ts"] == world.final_ts
    assert world.wrong_in(url) == []
    # A death at a COMMIT left its outcome unknown: the epoch was raised.
    assert fence_of(url)[0] > 1, point


@pytest.fixture(scope="module")
def mock_world(mock_kafka):
    world = small_upstream(51, "dying", transactions=20)
    world.produce(mock_kafka)
    return world


@pytest.fixture(scope="module")
def real_world(kafka):
    world = small_upstream(52, f"dying-{uuid4().hex[:8]}", transactions=20)
    world.create_topics(kafka.bootstrap_servers)
    world.produce(kafka.bootstrap_servers)
    return world


@pytest.mark.parametrize(
    "points",
    [
        ("ddl.after_statement",),
        pytest.param(DDL, marks=pytest.mark.soak(reason="tests/histories/test_deaths_around_ddls.py dies at each point of each DDL")),
    ],
    ids="|".join,
)
def test_a_driver_that_dies_at_points_of_a_ddl_in_turn_ends_identical_in_a_file(points, tmp_path, mock_kafka, mock_world):
    url = f"sqlite:///{tmp_path}/replica.db"
    config = write_config(tmp_path, servers=mock_kafka, url=url, topics=list(mock_world.topics), protocol=mock_world.protocol)
    for point in points:
        die_at(catchup, config, point)
        assert differences_now(mock_world.history, url) == [], point
    assert run(config).result["checkpoint_ts"] == mock_world.final_ts
    assert mock_world.wrong_in(url) == []


@pytest.mark.parametrize(
    "points",
    [
        ("ddl.after_intent", "ddl.after_statement"),
        pytest.param(
            ("ddl.after_intent", *DDL),
            marks=pytest.mark.soak(reason="tests/integration/test_deaths_around_ddls.py dies at each point of each type of DDL"),
        ),
    ],
    ids="|".join,
)
def test_a_daemon_that_dies_at_points_of_a_ddl_in_turn_ends_identical_on_a_server(
    points, tmp_path, kafka, mysql_url, least_privileged_url, real_world
):
    clear_sink(mysql_url)
    config = write_config(
        tmp_path, servers=kafka.bootstrap_servers, url=least_privileged_url, topics=list(real_world.topics), protocol=real_world.protocol
    )
    for point in points:
        die_at(daemon, config, point)
        if point not in STATEMENT_IN_DOUBT:
            assert differences_now(real_world.history, mysql_url) == [], point
    assert run(config).result["checkpoint_ts"] == real_world.final_ts
    assert real_world.wrong_in(mysql_url) == []


@pytest.mark.parametrize(
    "point",
    [WRITER[0], pytest.param(WRITER[1], marks=pytest.mark.soak(reason="what a file does then, it does before the commit too"))],
)
def test_writers_that_die_at_a_commit_are_replaced_and_the_file_ends_identical(point, tmp_path, mock_kafka, mock_world):
    url = f"sqlite:///{tmp_path}/replica.db"
    lose_writers_at(
        write_config(tmp_path, servers=mock_kafka, url=url, topics=list(mock_world.topics), protocol=mock_world.protocol),
        mock_world,
        url,
        point,
    )


@pytest.mark.parametrize("point", WRITER)
def test_writers_that_die_at_a_commit_are_replaced_and_the_server_ends_identical(
    point, tmp_path, kafka, mysql_url, least_privileged_url, real_world
):
    clear_sink(mysql_url)
    config = write_config(
        tmp_path, servers=kafka.bootstrap_servers, url=least_privileged_url, topics=list(real_world.topics), protocol=real_world.protocol
    )
    lose_writers_at(config, real_world, mysql_url, point)
