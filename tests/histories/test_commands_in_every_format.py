"""The commands work with each format: one log by hand, written in each of them, on a topic, and the command line beside the replica.

Open Protocol has a test of its own for each command.
"""

import json
import sqlite3
from contextlib import closing
from uuid import uuid4

import pytest
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from applier.cli.main import run
from applier.config import load_config
from applier.dataframe.changelog import columns_of
from applier.dataframe.position_columns import TopicColumns
from applier.dataframe.source import ChangelogSource
from applier.demo.simulator import column_type as of
from applier.demo.simulator.kafka_log import produce_log
from applier.demo.simulator.operation import CreateSchema, CreateTable
from applier.demo.simulator.schema import Table, column, primary
from applier.demo.simulator.wire_format import WireFormat
from applier.model.errors import ProtocolError
from applier.model.events import TableName
from applier.planner.table_check import DifferenceKind
from applier.run.assembly import decoder_for
from applier.sources.factory import open_source
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.status.replica_status import Health
from tests.builders.wire_log import WireLog
from tests.rig.local_replica import sqlite_replica

ORDERS = Table(
    name=TableName("shop", "orders"),
    columns=(column("id", of.integer(), null=False), column("n", of.integer()), column("note", of.varchar(20))),
    indexes=(primary("id"),),
)
T = 458_173_202_432_000_000
TYPES = {"BIGINT": LongType(), "INT": IntegerType(), "TIMESTAMP": TimestampType(), "BOOLEAN": BooleanType()}


class Feed:
    """A topic of one partition on the mock cluster, and a replica in a file."""

    def __init__(self, directory, servers, form):
        self.directory, self.servers, self.form, self.topic = directory, servers, form, f"commands-{uuid4().hex[:8]}"
        self.log = WireLog(form, self.topic, partitions=1)
        self.offset = 0
        self.config = directory / "applier.toml"
        self.config.write_text(
            f'[source]\nprotocol = "{form.protocol}"\nbootstrap_servers = "{servers}"\ntopics = ["{self.topic}"]\n'
            f'[sink]\nurl = "sqlite:///{directory}/replica.db"\n[sink.accept]\n"shop.orders" = ["trigger"]\n[run]\nlock_timeout_s = 0.2\n'
        )
        self.log.ddl(T, CreateSchema("shop"))
        self.log.ddl(T + 1, CreateTable(ORDERS))
        self.log.watermark(T + 2)

    def order(self, ts, before, after):
        self.log.row(T + ts, ORDERS, before, after)

    def produce(self):
        """Produce what was written; return the offset of its last record."""
        records = self.log.take()
        produce_log(records, self.servers)
        self.offset += len(records)
        return self.offset - 1

    def catch_up(self, *quarantines):
        settings = load_config(self.config)
        with open_source(settings.source_settings(), decoder_for(settings)) as source:
            accept = {"shop.*": (DifferenceKind.TRIGGER,)}
            return sqlite_replica(self.directory, source, quarantines=frozenset(quarantines), accept=accept).catch_up()

    def run(self, command, *options):
        return run([*command.split(), "--config", str(self.config), *map(str, options)])

    def execute(self, statement):
        with closing(sqlite3.connect(self.directory / "replica.db", isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()

    def rows(self):
        return self.execute('SELECT * FROM "shop.orders" ORDER BY 1')


@pytest.fixture(params=[form for form in WireFormat if form is not WireFormat.OPEN_PROTOCOL], ids=str)
def feed(request, tmp_path, mock_kafka):
    return Feed(tmp_path, mock_kafka, request.param)


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_check_status_inspect_and_the_dataframe_show_what_the_log_says(feed, capsys):
    feed.order(10, None, (1, 5, "a b"))
    feed.order(11, (1, 5, "a b"), (1, 6, None))
    feed.order(12, (1, 6, None), None)
    feed.order(13, None, (2, 7, "null"))
    feed.log.watermark(T + 20)
    feed.produce()
    feed.run("check", "--wait", 0, "--json")
    (found,) = [line for line in lines(capsys) if line["check"] == "topics: records"]
    assert found["level"] == "ok", found
    assert feed.catch_up().checkpoint_ts == T + 20
    assert feed.rows() == [(2, 7, "null")]
    assert feed.run("status", "--json") == Health.STOPPED
    assert lines(capsys)[0]["checkpoint_ts"] == T + 20

    assert feed.run("inspect", "--json", "--partition", 0, "--from", 0, "--limit", 99) == 0
    shown = [(line["commit_ts"] - T, line.get("table")) for line in lines(capsys) if line.get("table") == "orders" and "query" not in line]
    assert shown == [(10, "orders"), (11, "orders"), (12, "orders"), (13, "orders")]

    source = ChangelogSource({"bootstrap_servers": feed.servers, "topics": feed.topic, "protocol": feed.form.protocol})
    source.schema()
    reader = source.reader(
        StructType([StructField(name, TYPES.get(kind, StringType())) for name, kind in columns_of(TopicColumns(TSO_TIMELINE))])
    )
    read = [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]
    assert [(row["op"], row["commit_ts"] - T) for row in read] == [
        ("ddl", 0),
        ("ddl", 1),
        ("insert", 10),
        ("update", 11),
        ("delete", 12),
        ("insert", 13),
    ]
    assert [json.loads(row["after"]) for row in read if row["after"]] == [
        {"id": 1, "n": 5, "note": "a b"},
        {"id": 1, "n": 6, "note": None},
        {"id": 2, "n": 7, "note": "null"},
    ]


def test_records_are_quarantined_shown_dropped_retried_and_skipped(feed, capsys):
    feed.order(10, None, (1, 5, "a b"))
    feed.log.watermark(T + 11)
    feed.produce()
    feed.catch_up()
    feed.execute("CREATE TRIGGER strict BEFORE INSERT ON \"shop.orders\" WHEN NEW.n >= 100 BEGIN SELECT RAISE(ABORT, 'too much'); END")
    feed.order(20, None, (2, 100, "much"))
    refused = feed.produce()
    feed.order(21, None, (3, 3, "damaged"))
    feed.log.damage_last()
    damaged = feed.produce()
    feed.log.watermark(T + 30)
    feed.produce()
    feed.catch_up("rejected", "unreadable")
    assert feed.rows() == [(1, 5, "a b")]
    assert feed.run("quarantine list", "--json") == 0
    (entries,) = [json.loads(capsys.readouterr().out)]
    assert sorted((entry["offset"], entry["state"]) for entry in entries) == [(refused, "held"), (damaged, "held")]
    at = ("--stream", f"{feed.topic}/0", "--offset")
    assert feed.run("quarantine show", *at, refused) == 0
    assert "too much" in capsys.readouterr().out
    assert feed.run("quarantine drop", *at, damaged) == 0
    feed.execute("DROP TRIGGER strict")
    assert feed.run("quarantine retry", *at, refused) == 0
    assert feed.rows() == [(1, 5, "a b"), (2, 100, "much")]

    feed.order(40, None, (4, 4, "skipped"))
    feed.log.damage_last()
    skipped = feed.produce()
    feed.order(41, None, (5, 5, "after it"))
    feed.log.watermark(T + 50)
    feed.produce()
    with pytest.raises(ProtocolError) as caught:
        feed.catch_up()
    assert caught.value.facts["offset"] == skipped
    assert feed.run("skip", *at, skipped) == 0
    feed.catch_up()
    assert feed.rows() == [(1, 5, "a b"), (2, 100, "much"), (5, 5, "after it")]
