"""A daemon as others see it: over HTTP, by ``applier status``, and by its log; and when it is gone, by what the sink knows."""

import json
import signal
from http.client import HTTPConnection

import pytest
from prometheus_client.parser import text_string_to_metric_families

from applier.cli.main import run
from applier.demo.simulator.kafka_log import produce_log
from applier.status import query as status_query
from tests.rig.program import daemon, write_config
from tests.rig.upstream import NAME, small_upstream

pytestmark = pytest.mark.slow

PATIENCE_S = 60
LEASE_S = 15
"""However busy the machine is, the heartbeat of one who lives is not that late."""
ANSWERS = "http_listening"


def get(port, path):
    """Return (status, body); (None, "") while nobody answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    except ConnectionError:
        return None, ""
    finally:
        connection.close()


def log_of(text):
    """Return the log's whole lines, without Spark's."""
    whole = text[: text.rfind("\n") + 1]
    return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]


def metrics(port):
    families = text_string_to_metric_families(get(port, "/metrics")[1])
    return {(sample.name, sample.labels.get("partition", "")): sample.value for family in families for sample in family.samples}


def status_of(config, capsys, code=0):
    capsys.readouterr()
    assert run(["status", "--config", str(config), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_daemon_is_seen_while_it_runs_and_after_its_end(tmp_path, mock_kafka, capsys, monkeypatch):
    for patience in ("SOURCE_PATIENCE_S", "RUN_PATIENCE_S"):
        monkeypatch.setattr(status_query, patience, 60)
    world = small_upstream(71, "seen", transactions=20)
    middle = len(world.log) // 2
    produce_log(world.log[:middle], mock_kafka)
    url, topics = f"sqlite:///{tmp_path}/replica.db", list(world.topics)
    config = write_config(tmp_path, servers=mock_kafka, url=url, topics=topics, protocol=world.protocol, lease_s=LEASE_S)
    with config.open("a", encoding="utf-8") as file:
        file.write('[http]\nlisten = 0\n[log]\nformat = "json"\n')

    with daemon(config) as program:
        assert program.reaches(lambda: any(entry["message"] == ANSWERS for entry in log_of(program.said())))
        port = int(log_of(program.said())[0]["address"].rpartition(":")[2])
        config.write_text(config.read_text(encoding="utf-8").replace("listen = 0", f"listen = {port}"), encoding="utf-8")
        assert program.reaches(lambda: get(port, "/healthz")[0] == 200)
        assert program.reaches(lambda: get(port, "/readyz")[0] == 200)
        produce_log(world.log[middle:], mock_kafka)
        assert program.reaches(lambda: json.loads(get(port, "/status")[1])["checkpoint_ts"] == world.final_ts)
        # What the page asks: of the sink too, beside the sessions of the run.
        assert get(port, "/")[0] == get(port, "/quarantine")[0] == 200
        assert {each["state"] for each in json.loads(get(port, "/ddls")[1])["ddls"]} == {"done"}
        assert json.loads(get(port, "/history")[1])["unix_s"]

        found = metrics(port)
        assert found["applier_checkpoint_timestamp_seconds", ""] == (world.final_ts >> 18) / 1000
        assert found["applier_ddls_total", ""] > 0
        assert {partition for name, partition in found if name == "applier_stream_read_offset"} == {"0", "1", "2", "3"}
        assert sum(value for (name, _), value in found.items() if name == "applier_watermark_held") == 1
        assert program.reaches(lambda: metrics(port).get(("applier_quarantined", "")) == 0)

        seen = status_of(config, capsys)
        assert (seen["checkpoint_ts"], seen["owner"]["state"], seen["owner"]["process"]) == (world.final_ts, "alive", program.pid)
        assert seen["daemon"]["replica"] == NAME
        assert seen["daemon"]["is_ready"]
        assert all(stream["end_offset"] is not None for stream in seen["streams"].values())

        program.send(signal.SIGTERM)
        ended = program.wait()

    assert ended.code == 0, ended.stderr
    after = status_of(config, capsys, code=2)
    assert (after["checkpoint_ts"], after["owner"], after["daemon"]) == (world.final_ts, None, None)
    assert (after["last_end"]["exit_code"], after["last_end"]["message"]) == (0, "stopped by SIGTERM")
    entries = log_of(ended.stderr)
    messages = [entry["message"] for entry in entries]
    assert messages[0] == ANSWERS
    assert "replica_created" in messages
    assert messages[-1] == "shutdown_complete"
    assert next(entry for entry in reversed(entries) if entry["message"] == "checkpoint_advanced")["checkpoint_ts"] == world.final_ts
    assert len([message for message in messages if message == "ddl_applied"]) == len(world.ddl_times())
