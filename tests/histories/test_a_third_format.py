"""A made-up format goes through every command, and nothing but its folder and the registry knows of it."""

import json
import sqlite3
from contextlib import closing
from uuid import uuid4

import pytest
from pyspark.sql.types import BooleanType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from applier.cli.main import run
from applier.config import load_config
from applier.dataframe.changelog import columns_of, schema_text
from applier.dataframe.position_columns import TopicColumns
from applier.dataframe.source import ChangelogSource
from applier.demo.simulator.kafka_log import produce_log
from applier.demo.simulator.producer.options import LogRecord
from applier.model.errors import NeedsOperator, ProtocolError
from applier.model.position import Stream
from applier.planner.table_check import DifferenceKind
from applier.run.assembly import decoder_for
from applier.sinks import registry
from applier.sinks.registry import register
from applier.sinks.settings import SinkSettings
from applier.sources import formats
from applier.sources.factory import open_source
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.status.replica_status import Health
from applier.verify.verification import ComparedTables, Options, Task, perform
from tests.line_format.decoder import LineDecoder
from tests.line_format.encoder import ddl, deleted, put, record, resolved, updated
from tests.rig.local_replica import Replica, sqlite_replica
from tests.vault import ENTRY

PROTOCOL = "line"
KEY, PLAIN = 11, 65
INT, TEXT = 3, 15
BEGINNING = [
    ddl(5, "shop", "", 1, "CREATE DATABASE shop"),
    ddl(10, "shop", "orders", 3, "CREATE TABLE orders (id INT PRIMARY KEY, n INT, note VARCHAR(20))"),
    resolved(11),
]
TYPES = {"BIGINT": LongType(), "INT": IntegerType(), "TIMESTAMP": TimestampType(), "BOOLEAN": BooleanType()}
COLUMNS = columns_of(TopicColumns(TSO_TIMELINE))


def order(ts, number, n, note="a b"):
    return put(ts, "shop", "orders", id=(INT, KEY, number), n=(INT, PLAIN, n), note=(TEXT, PLAIN, note))


class Feed:
    """A topic of the format on the mock cluster, a replica in a file, and the command line beside it."""

    def __init__(self, directory, servers):
        self.directory, self.servers, self.topic = directory, servers, f"line-{uuid4().hex[:8]}"
        self.config = directory / "applier.toml"
        self.write()

    def write(self, source="", accept=""):
        self.config.write_text(
            f'[source]\nprotocol = "{PROTOCOL}"\nbootstrap_servers = "{self.servers}"\ntopics = ["{self.topic}"]\n{source}\n'
            f'[sink]\nurl = "sqlite:///{self.directory}/replica.db"\n[sink.accept]\n"shop.orders" = ["trigger"]\n{accept}\n'
            "[run]\nlock_timeout_s = 0.2\n"
        )

    def produce(self, *records):
        produce_log([LogRecord(Stream(self.topic, 0), *record(*events), 1_000) for events in records], self.servers)

    def source(self):
        settings = load_config(self.config)
        return open_source(settings.source_settings(), decoder_for(settings))

    def catch_up(self, *quarantines):
        with self.source() as source:
            replica = sqlite_replica(
                self.directory, source, quarantines=frozenset(quarantines), accept={"shop.*": (DifferenceKind.TRIGGER,)}
            )
            return replica.catch_up()

    def run(self, command, *options):
        return run([*command.split(), "--config", str(self.config), *map(str, options)])

    def at(self, offset):
        return "--stream", f"{self.topic}/0", "--offset", offset

    def rows(self, table="shop.orders"):
        return self.execute(f'SELECT * FROM "{table}" ORDER BY 1')

    def execute(self, statement):
        with closing(sqlite3.connect(self.directory / "replica.db", isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()


@pytest.fixture
def feed(tmp_path, mock_kafka, monkeypatch):
    monkeypatch.setitem(formats.FORMATS, PROTOCOL, LineDecoder)
    return Feed(tmp_path, mock_kafka)


def test_a_replica_catches_up_and_the_commands_show_it(feed, capsys):
    feed.produce(BEGINNING, [order(20, 1, 5), order(20, 2, None)], [order(21, 1, 6), deleted(22, "shop", "orders", id=(INT, KEY, 2))])
    feed.produce([order(23, 3, 7, "100 %")], [resolved(30)])
    feed.catch_up()
    assert feed.rows() == [(1, 6, "a b"), (3, 7, "100 %")]
    assert feed.run("status", "--json") == Health.STOPPED
    assert json.loads(capsys.readouterr().out)["checkpoint_ts"] == 30
    assert feed.run("inspect", "--json", "--partition", 0, "--from", 1, "--limit", 2) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["commit_ts"], one["table"]) for one in shown] == [(20, "orders"), (20, "orders"), (21, "orders"), (22, "orders")]


def seat(row, number, who):
    """Columns of a table whose key the format does not tell."""
    return {"row": (TEXT, "?", row), "number": (INT, "?", number), "who": (TEXT, "?", who)}


SEATS = ddl(
    12, "shop", "seats", 3, "CREATE TABLE seats (row VARCHAR(9) NOT NULL, number INT NOT NULL, who VARCHAR(20), UNIQUE (row, number))"
)


def test_the_sink_gives_the_key_that_the_format_does_not_tell(feed, capsys):
    feed.produce([*BEGINNING, SEATS, resolved(13)])
    feed.produce([put(20, "shop", "seats", **seat("a", number, "ann")) for number in range(5)], [resolved(21)])
    feed.catch_up()
    taken = updated(30, "shop", "seats", seat("a", 1, "ann"), seat("a", 1, "bob"))
    moved = updated(31, "shop", "seats", seat("a", 2, "ann"), seat("b", 2, "ann"))
    again = put(34, "shop", "seats", **seat("a", 2, "eve"))
    gone = deleted(33, "shop", "seats", **seat("a", 3, "ann"))
    feed.produce([taken, moved], [gone, order(33, 1, 5)], [again, resolved(40)])
    feed.catch_up()
    assert feed.rows("shop.seats") == [("a", 0, "ann"), ("a", 1, "bob"), ("a", 2, "eve"), ("a", 4, "ann"), ("b", 2, "ann")]
    # The producer sends everything again: nothing is applied twice.
    feed.produce([taken, moved], [gone], [again, resolved(41)])
    feed.catch_up()
    assert len(feed.rows("shop.seats")) == 5
    assert feed.run("inspect", "--partition", 0, "--from", 2, "--limit", 1) == 0
    assert "row='b', number=2, who='ann'" in capsys.readouterr().out


def test_one_row_of_a_table_whose_key_is_not_told_is_applied_later(feed, capsys):
    feed.produce([*BEGINNING, SEATS, resolved(13)])
    feed.catch_up()
    feed.execute("CREATE TRIGGER strict BEFORE INSERT ON \"shop.seats\" WHEN NEW.number >= 100 BEGIN SELECT RAISE(ABORT, 'too much'); END")
    feed.write(accept='"shop.seats" = ["trigger"]')
    feed.produce([put(20, "shop", "seats", **seat("a", number, "bob")) for number in (1, 100, 101)], [resolved(30)])
    feed.catch_up("rejected")
    assert feed.rows("shop.seats") == [("a", 1, "bob")]
    feed.execute("DROP TRIGGER strict")
    feed.produce([put(35, "shop", "seats", **seat("a", 101, "eve")), put(36, "shop", "seats", **seat("a", 1, "ann"))], [resolved(40)])
    feed.catch_up("rejected")
    # Later events are about other rows of the table, by the sink's key.
    assert feed.run("quarantine retry", *feed.at(1), "--event", 1) == 0
    assert feed.rows("shop.seats") == [("a", 1, "ann"), ("a", 100, "bob"), ("a", 101, "eve")]
    assert feed.run("quarantine retry", *feed.at(1), "--event", 2) == NeedsOperator.exit_code
    assert "a later event has changed the same row" in capsys.readouterr().err


def test_rows_that_no_key_of_the_sink_tells_apart_stop(feed):
    feed.produce(
        [*BEGINNING, ddl(12, "shop", "seats", 3, "CREATE TABLE seats (row VARCHAR(9), number INT, who VARCHAR(20))"), resolved(13)]
    )
    feed.produce([put(20, "shop", "seats", **seat("a", 1, "ann"))], [resolved(30)])
    with pytest.raises(NeedsOperator, match="the table has no key") as caught:
        feed.catch_up()
    assert caught.value.facts["offset"] == 1


def test_rows_are_selected_before_they_are_read_and_have_the_sinks_names(feed):
    feed.write('tables = ["shop.*", "!shop.log"]\nroute = [{ from = "shop.orders", to = "copy.{table}" }]\n')
    unreadable = "put 20 shop log no column at all"
    feed.produce(BEGINNING, [unreadable, order(20, 1, 5)], [resolved(30)])
    feed.catch_up()
    assert feed.rows("copy.orders") == [(1, 5, "a b")]


def test_an_event_that_cannot_be_read_is_quarantined_shown_and_skipped(feed, capsys):
    feed.produce(BEGINNING, [order(20, 1, 5), "put 20 shop orders id:3:11=2 n", order(20, 3, 7)], [resolved(30)])
    feed.catch_up("unreadable")
    assert feed.rows() == [(1, 5, "a b"), (3, 7, "a b")]
    assert feed.run("quarantine list", "--json") == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert (entry["offset"], entry["event"], entry["state"]) == (1, 1, "held")
    assert feed.run("quarantine show", *feed.at(1)) == 0
    assert "unreadable (field_type): a column has no name" in capsys.readouterr().out
    assert feed.run("quarantine drop", *feed.at(1), "--event", 1) == 0


def test_a_row_that_the_sink_refuses_is_applied_later(feed):
    feed.produce(BEGINNING)
    feed.catch_up()
    trigger = "CREATE TRIGGER strict BEFORE INSERT ON \"shop.orders\" WHEN NEW.n >= 100 BEGIN SELECT RAISE(ABORT, 'too much'); END"
    feed.execute(trigger)
    feed.produce([order(20, 1, 100), order(20, 2, 2)], [resolved(30)])
    feed.catch_up("rejected")
    assert feed.rows() == [(2, 2, "a b")]
    feed.execute("DROP TRIGGER strict")
    assert feed.run("quarantine retry", *feed.at(1)) == 0
    assert feed.rows() == [(1, 100, "a b"), (2, 2, "a b")]


def test_a_record_is_skipped(feed):
    feed.produce(BEGINNING, ["no event"], [order(20, 1, 5)], [resolved(30)])
    with pytest.raises(ProtocolError, match="the line is no event"):
        feed.catch_up()
    assert feed.run("skip", *feed.at(1)) == 0
    feed.catch_up()
    assert feed.rows() == [(1, 5, "a b")]


def test_a_record_of_another_format_stops_with_its_place(feed):
    feed.produce(BEGINNING)
    produce_log([LogRecord(Stream(feed.topic, 0), b"key", b"{}", 1_000)], feed.servers)
    with pytest.raises(ProtocolError, match="not of the made-up format") as caught:
        feed.catch_up()
    assert caught.value.facts["offset"] == 1


def changelog_of(**options):
    """Return the rows of the DataFrame that the format ``ticdc`` gives."""
    source = ChangelogSource(options)
    assert source.schema() == schema_text(TopicColumns(TSO_TIMELINE))
    reader = source.reader(StructType([StructField(name, TYPES.get(kind, StringType())) for name, kind in COLUMNS]))
    return [row for part in reader.partitions() for batch in reader.read(part) for row in batch.to_pylist()]


def test_the_dataframe_has_its_events(feed):
    feed.produce(BEGINNING, [order(20, 1, None), deleted(21, "shop", "orders", id=(INT, KEY, 1))])
    rows = changelog_of(bootstrap_servers=feed.servers, topics=feed.topic, protocol=PROTOCOL)
    assert [(row["op"], row["commit_ts"]) for row in rows] == [("ddl", 5), ("ddl", 10), ("update", 20), ("delete", 21)]
    assert json.loads(rows[2]["after"]) == {"id": 1, "n": None, "note": "a b"}


def test_check_reads_its_records_before_a_run(feed, capsys):
    feed.produce(BEGINNING, [order(20, 1, 5)], [resolved(30)])
    feed.run("check", "--wait", 0, "--json")
    found = {line["check"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert (found["topics: records"]["level"], found["topics: records"]["detail"][:9]) == ("ok", "3 records")
    produce_log([LogRecord(Stream(feed.topic, 0), b"key", b"{}", 1_000)], feed.servers)
    feed.run("check", "--wait", 0, "--json")
    found = {line["check"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert "not of the made-up format" in found["topics: records"]["detail"]


class Silent:
    """Shows no progress of a comparison."""

    def begin(self, *_):
        pass

    def advance(self, *_):
        pass

    def say(self, *_):
        pass


def test_verify_compares_what_it_has_written(feed, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "_SINKS", [*registry._SINKS])
    register(ENTRY)
    create = ddl(10, "shop", "orders", 3, "CREATE TABLE orders (id INT PRIMARY KEY, note VARCHAR(20))")
    feed.produce([BEGINNING[0], create, resolved(11)])
    feed.produce([put(20, "shop", "orders", id=(INT, KEY, number), note=(TEXT, PLAIN, "x")) for number in (1, 2)], [resolved(30)])
    sides = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        sides.append(SinkSettings(url=f"vault:///{tmp_path}/{name}/replica.vault"))
        with feed.source() as source:
            Replica(sides[-1].url, source).catch_up()
    task = Task(upstream=sides[0], sink=sides[1], tables=ComparedTables(), options=Options(jobs=1), timeline=TSO_TIMELINE)
    assert perform(task, Silent()).is_equal
    with closing(sqlite3.connect(tmp_path / "other/replica.vault")) as connection, connection:
        connection.execute("UPDATE [shop!orders] SET note = 'wrong' WHERE id = 1")
    assert not perform(task, Silent()).is_equal
