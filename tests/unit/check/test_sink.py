"""What ``applier check`` says about a sink that no run has seen yet."""

from applier.check.finding import Severity
from applier.check.shared_facts import SharedFacts
from applier.check.sink import examine_sink
from applier.config import load_config


def test_a_file_that_does_not_exist_yet_is_no_error_and_is_not_made(tmp_path):
    file = tmp_path / "replica.db"
    source = {"bootstrap_servers": "127.0.0.1:1", "topics": ["cdc"]}
    config = load_config(None, {"source": source, "sink": {"url": f"sqlite:///{file}"}}, environment={})
    found = list(examine_sink(config, SharedFacts()))
    assert [finding.level for finding in found] == [Severity.OK, Severity.OK]
    assert not file.exists()
