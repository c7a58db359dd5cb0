"""``applier status`` over a real sink, with and without Kafka and a run that answers."""

import json
import os
import socket
import time

import pytest
from confluent_kafka import Producer

from applier.cli import status
from applier.cli.main import run
from applier.model.errors import Remedy, RetryableSinkError
from applier.model.position import Offset, Stream, StreamPosition, Ts
from applier.sinks.bookkeeping.replica_bookkeeping import ReplicaBookkeeping
from applier.sinks.progress import ProgressCommit
from applier.sinks.registry import open_sink
from applier.sinks.settings import SinkSettings
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.status import query as status_query
from applier.status.http_endpoint import StatusApp, StatusServer
from applier.telemetry.failing import Failing
from applier.telemetry.run_state import RunState

TS = Ts(1_700_000_000_123 << 18)
NOBODY = "127.0.0.1:1"


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/replica.db"


@pytest.fixture
def configured(tmp_path, url, monkeypatch):
    monkeypatch.setattr(status_query, "SOURCE_PATIENCE_S", 0.3)

    def write(servers=NOBODY, listen="off"):
        path = tmp_path / "applier.toml"
        path.write_text(
            f'[source]\nbootstrap_servers = "{servers}"\ntopics = ["status"]\n[sink]\nurl = "{url}"\n[http]\nlisten = "{listen}"\n'
        )
        return str(path)

    return write


@pytest.fixture
def owned(url):
    """A replica that this process owns, at ``TS``."""
    with open_sink(SinkSettings(url=url)) as sink:
        sink.migrate()
        sink.acquire()
        fence = sink.begin(Ts(0)).fence
        position = StreamPosition(next_offset=Offset(0), resolved_ts=TS)
        sink.save(fence, ProgressCommit(checkpoint_ts=TS, positions={Stream("status", 0): position}))
        yield sink


def shown(config, capsys):
    run(["status", "--config", config, "--json"])
    return json.loads(capsys.readouterr().out)


def test_a_partition_that_the_configuration_leaves_out_does_not_count(configured, owned, capsys, monkeypatch):
    positions = {Stream("status", 1): StreamPosition(next_offset=Offset(0), resolved_ts=Ts(TS - 1))}
    owned.save(owned.load().fence, ProgressCommit(checkpoint_ts=TS, positions=positions))
    assert shown(configured(), capsys)["holding_stream"] == "status/1"
    monkeypatch.setenv("APPLIER_SOURCE__PARTITIONS", "1")
    found = shown(configured(), capsys)
    assert (found["watermark"], list(found["streams"])) == (TS, ["status/0"])


def test_the_sink_alone_suffices(configured, owned, capsys):
    found = shown(configured(), capsys)
    assert (found["checkpoint_ts"], found["epoch"], found["quarantined"], found["undecided_ddls"]) == (TS, 1, 0, [])
    assert (found["owner"]["state"], found["owner"]["process"], found["owner"]["host"]) == ("alive", os.getpid(), socket.gethostname())
    assert (found["streams"]["status/0"]["next_offset"], found["streams"]["status/0"]["end_offset"]) == (0, None)
    assert found["source_problem"].startswith("Kafka does not answer")
    assert found["daemon"] is None


def test_kafka_adds_the_ends(configured, owned, mock_kafka, capsys, monkeypatch):
    monkeypatch.setattr(status_query, "SOURCE_PATIENCE_S", 60)
    producer = Producer({"bootstrap.servers": mock_kafka})
    producer.produce("status", b"value", partition=0)
    assert producer.flush(60) == 0
    found = shown(configured(mock_kafka), capsys)
    assert found["source_problem"] is None
    assert (found["streams"]["status/0"]["end_offset"], found["streams"]["status/0"]["behind"]) == (1, 1)


def test_a_run_that_answers_is_asked_and_another_one_is_ignored(configured, owned, capsys, monkeypatch):
    monkeypatch.setattr(status_query, "RUN_PATIENCE_S", 60)
    for replica, process, is_believed in (("replica", os.getpid(), True), ("replica", 1, False), ("other", os.getpid(), False)):
        live = RunState(replica=replica)
        monkeypatch.setattr("os.getpid", lambda process=process: process)
        with StatusServer("127.0.0.1", 0, StatusApp(lambda live=live: live, 60)) as server:
            server.start()
            assert (shown(configured(listen=server.address), capsys)["daemon"] is not None) is is_believed


def test_looking_at_a_sink_without_bookkeeping_is_4_and_makes_nothing(configured, tmp_path, capsys):
    config = configured()
    assert run(["status", "--config", config]) == 4
    assert "applier migrate" in capsys.readouterr().err
    assert not (tmp_path / "replica.db").exists()


def test_an_error_is_a_log_line_where_the_log_is_json(configured, tmp_path, capsys):
    config = configured()
    with (tmp_path / "applier.toml").open("a", encoding="utf-8") as file:
        file.write('[log]\nformat = "json"\n')
    assert run(["status", "--config", config]) == 4
    entry = json.loads(capsys.readouterr().err)
    assert (entry["level"], entry["message"], entry["error_message"], entry["error"], entry["exit_code"]) == (
        "error",
        "command_failed",
        "there is no database file yet",
        "FatalSinkError",
        4,
    )
    assert "applier migrate" in entry["remedy"]


def test_people_get_lines_where_there_is_no_terminal(configured, owned, capsys):
    assert run(["status", "--config", configured()]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "health      healthy"
    assert lines[1].startswith("replica     replica in sqlite:///")
    assert lines[-1].startswith("status/0")


def test_a_watch_shows_it_until_it_is_interrupted(configured, owned, capsys, monkeypatch):
    pauses = iter([None, None])

    def pause():
        try:
            next(pauses)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(status, "_pause", pause)
    assert run(["status", "--config", configured(), "--watch", "--json"]) == 0
    assert [json.loads(line)["checkpoint_ts"] for line in capsys.readouterr().out.splitlines()] == [TS] * 3


def test_a_sink_that_is_away_for_a_while_does_not_end_a_watch(capsys, monkeypatch):
    answers = iter([RetryableSinkError("the database is away", remedy=Remedy("test.remedy", "Wait")), "here again"])
    shown = []

    def ask():
        answer = next(answers, KeyboardInterrupt())
        if isinstance(answer, BaseException):
            raise answer
        return answer

    status.keep_watching(ask, shown.append, lambda: None)
    assert shown == ["the database is away. Wait", "here again"]


@pytest.mark.parametrize("options", [(), ("--watch",)])
def test_a_terminal_gets_a_table(configured, owned, capsys, monkeypatch, options):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(status, "_pause", interrupt)
    for variable, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}.items():
        monkeypatch.setenv(variable, value)
    assert run(["status", "--config", configured(), *options]) == 0
    text = capsys.readouterr().out
    assert "\x1b[1m" in text
    assert f"(ts {TS})" in text
    assert "status/0" in text


def test_the_configuration_is_checked_before_anything_is_asked(configured, capsys):
    assert run(["status", "--config", configured(listen="here:99999")]) == 2
    assert "http.listen is not a listen address" in capsys.readouterr().err


def test_a_sink_that_is_away_is_no_reason_not_to_ask_the_run(configured, capsys, monkeypatch):
    monkeypatch.setattr(status_query, "RUN_PATIENCE_S", 60)

    def away(_sink):
        raise RetryableSinkError("the database is away")

    monkeypatch.setattr(ReplicaBookkeeping, "overview", away)
    failing = Failing(since_s=1_700_000_000.0, error="the database is away", error_class="RetryableSinkError", attempt=3)
    live = RunState(timeline=TSO_TIMELINE, replica="replica", failing=failing, checkpoint_ts=TS, progress_s=time.monotonic())
    with StatusServer("127.0.0.1", 0, StatusApp(lambda: live, 60)) as server:
        server.start()
        assert run(["status", "--config", configured(listen=server.address), "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["health"], found["sink_problem"], found["checkpoint_ts"]) == ("hindered", "the database is away", TS)
    assert (found["daemon"]["attempt"], found["daemon"]["error"]) == (3, "the database is away")
    assert run(["status", "--config", configured()]) == 4
    assert "the database is away" in capsys.readouterr().err
