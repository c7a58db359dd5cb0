"""The applier's commands of docs/quickstart.md, as they stand there, on a real Kafka and MariaDB. TiDB's part is played by the test."""

import re
import shlex
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from sqlalchemy.engine import make_url

from applier.demo.simulator.mysql_oracle import connect
from applier.sources.ticdc.tso import ts_at
from tests.builders import wire
from tests.rig.dump_directory import DUMPLING, HEAD
from tests.rig.program import ROOT, Program

pytestmark = [pytest.mark.slow, pytest.mark.on_one_server("mariadb", reason="the quick start's sink is MariaDB")]

TEXT = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
COMMANDS = [line for line in re.findall(r"^applier .*", TEXT, re.MULTILINE) if "--version" not in line]
PARTITIONS = 4


def now():
    return ts_at(datetime.now(UTC))


def statement(beginning):
    return re.search(rf"{beginning}[^;\"]*", TEXT)[0]


class Feed:
    """The topic of a changefeed that lives: a resolved event on each partition twice a second."""

    def __init__(self, servers, topic):
        self._producer, self._topic = Producer({"bootstrap.servers": servers}), topic

    def row(self, ts, schema, **columns):
        customer, total = wire.text(columns["customer"]), wire.column(246, 64, columns["total"])
        body = {"u": {"id": wire.integer_key(columns["id"]), "customer": customer, "total": total}}
        key, value = wire.record((wire.head(ts=ts, schema=schema), body))
        self._producer.produce(self._topic, value, key, partition=1)

    def resolve(self, ts):
        key, value = wire.record(({"ts": ts, "t": 3}, b""))
        for partition in range(PARTITIONS):
            self._producer.produce(self._topic, value, key, partition=partition)
        self._producer.flush(30)

    @contextmanager
    def living(self) -> Iterator[None]:
        ended = threading.Event()

        def resolve():
            while not ended.wait(0.5):
                self.resolve(now())

        thread = threading.Thread(target=resolve)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@pytest.fixture
def world(tmp_path, kafka, mysql_url):
    """The quick start's steps 2 to 4: the feed begins, then the dump; a configuration with this test's addresses."""
    name = f"quick_{uuid4().hex[:8]}"
    kafka.create_topic(name, PARTITIONS)
    feed = Feed(kafka.bootstrap_servers, name)
    feed.row(now(), name, id=1, customer="Ada", total="1.00")
    pos = now()
    dump = tmp_path / "dump"
    dump.mkdir()
    table, rows = statement("CREATE TABLE shop.orders"), statement("INSERT INTO shop.orders")
    for file, text in {
        f"{name}-schema-create.sql": f"CREATE DATABASE `{name}` DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;",
        f"{name}.orders-schema.sql": f"{table.replace('shop.orders', '`orders`')} COLLATE utf8mb4_bin;",
        f"{name}.orders.000000000.sql": f"{rows.replace('shop.orders', '`orders`')};",
    }.items():
        (dump / file).write_text(f"{HEAD}{text}\n", encoding="utf-8")
    (dump / "metadata").write_text(DUMPLING.format(log="tidb-binlog", ts=pos), encoding="utf-8")
    toml = re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)[1]
    for old, new in (
        ("127.0.0.1:9092", kafka.bootstrap_servers),
        ('"changefeed"', f'"{name}"'),
        ("420747102018863124", str(pos)),
        ("mysql+pymysql://applier@127.0.0.1:3306/", make_url(mysql_url).set(password=None)._replace(password=None).render_as_string()),
    ):
        assert toml.count(old) == 1
        toml = toml.replace(old, new)
    (tmp_path / "applier.toml").write_text(toml, encoding="utf-8")
    yield feed, name
    kafka.delete_topic(name)
    query(mysql_url, f"DROP SCHEMA IF EXISTS {name}", "COMMIT")


def query(url, *statements):
    with closing(connect(url)) as connection, connection.cursor() as cursor:
        for text in statements:
            cursor.execute(text)
        return list(cursor.fetchall())


def test_the_quick_start_makes_a_replica(tmp_path: Path, world, mysql_url):
    feed, name = world
    password = make_url(mysql_url).password
    settings = {"APPLIER_NAME": name, "APPLIER_SINK__PASSWORD": password, "APPLIER_HTTP__LISTEN": "off", "PYTHONPATH": str(ROOT)}
    # In the user's directory, these are relative.
    paths = {word: str(tmp_path / word) for word in ("applier.toml", "dump")}
    load, check, run, status, _verify = (
        [sys.executable, "-m", *(paths.get(word, word) for word in shlex.split(command))] for command in COMMANDS
    )

    def call(command):
        with Program(command, tmp_path, **settings) as program:
            done = program.wait()
            assert done.code == 0, done.stdout + done.stderr
            return done.stdout

    assert "loaded 1 table" in call(load)
    with feed.living():
        assert "checks passed" in call(check)
        with Program(run, tmp_path, **settings) as daemon:
            feed.row(now(), name, id=1, customer="Ada", total="24.90")
            rows = f"SELECT id, customer, CAST(total AS CHAR) FROM {name}.orders ORDER BY id"
            assert daemon.reaches(lambda: query(mysql_url, rows) == [(1, "Ada", "24.90"), (2, "Grace", "5.00")]), daemon.said()
            assert "alive" in call(status)
            assert daemon.stop().code == 0
