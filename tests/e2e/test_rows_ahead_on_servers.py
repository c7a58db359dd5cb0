"""``consistency = "row"`` through Spark: while one partition lags, several tasks at once write the rows of the others ahead of W."""

import signal
from contextlib import closing
from uuid import uuid4

import pytest

from applier.demo.simulator.producer.options import LogRecord
from applier.model.position import Stream
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.tasks.plan import SMALL_SEGMENT_ROWS
from tests.builders.handwritten import CREATE_SCHEMA, KEY, PLAIN, ddl, resolved, row
from tests.builders.wire import column, record
from tests.rig.mysql_oracle import connect
from tests.rig.process_tree import Role, processes
from tests.rig.program import catchup, run, write_config
from tests.rig.upstream import NAME, Upstream, clear_sink

pytestmark = pytest.mark.slow

PARTITIONS, BEGIN_TS, END_TS = 4, 11, 1_000_000
KEYS = 32_000
assert 2 * KEYS // PARTITIONS > SMALL_SEGMENT_ROWS
"""So that more than one task writes the rows of one partition."""
MANY_WRITERS = pytest.mark.soak(reason="through Spark: 30 s")


def version(key, ts, number):
    return key % PARTITIONS, row(ts, id=column(3, KEY, key), n=column(3, PLAIN, number))


def world(topic):
    """The log while partition 0 lags, the rest of it, and the table in the end: each key has its two versions in one partition."""
    beginning = [CREATE_SCHEMA, ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)"), resolved(BEGIN_TS)]
    versions = [version(key, 100 + KEYS * number + key, number) for number in (0, 1) for key in range(KEYS)]
    first = [(partition, event) for partition in range(PARTITIONS) for event in beginning]
    first += [placed for placed in versions if placed[0]] + [(partition, resolved(END_TS)) for partition in range(1, PARTITIONS)]
    rest = [placed for placed in versions if not placed[0]] + [(0, resolved(END_TS))]
    return *(log_of(topic, placed) for placed in (first, rest)), [(key, 1) for key in range(KEYS)]


def log_of(topic, placed):
    return tuple(LogRecord(Stream(topic, partition), *record(event), 1_000) for partition, event in placed)


def rows_in(url):
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id, n FROM shop.orders ORDER BY id")
        return [tuple(found) for found in cursor.fetchall()]


def applied_in(url):
    with open_sink(SinkSettings(url=url, name=NAME)) as sink:
        return {stream.partition: position.applied_ts for stream, position in sink.load().positions.items()}


def stopped_writers(program):
    return [worker for worker in processes(program.pid, Role.WORKER) if worker.state == "T"]


def write_together(config, writers):
    """Catch up; each worker stops before the first COMMIT of rows ahead, and goes on when all of them are there."""
    plain = config.read_text(encoding="utf-8")
    config.write_text(plain + '"spark.executorEnv.APPLIER_FAILPOINT" = "rows.before_commit:1:stop"\n', encoding="utf-8")
    with catchup(config) as program:
        assert program.reaches(lambda: len(stopped_writers(program)) == writers), program.said()

        def has_ended():
            for worker in stopped_writers(program):
                worker.signal(signal.SIGCONT)
            return False

        assert not program.reaches(has_ended)
        ended = program.wait()
        assert program.orphans() == []
    config.write_text(plain, encoding="utf-8")
    return ended


@pytest.mark.usually_on("mariadb", reason="tests/integration/test_mysql_rows_ahead.py has the writers on each server")
@pytest.mark.parametrize("writers", [2, *(pytest.param(many, marks=MANY_WRITERS) for many in (4, 8))])
def test_several_tasks_write_ahead_of_a_partition_that_lags(writers, tmp_path, kafka, mysql_url, least_privileged_url):
    topic = f"ahead-{uuid4().hex[:8]}"
    first, rest, expected = world(topic)
    lagging = Upstream([], first, BEGIN_TS)
    lagging.create_topics(kafka.bootstrap_servers)
    lagging.produce(kafka.bootstrap_servers)
    clear_sink(mysql_url)
    places = {"servers": kafka.bootstrap_servers, "url": least_privileged_url, "topics": [topic]}
    config = write_config(tmp_path, **places, rows=100_000, master=f"local[{writers}]")
    text = config.read_text(encoding="utf-8").replace("[sink]\n", f'[sink]\nconsistency = "row"\nwriters = {writers}\n')
    config.write_text(text.replace("[source]\n", '[source]\ndispatcher = "index-value"\n'), encoding="utf-8")
    assert write_together(config, writers).result["checkpoint_ts"] == BEGIN_TS
    assert rows_in(mysql_url) == [(key, number) for key, number in expected if key % PARTITIONS]
    applied = applied_in(least_privileged_url)
    assert applied.pop(0) <= BEGIN_TS
    assert applied == {1: END_TS - 1, 2: END_TS - 1, 3: END_TS - 1}
    Upstream([], rest, END_TS).produce(kafka.bootstrap_servers)
    assert run(config).result["checkpoint_ts"] == END_TS
    assert rows_in(mysql_url) == expected
