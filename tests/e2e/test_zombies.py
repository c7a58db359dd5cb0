"""Frozen writers and daemons wake after another run has taken over: they write nothing, and the replica ends identical."""

import signal
import time
from contextlib import closing, contextmanager
from uuid import uuid4

import pytest

from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.producer import ProducerOptions
from applier.demo.simulator.table_family import TableFamily
from tests.rig.checkpoint import CheckpointReader
from tests.rig.database import Kind, kind_of
from tests.rig.mysql_oracle import connect
from tests.rig.process_tree import Role, processes, session
from tests.rig.program import daemon, write_config
from tests.rig.upstream import NAME, clear_sink, fence_of, upstream

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usually_on("mariadb", reason="tests/integration/test_mysql_ownership.py has frozen owners and writers on each server"),
]

FENCED = 5
STOPPED = "T"
DEADLINE_S = 120
POLL_S = 0.05
LEASE_S, LONG_LEASE_S = 3.0, 600.0
MID_TRANSACTION, BEFORE_FIRST_STATEMENT = "write.before_commit", "write.before_lock"
THIRD = ":3:stop"
"""By then the tables are there, and most of the history is still to come."""
ROWS_CHANGED = {
    Kind.MARIADB: "SELECT table_schema, table_name, rows_changed FROM information_schema.table_statistics"
    " WHERE table_schema <> 'applier' ORDER BY 1, 2",
    Kind.MYSQL: "SELECT object_schema, object_name, count_write FROM performance_schema.table_io_waits_summary_by_table"
    " WHERE object_schema NOT IN ('applier', 'mysql') ORDER BY 1, 2",
}
IN_WORKERS = '"spark.executorEnv.APPLIER_FAILPOINT" = "{}"\n'
"""A driver that writes progress without rows comes by these points too, and must not stop itself."""


def wait_until(is_reached, what):
    give_up = time.monotonic() + DEADLINE_S
    while not is_reached():
        assert time.monotonic() < give_up, what
        time.sleep(POLL_S)


def execute(url, statement):
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


def rows_changed(url):
    """Return how many rows of each upstream table any session has changed so far, committed or not."""
    return execute(url, ROWS_CHANGED[kind_of(url)])


@pytest.fixture(scope="module")
def world(kafka):
    history = History(93, HistoryOptions(transactions=40, families=frozenset({TableFamily.MONEY, TableFamily.ORDERS}), ddl_share=0.05))
    made = upstream(history, ProducerOptions(seed=93, topic=f"zombies-{uuid4().hex[:8]}", partitions=3))
    made.create_topics(kafka.bootstrap_servers)
    made.produce(kafka.bootstrap_servers)
    return made


@pytest.fixture
def url(mysql_url):
    clear_sink(mysql_url)
    counts = kind_of(mysql_url) is Kind.MYSQL  # always; MariaDB does when a setting says so
    if not counts:
        execute(mysql_url, "SET GLOBAL userstat = 1")
    yield mysql_url
    if not counts:
        execute(mysql_url, "SET GLOBAL userstat = 0")


@pytest.fixture
def configure(tmp_path, kafka, least_privileged_url, world):
    def write(lease_s=LEASE_S):
        places = {"servers": kafka.bootstrap_servers, "url": least_privileged_url, "topics": list(world.topics)}
        return write_config(tmp_path, **places, rows=20, lease_s=lease_s, lock_timeout_s=60)

    return write


@contextmanager
def with_a_stopped_writer(config, point):
    """Yield a daemon whose writer has stopped itself at ``point``, and that writer."""
    plain = config.read_text(encoding="utf-8")
    config.write_text(plain + IN_WORKERS.format(point + THIRD), encoding="utf-8")
    with daemon(config) as program:
        wait_until(lambda: any(worker.state == STOPPED for worker in processes(program.pid, Role.WORKER)), "no writer gets to the point")
        config.write_text(plain, encoding="utf-8")
        yield program, next(worker for worker in processes(program.pid, Role.WORKER) if worker.state == STOPPED)


def catch_up(url, world):
    with CheckpointReader(url, NAME) as checkpoint:
        assert checkpoint.passes(world.final_ts, DEADLINE_S), "the second run does not get to the end"


@pytest.mark.parametrize(
    "point",
    [
        MID_TRANSACTION,
        pytest.param(BEFORE_FIRST_STATEMENT, marks=pytest.mark.soak(reason="less is at stake than in mid-transaction")),
    ],
)
def test_a_writer_that_wakes_after_its_daemon_was_restarted_writes_nothing(point, url, configure, world):
    config = configure()
    with with_a_stopped_writer(config, point) as (first, writer):
        for manager in processes(first.pid, Role.MANAGER):
            # It would end its workers when the JVM is gone: then nothing would wake.
            manager.signal(signal.SIGSTOP)
        first.kill()
        for jvm in processes(first.pid, Role.JVM):
            jvm.signal(signal.SIGKILL)
        with daemon(config) as second:
            catch_up(url, world)
            fence, changed = fence_of(url), rows_changed(url)
            writer.signal(signal.SIGCONT)
            wait_until(lambda: writer.pid not in {process.pid for process in session(first.pid)}, "the woken writer does not end")
            assert (fence_of(url), rows_changed(url)) == (fence, changed)
            assert second.stop().code == 0
    assert world.wrong_in(url) == []


@pytest.mark.parametrize(
    ("lease_s", "options"),
    [
        pytest.param(LEASE_S, (), id="after the lease", marks=pytest.mark.soak(reason="test_mysql_ownership.py waits for a lease")),
        pytest.param(LONG_LEASE_S, ("--take-over",), id="at once"),
    ],
)
def test_a_frozen_daemon_is_taken_over_and_exits_5_when_it_wakes(lease_s, options, url, configure, world):
    config = configure(lease_s)
    with with_a_stopped_writer(config, MID_TRANSACTION) as (first, _):
        for process in session(first.pid):
            process.signal(signal.SIGSTOP)
        with daemon(config, *options) as second:
            catch_up(url, world)
            fence, changed = fence_of(url), rows_changed(url)
            for process in session(first.pid):
                process.signal(signal.SIGCONT)
            woken = first.wait()
            assert woken.code == FENCED, woken.stderr
            assert f"process: {second.pid}\n" in woken.stderr
            assert "Traceback" not in woken.stderr
            assert (fence_of(url), rows_changed(url)) == (fence, changed)
            assert second.stop().code == 0
    assert world.wrong_in(url) == []
