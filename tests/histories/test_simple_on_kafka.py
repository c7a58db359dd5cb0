"""The simple protocol from a topic: a range that begins behind the schema of its rows, and a schema that comes later."""

import sqlite3
from contextlib import closing
from uuid import uuid4

import pytest

from applier.cli.main import run
from applier.config import load_config
from applier.demo.simulator.kafka_log import produce_log
from applier.demo.simulator.producer.options import LogRecord
from applier.model.errors import SourceError
from applier.model.failure import FailureKind
from applier.model.position import Stream
from applier.run.assembly import decoder_for
from applier.sources.factory import open_source
from applier.sources.simple import schema_log
from tests.builders.simple_wire import TS, VERSION, bootstrap, column, ddl, order, row, schema, watermark
from tests.rig.local_replica import sqlite_replica

CREATE = "CREATE TABLE `orders` (`id` INT PRIMARY KEY, `note` VARCHAR(20), `blob` VARBINARY(20))"
BEGINNING = [ddl("CREATE DATABASE `shop`", ts=TS, word="QUERY"), ddl(CREATE, schema(), ts=TS + 1, word="CREATE"), watermark(TS + 2)]


class Topic:
    """A topic on the mock cluster, and a replica in a file."""

    def __init__(self, directory, servers):
        self.directory, self.servers, self.topic = directory, servers, f"simple-{uuid4().hex[:8]}"
        self.config = directory / "applier.toml"
        self.config.write_text(
            f'[source]\nprotocol = "simple"\nbootstrap_servers = "{servers}"\ntopics = ["{self.topic}"]\n'
            f'[sink]\nurl = "sqlite:///{directory}/replica.db"\n'
        )

    def produce(self, *values, partition=0):
        produce_log([LogRecord(Stream(self.topic, partition), None, value, 1_000) for value in values], self.servers)

    def catch_up(self):
        settings = load_config(self.config)
        with open_source(settings.source_settings(), decoder_for(settings)) as source:
            return sqlite_replica(self.directory, source).catch_up()

    def rows(self):
        with closing(sqlite3.connect(self.directory / "replica.db")) as connection:
            return connection.execute('SELECT * FROM "shop.orders" ORDER BY 1').fetchall()


@pytest.fixture
def topic(tmp_path, mock_kafka):
    return Topic(tmp_path, mock_kafka)


def test_a_process_that_knows_nothing_goes_on_in_the_middle_of_the_log(topic):
    topic.produce(*BEGINNING)
    topic.catch_up()
    for number in range(3):
        schema_log._known.clear()
        topic.produce(row("INSERT", order(number, "x", b"\0\xff"), ts=TS + 10 * (number + 1)), watermark(TS + 10 * (number + 1) + 1))
        topic.catch_up()
    assert topic.rows() == [(number, "x", b"\0\xff") for number in range(3)]


def test_a_schema_that_a_filter_held_back_is_waited_for(topic):
    topic.produce(*BEGINNING)
    topic.catch_up()
    newer = schema(column("id", "int"), column("note", "varchar"), column("blob", "varbinary"), version=VERSION + 1)
    topic.produce(row("INSERT", order(1), ts=TS + 10, version=VERSION + 1), watermark(TS + 11))
    with pytest.raises(SourceError, match="has not come yet") as caught:
        topic.catch_up()
    assert caught.value.kind is FailureKind.UNREACHABLE
    topic.produce(bootstrap(newer))
    topic.catch_up()
    assert topic.rows() == [(1, "x", None)]


def test_a_record_of_another_protocol_stops_by_its_name(topic, capsys):
    topic.produce(*BEGINNING, b'{"id":0,"database":"d","table":"t","isDdl":false,"type":"INSERT","es":1,"ts":2,"_tidb":{"commitTs":1}}')
    assert run(["check", "--config", str(topic.config), "--wait", "0"]) != 0
    shown = capsys.readouterr()
    assert "canal-json" in shown.out + shown.err
    with pytest.raises(SourceError, match="canal-json, not simple") as caught:
        topic.catch_up()
    assert (caught.value.exit_code, caught.value.facts["offset"]) == (3, 3)


def test_commands_show_the_rows_with_their_values(topic, capsys):
    topic.produce(*BEGINNING, row("UPDATE", order(1, "new"), order(1, "old"), ts=TS + 10), bootstrap())
    schema_log._known.clear()
    assert run(["inspect", "--config", str(topic.config), "--json", "--partition", "0", "--from", "3"]) == 0
    assert '"new"' in capsys.readouterr().out
