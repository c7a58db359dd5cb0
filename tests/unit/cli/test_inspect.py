"""``applier inspect`` on librdkafka's mock cluster: the records of the vectors, as JSON and as lines."""

import base64
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import Producer

from applier.cli.inspect import Inspected, as_lines, read
from applier.cli.main import run
from applier.config import load_config
from applier.model.errors import ProtocolError, SourceError
from applier.model.events import AdminEvent, Column, DdlEvent, ResolvedEvent, RowEvent, RowOperation
from applier.model.position import Offset, RecordPosition, Stream, Ts
from applier.sources import peek as peek_module
from applier.sources.peek import PeekChoice
from applier.sources.ticdc.tso import TSO_TIMELINE

TOPIC = "feed"
VECTORS = Path(__file__).parents[2] / "data" / "vectors" / "open_protocol.jsonl"
RECORDS = 200
PLACE = RecordPosition(Stream(TOPIC, 2), Offset(9))
TS = Ts(1_700_000_000_123 << 18)


def some_vectors():
    """Every category has a share, malformed records too; those that may be read in two ways are left out."""
    vectors = [v for v in map(json.loads, VECTORS.read_text(encoding="utf-8").splitlines()) if not v.get("may_reject")]
    step = max(1, len(vectors) // RECORDS)
    return vectors[::step]


def data(text):
    return None if text is None else base64.b64decode(text)


@pytest.fixture(scope="module")
def vectors():
    return some_vectors()


@pytest.fixture(scope="module")
def broker(vectors):
    mock = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1, "log_level": 3})
    address = str(next(iter(mock.list_topics(timeout=60).brokers.values()))).split("/")[0]
    producer = Producer({"bootstrap.servers": address, "log_level": 3})
    for vector in vectors:
        producer.produce(TOPIC, key=data(vector["key_b64"]), value=data(vector["value_b64"]), partition=1)
    for i in range(3):
        producer.produce(TOPIC, key=b"not a key %d" % i, value=None, partition=2)
    assert producer.flush(20) == 0
    yield address
    del producer, mock


@pytest.fixture
def config(broker, tmp_path):
    path = tmp_path / "applier.toml"
    path.write_text(f'[source]\nbootstrap_servers = "{broker}"\ntopics = ["{TOPIC}"]\n[sink]\nurl = "sqlite:///{tmp_path}/r.db"\n')
    return str(path)


def objects(capsys, *arguments):
    assert run(["inspect", *arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def comparable(value):
    """Floats are compared as numbers, not as text."""
    if isinstance(value, dict):
        return {k: float(v) if k == "float" else comparable(v) for k, v in value.items()}
    return value


def expected(vectors):
    for offset, vector in enumerate(vectors):
        where = {"topic": TOPIC, "partition": 1, "offset": offset}
        if "error" in vector:
            yield {"error": vector["error"], **where}
        else:
            yield from ({**comparable(event), **where} for event in vector["events"])


def test_json_is_one_object_per_event_in_the_form_of_the_vectors(config, vectors, capsys):
    shown = objects(capsys, "--config", config, "--topic", TOPIC, "--partition", "1")

    assert len(shown) >= RECORDS // 2
    for found, wanted in zip(shown, expected(vectors), strict=True):
        if "error" in wanted:
            # The vector's word is a hint (README of the vectors): that it is refused, where and with some words is what counts.
            assert found.pop("message")
            assert found.pop("error")
            del wanted["error"]
        assert comparable(found) == wanted


def test_every_record_that_cannot_be_read_is_reported_and_the_next_one_is_read(config, capsys):
    shown = objects(capsys, "--config", config, "--partition", "2")
    assert [(o["topic"], o["partition"], o["offset"]) for o in shown] == [(TOPIC, 2, 0), (TOPIC, 2, 1), (TOPIC, 2, 2)]
    assert {frozenset(o) for o in shown} == {frozenset({"error", "topic", "partition", "offset", "message"})}


def test_from_and_limit_choose_records(config, capsys):
    shown = objects(capsys, "--config", config, "--partition", "2", "--from", "1", "--limit", "1")
    assert [o["offset"] for o in shown] == [1]


def test_people_get_a_line_per_event_and_a_count(config, capsys):
    assert run(["inspect", "--config", config, "--partition", "2"]) == 0
    shown = capsys.readouterr()
    header, *lines = shown.out.splitlines()
    assert header.split() == ["TIME", "(UTC)", "TSO", "OP", "PLACE", "TABLE", "KEY"]
    assert [line.split()[:2] for line in lines] == [["error", f"{TOPIC}/2@{i}"] for i in range(3)]
    assert shown.err == "3 records, 3 unreadable\n"


def test_people_get_the_first_20_records_of_a_partition_and_are_told_how_to_see_all(config, capsys):
    assert run(["inspect", "--config", config, "--partition", "1"]) == 0
    shown = capsys.readouterr()
    places = {word for line in shown.out.splitlines() for word in line.split() if word.startswith(f"{TOPIC}/1@")}
    assert len(places) == 20
    assert "20 records" in shown.err
    assert "the first 20 of each partition; --limit 0 shows all" in shown.err

    assert run(["inspect", "--config", config, "--partition", "1", "--limit", "0"]) == 0
    assert "--limit 0" not in capsys.readouterr().err


def test_follow_begins_at_the_end_shows_what_comes_and_ends_by_ctrl_c_with_0(config, broker, vectors, capsys, monkeypatch):
    waits = []

    def wait(seconds):
        waits.append(seconds)
        if len(waits) > 1:
            raise KeyboardInterrupt
        producer = Producer({"bootstrap.servers": broker, "log_level": 3})
        producer.produce(TOPIC, key=b"later", value=None, partition=3)
        assert producer.flush(20) == 0

    monkeypatch.setattr(peek_module, "time", SimpleNamespace(sleep=wait))
    assert run(["inspect", "--config", config, "--follow"]) == 0
    shown = capsys.readouterr()
    assert [line.split()[:2] for line in shown.out.splitlines()[1:]] == [["error", f"{TOPIC}/3@0"]]
    assert shown.err == "1 record, 1 unreadable\n"


def test_follow_with_a_limit_is_2(config, capsys):
    assert run(["inspect", "--config", config, "--follow", "--limit", "3"]) == 2
    assert "exclude one another" in capsys.readouterr().err


def test_a_time_without_an_offset_names_its_option(config, capsys):
    assert run(["inspect", "--config", config, "--since", "2025-06-01T12:00:00"]) == 2
    assert "--since has no offset from UTC" in capsys.readouterr().err


def test_a_topic_that_is_not_configured_is_2(config, capsys):
    assert run(["inspect", "--config", config, "--topic", "fed"]) == 2
    assert "The topics are: feed" in capsys.readouterr().err


def test_a_partition_that_does_not_exist_is_3(config, capsys):
    assert run(["inspect", "--config", config, "--partition", "77"]) == 3
    assert "The partitions are: feed/0, feed/1" in capsys.readouterr().err


def test_a_broker_that_does_not_answer_is_an_error_of_the_source(config):
    settings = load_config(Path(config), {"source": {"bootstrap_servers": "127.0.0.1:1"}}, environment={})
    with pytest.raises(SourceError, match="Kafka does not answer") as caught:
        list(read(settings, PeekChoice(), patience_s=0.5))
    assert "source.bootstrap_servers" in caught.value.remedy


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ([], ["no events"]),
        (ProtocolError("two\nlines", kind="json"), ["unreadable (json): two lines"]),
        ([ResolvedEvent(TS)], ["2023-11-14 22:13:20.123Z  resolved"]),
        ([AdminEvent(TS, 8)], ["2023-11-14 22:13:20.123Z  admin     8 partitions"]),
        (
            [DdlEvent(commit_ts=TS, schema="shop", table="", query="CREATE DATABASE\n`shop`", ddl_type=1)],
            ["2023-11-14 22:13:20.123Z  ddl       shop  CREATE DATABASE `shop`"],
        ),
    ],
)
def test_events_that_are_no_rows_have_their_line(content, lines):
    assert list(as_lines(Inspected(PLACE, content), TSO_TIMELINE)) == [f"feed/2@9  {line}" for line in lines]


def row(after, before=None, **more):
    operation = RowOperation.DELETE if after is None else RowOperation.UPDATE if before else RowOperation.INSERT
    defaults = {"partition_id": None, "only_handle_key": False, "claim_check": None}
    return RowEvent(commit_ts=TS, schema="shop", table="orders", operation=operation, after=after, before=before, **defaults | more)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (row({"id": Column(3, 11, 5, is_key=True), "v": Column(15, 0, "x")}), "insert    shop.orders  id=5"),
        (
            row({"k": Column(15, 11, b"\xff\x00", is_key=True), "n": Column(15, 2, None, is_key=True)}),
            "insert    shop.orders  k=0xff00, n=NULL",
        ),
        (row(None, {"id": Column(15, 11, "a\nb", is_key=True)}), "delete    shop.orders  id='a\\nb'"),
        (row({"v": Column(3, 0, 1)}, {"v": Column(3, 0, 2)}), "update    shop.orders  no key: v=1"),
        (row({"id": Column(3, 11, 5, is_key=True)}, only_handle_key=True), "insert    shop.orders  id=5  (handle key only)"),
        (row({"id": Column(3, 11, 5, is_key=True)}, claim_check="file:///x"), "insert    shop.orders  id=5  (claim check: file:///x)"),
    ],
)
def test_a_row_is_shown_with_its_table_and_its_key(event, line):
    assert list(as_lines(Inspected(PLACE, [event]), TSO_TIMELINE)) == [f"feed/2@9  2023-11-14 22:13:20.123Z  {line}"]


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--position", "binlog.000001:4"], "for a binlog, and the source is Kafka"), (["--from", "abc"], "--from is not an offset")],
)
def test_places_of_a_binlog_are_refused_for_topics(config, capsys, options, words):
    assert run(["inspect", "--config", str(config), *options]) == 2
    assert words in capsys.readouterr().err
