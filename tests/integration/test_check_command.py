"""``applier check`` against real servers: what is right, and what is missing."""

import json
import subprocess
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from threading import Event, Thread
from uuid import uuid4

import pytest
from confluent_kafka import Producer

from applier.check import everything
from applier.check.sink import BEGINNING
from applier.cli.main import run
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.ticdc.tso import ts_at
from tests.builders import wire
from tests.rig.least_privilege import make_user
from tests.rig.mysql_oracle import connect

PARTITIONS = 3
NOW = datetime.now(UTC)


@pytest.fixture
def topic(kafka):
    name = f"check-{uuid4().hex[:8]}"
    kafka.create_topic(name, PARTITIONS)
    yield name
    kafka.delete_topic(name)


@pytest.fixture
def filled(kafka, topic):
    """A row with the time of its commit at UTC+8 in the first partition, and a resolved event in the others."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers} | kafka.properties)
    ts = ts_at(NOW)
    moment = datetime.fromtimestamp(NOW.timestamp() + 28800, UTC).strftime("%Y-%m-%d %H:%M:%S")
    for number in range(4):
        row = {"u": {"id": wire.integer_key(number), "at": wire.column(7, 64, moment)}}
        key, value = wire.record((wire.head(ts=ts, schema="applier_test_shop", table="at"), row))
        producer.produce(topic, value, key, partition=0)
    for partition in (1, 2):
        key, value = wire.record(({"ts": ts, "t": 3}, b""))
        producer.produce(topic, value, key, partition=partition)
    producer.flush(30)
    return topic


def found(tmp_path, capsys, servers, topics, url, *, wait="0"):
    path = tmp_path / "applier.toml"
    path.write_text(f'name = "check"\n[source]\nbootstrap_servers = "{servers}"\ntopics = {json.dumps(topics)}\n[sink]\nurl = "{url}"\n')
    code = run(["check", "--config", str(path), "--wait", wait, "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return code, {(line["check"], line["level"]): line for line in lines}


@pytest.mark.on_one_server("mariadb", reason="the checks of Kafka do not depend on the sink")
def test_a_replica_that_can_run_passes_and_a_wrong_zone_is_told(tmp_path, capsys, kafka, filled, least_privileged_url):
    code, lines = found(tmp_path, capsys, kafka.bootstrap_servers, [filled], least_privileged_url)
    assert code == 0, lines
    for check in ("Kafka", "topics", "topics: permission", "topics: records", "sink: version", "Java", "memory", "sink: sql_mode"):
        assert (check, "ok") in lines
    assert "UTC+08:00" in lines["time zone", "warning"]["detail"]
    assert "no partition got one" in lines["topics: resolved events", "warning"]["detail"]


@contextmanager
def resolving(kafka, topic, partitions):
    """Send resolved events to some partitions, as a changefeed does, until the end of the block."""
    producer, ended = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0} | kafka.properties), Event()

    def send():
        while not ended.wait(0.2):
            for partition in partitions:
                key, value = wire.record(({"ts": ts_at(datetime.now(UTC)), "t": 3}, b""))
                producer.produce(topic, value, key, partition=partition)
            producer.flush(30)

    sender = Thread(target=send)
    sender.start()
    try:
        yield
    finally:
        ended.set()
        sender.join()


def test_a_partition_without_resolved_events_is_found_beside_those_that_get_them(tmp_path, capsys, kafka, filled):
    url = f"sqlite:///{tmp_path}/replica.db"
    with resolving(kafka, filled, (0, 1)):
        code, lines = found(tmp_path, capsys, kafka.bootstrap_servers, [filled], url, wait="2")
    assert code == 2
    assert f"1 of 3 partitions got none within 2 s, and others did: {filled}/2" in lines["topics: resolved events", "error"]["detail"]
    with resolving(kafka, filled, (0, 1, 2)):
        code, lines = found(tmp_path, capsys, kafka.bootstrap_servers, [filled], url, wait="10")
    assert (code, ("topics: resolved events", "ok") in lines) == (0, True)


@pytest.mark.on_one_server("mariadb", reason="the checks of Kafka do not depend on the sink")
def test_every_wrong_topic_is_named_and_a_damaged_record_has_its_place(tmp_path, capsys, kafka, filled, least_privileged_url):
    code, lines = found(tmp_path, capsys, kafka.bootstrap_servers, [filled, "absent-1"], least_privileged_url)
    assert code == 2
    assert "absent-1" in lines["topics", "error"]["detail"]
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers} | kafka.properties)
    producer.produce(filled, b"garbage", b"garbage", partition=2)
    producer.flush(30)
    code, lines = found(tmp_path, capsys, kafka.bootstrap_servers, [filled], least_privileged_url)
    assert code == 2
    assert "partition=2, offset=1" in lines["topics: records", "error"]["detail"]


@pytest.mark.on_one_server("mariadb", reason="how both servers write grants is tested without them")
def test_missing_privileges_are_named_with_their_grant(tmp_path, capsys, kafka, filled, mysql_url):
    lacking = make_user(mysql_url, user="applier_lacks", without="shop.*")
    code, lines = found(tmp_path, capsys, kafka.bootstrap_servers, [filled], lacking)
    assert code == 2
    line = lines["sink: privileges", "error"]
    # All in one round: what a replica cannot run without, and what its DDLs need.
    every = "SELECT, INSERT, DELETE, CREATE, ALTER, INDEX, DROP, REFERENCES, CREATE VIEW, SHOW VIEW, TRIGGER"
    assert f"lacks {every} on applier_test_shop.*" in line["detail"]
    assert line["remedy"].startswith(f"GRANT {every} ON `applier\\_test\\_shop`.* TO 'applier_lacks'@")
    with closing(connect(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(line["remedy"])
    code, lines = found(tmp_path, capsys, kafka.bootstrap_servers, [filled], lacking)
    assert code == 0
    assert ("sink: privileges", "warning") not in lines


@pytest.mark.on_one_server("mariadb", reason="how both servers write grants is tested without them")
def test_a_user_who_may_not_read_the_bookkeeping_is_told_everything_that_is_missing(tmp_path, capsys, kafka, filled, mysql_url):
    with open_sink(SinkSettings(url=mysql_url)) as sink:
        sink.migrate()
    lacking = make_user(mysql_url, user="applier_lacks", without="GRANT")
    code, lines = found(tmp_path, capsys, kafka.bootstrap_servers, [filled], lacking)
    assert (code, "denied" in lines["sink", "error"]["detail"]) == (2, True)
    assert "on applier_test_shop.*" in lines["sink: privileges", "error"]["detail"]
    assert ("sink: version", "ok") in lines


SETTINGS = {"read_only": "ON", "local_infile": "OFF", "max_allowed_packet": "1048576"}


@pytest.mark.on_one_server("mariadb", reason="MySQL has the same settings")
def test_settings_of_the_server_are_right_after_the_statements_of_the_remedies(tmp_path, capsys, kafka, filled, mysql_url):
    url = make_user(mysql_url, user="applier_lacks", without="PROCESS")
    with closing(connect(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'@@GLOBAL.{name}' for name in SETTINGS)}")
        before = dict(zip(SETTINGS, cursor.fetchone(), strict=True))
        try:
            for name, value in SETTINGS.items():
                cursor.execute(f"SET GLOBAL {name} = {value}")
            _, lines = found(tmp_path, capsys, kafka.bootstrap_servers, [filled], url)
            for level, check in [
                ("error", "read_only"),
                ("warning", "local_infile"),
                ("warning", "max_allowed_packet"),
                ("warning", "privileges"),
            ]:
                # Word by word, as far as it is a statement.
                cursor.execute(lines[f"sink: {check}", level]["remedy"].partition(",")[0])
            code, lines = found(tmp_path, capsys, kafka.bootstrap_servers, [filled], url)
        finally:
            for name, value in before.items():
                cursor.execute(f"SET GLOBAL {name} = {value}")
    assert code == 0, lines
    # That no dump is loaded is a warning of every replica that begins with an empty upstream.
    assert [check for check, level in lines if check.startswith("sink: ") and level != "ok" and check != BEGINNING] == []


def test_a_server_that_does_not_answer_is_told_with_everything_else(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(everything, "PATIENCE_S", 0.5)
    code, lines = found(tmp_path, capsys, "127.0.0.1:1", ["cdc"], f"sqlite:///{tmp_path}/no/such/x.db")
    assert code == 2
    assert lines["sink", "error"]["remedy"] == f"Create it: `mkdir -p {tmp_path}/no/such`. Or correct [sink] url"
    assert ("Kafka", "error") in lines
    assert ("Java", "ok") in lines
    subprocess.run(lines["sink", "error"]["remedy"].split("`")[1].split(), check=True)
    _, lines = found(tmp_path, capsys, "127.0.0.1:1", ["cdc"], f"sqlite:///{tmp_path}/no/such/x.db")
    assert ("sink", "ok") in lines
