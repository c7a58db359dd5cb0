"""A compacted topic loses rows: real brokers tell so, at the start, later, and of topics that appear later."""

import json
from uuid import uuid4

import pytest

from applier.cli.main import run
from applier.model.errors import NeedsOperator
from applier.sources.factory import open_source
from applier.sources.kafka import topic_settings
from applier.sources.kafka.settings import KafkaSettings

pytestmark = pytest.mark.on_one_server("mariadb", reason="no sink is written")


@pytest.fixture
def name(kafka):
    name = f"compacted-{uuid4().hex[:8]}"
    kafka.create_topic(name)
    yield name
    kafka.delete_topic(name)


def source_of(kafka, *topics):
    return open_source(KafkaSettings(bootstrap_servers=kafka.bootstrap_servers, topics=topics, group_id="compacted"))


def refusal(source):
    source.listing()
    with pytest.raises(NeedsOperator) as caught:
        source.topics.check()
    return caught.value.facts


def test_a_topic_that_is_compacted_while_it_is_read_is_refused(kafka, name, monkeypatch):
    with source_of(kafka, name) as source:
        source.listing()
        source.topics.check()
        kafka.set_topic(name, cleanup_policy="compact,delete")
        source.topics.check()  # asked a moment ago
        monkeypatch.setattr(topic_settings, "INTERVAL_S", 0.0)
        assert refusal(source) == {"kind": "compacted", "topic": name, "policy": "compact,delete"}


def test_a_compacted_topic_that_appears_later_is_refused_when_it_appears(kafka, name):
    later = f"{name}-later"
    with source_of(kafka, f"^{name}.*") as source:
        source.listing()
        source.topics.check()
        kafka.create_topic(later, cleanup_policy="compact")
        try:
            assert refusal(source) == {"kind": "compacted", "topic": later, "policy": "compact"}
        finally:
            kafka.delete_topic(later)


def test_check_and_a_catch_up_refuse_it_and_the_remedy_of_the_message_helps(tmp_path, capsys, kafka, name):
    kafka.set_topic(name, cleanup_policy="compact")
    path = tmp_path / "applier.toml"
    source = f'bootstrap_servers = "{kafka.bootstrap_servers}"\ntopics = ["{name}"]'
    path.write_text(f'name = "r"\n[source]\n{source}\n[sink]\nurl = "sqlite:///{tmp_path}/r.db"\n')

    def findings():
        code = run(["check", "--config", str(path), "--wait", "0", "--json"])
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        return code, [line for line in lines if line["check"] == "topics: settings"]

    code, (finding,) = findings()
    assert (code != 0, finding["level"]) == (True, "error")
    assert "compacted" in finding["detail"]
    assert "cleanup.policy=delete" in finding["remedy"]
    assert run(["catchup", "--config", str(path)]) == 6
    assert "compacted" in capsys.readouterr().err
    kafka.set_topic(name, cleanup_policy="delete")
    _, (finding,) = findings()
    assert (finding["level"], finding["detail"]) == ("ok", "no topic is compacted")
