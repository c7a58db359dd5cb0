"""The quarantine through Spark, on a real Kafka and real databases: what is bad is stored once though the program dies, and retried."""

import json
import signal
from contextlib import closing
from uuid import uuid4

import pytest

from applier.cli.main import run as run_command
from applier.demo.simulator.kafka_log import create_topic, produce_log
from applier.model.position import Stream
from applier.sources.factory import open_source
from applier.sources.kafka.settings import KafkaSettings
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, TWO, ddl, everywhere, log_of, resolved, row
from tests.builders.wire import column
from tests.rig.local_replica import Replica
from tests.rig.mysql_oracle import connect
from tests.rig.program import catchup, run, write_config
from tests.rig.upstream import NAME, clear_sink

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usually_on("mariadb", reason="tests/integration/test_mysql_writer.py stores rejected rows on each server"),
]

LATE_MS = 600_000
LATE = LATE_MS << 18
"""Commit times so late that looking for later events does not begin at the topic's beginning."""
POLICY = {"APPLIER_SOURCE__ON_UNREADABLE": "quarantine", "APPLIER_SINK__ON_REJECTED_ROW": "quarantine"}
REFUSED = (3, 33)


def order(ts, number, n):
    return row(LATE + ts, id=column(3, KEY, number), n=column(3, PLAIN, n))


def execute(url, statement):
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        connection.commit()
        return list(cursor.fetchall())


def put(topic, servers, time_ms, *placed):
    log = [r._replace(stream=Stream(topic, r.stream.partition), time_ms=time_ms + n) for n, r in enumerate(log_of(*placed))]
    broken = [n for n, (_, event) in enumerate(placed) if event[0].get("ts") == LATE + 99]
    for n in broken:
        log[n] = log[n]._replace(value=log[n].value[:-3])
    produce_log(log, servers)


def test_rejected_events_are_stored_once_despite_a_kill_and_can_be_retried(tmp_path, kafka, mysql_url, least_privileged_url, capsys):
    clear_sink(mysql_url)
    servers, topic = kafka.bootstrap_servers, f"quarantine-{uuid4().hex[:8]}"
    create_topic(servers, topic, 2)
    created = ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")
    put(topic, servers, 1_000, *everywhere(CREATE_SCHEMA), *everywhere(created), *everywhere(resolved(11)))
    with open_source(KafkaSettings(bootstrap_servers=servers, topics=(topic,), group_id=NAME)) as source:
        Replica(least_privileged_url, source, name=NAME).catch_up()
    execute(mysql_url, "ALTER TABLE shop.orders MODIFY n TINYINT")
    rows = [(TWO, order(n, n, 1_000 if n in REFUSED else n)) for n in range(40)]
    put(topic, servers, 2_000, (ONE, order(99, 99, 9)))
    put(topic, servers, LATE_MS, *rows, *everywhere(resolved(LATE + 200)))

    config = write_config(tmp_path, servers=servers, url=least_privileged_url, topics=[topic])
    for point in ("write.before_commit", "write.after_commit"):
        with catchup(config, APPLIER_FAILPOINT=point, **POLICY) as program:
            assert program.wait().code == -signal.SIGKILL, "the driver stores what its listeners have passed by"
    assert run(config, **POLICY).result["rows"] == 38
    assert execute(mysql_url, "SELECT id, n FROM shop.orders ORDER BY id") == [(n, n) for n in range(40) if n not in REFUSED]

    assert run_command(["quarantine", "list", "--config", str(config), "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert {(entry["partition"], entry["offset"], entry["event"], entry["key"]) for entry in entries} == {
        (0, 3, None, ""),
        *((1, 3 + n, 0, f"id={n}") for n in REFUSED),
    }
    execute(mysql_url, "ALTER TABLE shop.orders MODIFY n INT")
    retry = ["quarantine", "retry", "--config", str(config), "--stream", f"{topic}/1", "--offset"]
    assert run_command([*retry, "6"]) == 0, capsys.readouterr().err
    assert execute(mysql_url, "SELECT n FROM shop.orders WHERE id = 3") == [(1_000,)]
    put(topic, servers, LATE_MS, (TWO, order(300, 33, 5)), *everywhere(resolved(LATE + 400)))
    assert run_command([*retry, "36"]) == 6
    assert "a later event" in capsys.readouterr().err
    clear_sink(mysql_url)
