"""``applier init`` writes a configuration that is read again, and never overwrites one."""

import stat
from itertools import islice
from uuid import uuid4

import pytest

from applier.cli import init as init_command
from applier.cli import init as init_source
from applier.cli.main import run
from applier.config import load_config
from applier.demo.simulator.history import History, HistoryOptions
from applier.demo.simulator.kafka_log import produce_log
from applier.demo.simulator.producer import LogRecord, Producer, ProducerOptions
from applier.demo.simulator.wire_format import WireFormat, WireOptions
from applier.model.position import Stream
from applier.sources.binlog.dump import position_of_dump
from applier.sources.formats import FORMATS
from tests.rig.dump_directory import TS, dumpling

ANSWERS = ["--servers", "kafka:9092", "--topic", "cdc", "--topic", "^more_.*", "--protocol", "open-protocol"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "applier.toml"


def init(path, *options):
    return run(["init", "--config", str(path), "--no-check", *options])


def test_the_file_is_a_configuration_and_private(path, tmp_path, capsys):
    dump = dumpling(tmp_path / "dump")
    url = "mysql+pymysql://applier:h%40ush-9@db:3306/"
    assert init(path, *ANSWERS, "--sink", url, "--name", "shop", "--from-dump", str(dump), "--time-zone", "+08:00") == 0
    shown = capsys.readouterr()
    settings = load_config(path, environment={})
    assert (settings.name, settings.source.bootstrap_servers, settings.source.topics) == ("shop", "kafka:9092", ("cdc", "^more_.*"))
    assert (settings.source.start_ts, settings.source.time_zone) == (TS, "+08:00")
    assert settings.sink.full_url() == "mysql+pymysql://applier@db:3306/"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "ush-9" not in path.read_text() + shown.out + shown.err
    assert f"ts {TS}" in shown.out
    assert list(tmp_path.glob(".applier*")) == []


def test_a_file_that_exists_stays_as_it_is(path, capsys):
    path.write_text("mine")
    assert init(path, *ANSWERS, "--sink", "sqlite:///x.db") == 2
    assert path.read_text() == "mine"
    assert "is not overwritten" in capsys.readouterr().err
    path.unlink()
    assert init(path, *ANSWERS, "--sink", "sqlite:///x.db") == 0


def test_a_wrong_answer_leaves_no_file(path, capsys):
    assert init(path, *ANSWERS, "--sink", "sqlite:///x.db", "--name", "a b") == 2
    assert "name must be 1 to 48 letters" in capsys.readouterr().err
    assert list(path.parent.iterdir()) == []


def test_without_a_terminal_a_missing_answer_is_named(path, capsys):
    assert init(path, "--servers", "kafka:9092", "--sink", "sqlite:///x.db") == 2
    assert "--topic is missing" in capsys.readouterr().err


def test_a_terminal_is_asked(path, monkeypatch):
    answers = {"Kafka's brokers": "kafka:9092", "Topics, divided by commas": "a, b", "Name of the replica": "shop"}
    monkeypatch.setattr(init_command.sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(init_source.typer, "prompt", lambda question, default, **_: answers.get(question, default))
    monkeypatch.setattr(init_source, "PEEK_S", 0.1)
    assert init(path) == 0
    settings = load_config(path, environment={})
    assert (settings.source.topics, settings.name, settings.sink.address) == (("a", "b"), "shop", init_command.URL)


def test_a_file_system_without_links_is_no_hindrance(path, monkeypatch):
    def refused(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(type(path), "hardlink_to", refused)
    assert init(path, *ANSWERS, "--sink", "sqlite:///replica.db") == 0
    assert (stat.S_IMODE(path.stat().st_mode), [each.name for each in path.parent.iterdir()]) == (0o600, [path.name])


def test_a_dump_that_is_not_there_is_said(path, tmp_path, capsys):
    assert init(path, *ANSWERS, "--sink", "sqlite:///replica.db", "--from-dump", str(tmp_path / "none")) == 2
    assert "there is no such dump" in capsys.readouterr().err


PRIMARY = ["--primary", "mysql+pymysql://reader:h%40ush-9@primary:3306/", "--sink", "sqlite:///replica.db"]


def test_a_binlog_gets_its_own_keys_and_no_password(path, tmp_path, capsys):
    assert init(path, *PRIMARY, "--start", "mariadb-bin.000042:4") == 0
    settings = load_config(path, environment={}).source_settings()
    assert (settings.url, settings.start) == ("mysql+pymysql://reader@primary:3306/", "mariadb-bin.000042:4")
    shown = capsys.readouterr()
    assert "APPLIER_SOURCE__PASSWORD" in shown.err
    assert "ush-9" not in path.read_text() + shown.out + shown.err
    path.unlink()


POSITION = "-- CHANGE MASTER TO MASTER_LOG_FILE='mariadb-bin.000042', MASTER_LOG_POS=4;\n"


@pytest.mark.parametrize("form", ["directory", "file", "mydumper"])
def test_a_dump_of_a_primary_is_named_as_the_start_reads_it(path, tmp_path, capsys, form):
    dump = tmp_path / "dump"
    dump.mkdir()
    if form == "mydumper":
        (dump / "metadata").write_text("SHOW MASTER STATUS:\n\tLog: mariadb-bin.000042\n\tPos: 4\n")
    else:
        (dump / "shop.sql").write_text(POSITION)
    given = dump / "shop.sql" if form == "file" else dump
    assert init(path, *PRIMARY, "--from-dump", str(given)) == 0
    start = load_config(path, environment={}).source_settings().start
    assert start == f"dump:{dump}" if form == "mydumper" else f"dump:{dump}/shop.sql"
    assert position_of_dump(start.removeprefix("dump:")).position == "mariadb-bin.000042:4"
    steps = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert [f"applier {word}" in step for word, step in zip(("load", "check", "run"), steps, strict=True)] == [True] * 3
    assert steps[0].endswith(f" {given}")


def test_a_directory_without_a_place_is_refused_before_a_file_is_written(path, tmp_path, capsys):
    assert init(path, *PRIMARY, "--from-dump", str(tmp_path)) == 2
    assert "no dump that says its position" in capsys.readouterr().err
    assert not path.exists()


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ([*ANSWERS, "--sink", "sqlite:///x.db"], "unless upstream had no tables"),
        ([*ANSWERS, "--sink", "sqlite:///x.db", "--start-ts", str(TS)], "--declared"),
        ([*PRIMARY, "--start", "now"], "--declared"),
    ],
)
def test_the_load_comes_before_the_check(path, capsys, options, first):
    assert init(path, *options) == 0
    shown = capsys.readouterr().out
    assert shown.index("applier load") < shown.index(first) < shown.index("applier check") < shown.index("applier run")


def test_a_terminal_is_asked_for_the_kind_of_source(path, monkeypatch):
    answers = {init_source.KIND: "binlog"}
    monkeypatch.setattr(init_command.sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(init_source.typer, "prompt", lambda question, default, **_: answers.get(question, default))
    assert init(path) == 0
    assert load_config(path, environment={}).source_settings().url == init_source.PRIMARY


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([*PRIMARY, "--topic", "cdc"], "--topic and --primary exclude one another"),
        ([*PRIMARY, "--start", "now", "--from-dump", "."], "--start and --from-dump exclude one another"),
        ([*ANSWERS, "--sink", "sqlite:///x.db", "--start", "now"], "--start is for a binlog"),
        ([*PRIMARY, "--start", "here"], "is not a position in a binlog"),
    ],
)
def test_options_of_the_other_kind_are_refused(path, capsys, options, words):
    assert init(path, *options) == 2
    assert words in capsys.readouterr().err
    assert not path.exists()


def topic_of(servers, form, **wire):
    topic = f"init-{uuid4().hex[:8]}"
    options = ProducerOptions(seed=5, topic=topic, form=form, wire=WireOptions(**wire))
    produce_log(islice(Producer(History(5, HistoryOptions(transactions=5)), options).log(), 40), servers)
    return topic


@pytest.mark.parametrize("form", [form for form in WireFormat if form.protocol in FORMATS])
def test_the_protocol_is_that_of_the_topics_records(path, mock_kafka, capsys, form):
    topic = topic_of(mock_kafka, form)
    assert init(path, "--servers", mock_kafka, "--topic", topic, "--sink", "sqlite:///x.db") == 0
    assert load_config(path, environment={}).source.protocol == form.protocol
    assert "the records are" in capsys.readouterr().out


def test_records_that_cannot_be_applied_leave_no_file(path, mock_kafka, capsys):
    topic = f"init-{uuid4().hex[:8]}"
    produce_log([LogRecord(Stream(topic, 0), None, b'{"isDdl": false, "es": 5, "data": null}', 1_000)], mock_kafka)
    assert init(path, "--servers", mock_kafka, "--topic", topic, "--sink", "sqlite:///x.db") == 3
    shown = capsys.readouterr().err
    assert "the records are canal-json without enable-tidb-extension" in shown
    assert "Set enable-tidb-extension=true in the changefeed's sink URI" in shown
    assert not path.exists()


def test_a_protocol_that_is_not_read_is_refused(path, capsys):
    assert init(path, *ANSWERS[:-1], "maxwell", "--sink", "sqlite:///x.db") == 2
    assert "'maxwell'" in capsys.readouterr().err
    assert not path.exists()
