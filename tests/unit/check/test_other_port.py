"""A URL that leads to a port on which no server of the MySQL family answers: refused by name, and soon."""

import time

import pytest

from applier.check.primary import examine_primary
from applier.check.shared_facts import SharedFacts
from applier.check.sink import examine_sink
from applier.config import load_config
from applier.model.errors import FatalSinkError, RetryableSinkError
from applier.model.finding import Severity
from applier.sinks.mysql.session import Purpose, open_session
from applier.sinks.settings import SinkSettings
from tests.rig.other_port import CLOSING, OTHERS, SILENT, other_port


@pytest.mark.parametrize("purpose", [Purpose.OWN, Purpose.CONTROL])
@pytest.mark.parametrize("first", OTHERS.values(), ids=OTHERS)
def test_a_port_that_speaks_another_protocol_is_refused_by_name(first, purpose):
    with (
        other_port(first) as port,
        pytest.raises(FatalSinkError, match=f"127.0.0.1:{port} does not speak the protocol of MySQL") as refused,
    ):
        open_session(SinkSettings(url=f"mysql+pymysql://applier@127.0.0.1:{port}/"), purpose)
    assert refused.value.remedy == "Check host and port of [sink] url: another program answers there"


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("first", [SILENT, CLOSING])
def test_a_port_without_a_greeting_is_not_waited_for_longer_than_to_connect(first, purpose):
    began = time.monotonic()
    with other_port(first) as port, pytest.raises(RetryableSinkError, match=f"127.0.0.1:{port} accepts connections, and sends no greeting"):
        open_session(SinkSettings(url=f"mysql+pymysql://applier@127.0.0.1:{port}/?connect_timeout=1"), purpose)
    assert time.monotonic() - began < 5


def source(port):
    return {"kind": "binlog", "url": f"mysql+pymysql://a@127.0.0.1:{port}/?connect_timeout=1", "server_ids": "1-64", "start": "now"}


@pytest.mark.parametrize("first", [SILENT, OTHERS["http"]], ids=["silent", "http"])
def test_a_check_of_a_port_that_is_no_server_fails_soon(first):
    began = time.monotonic()
    with other_port(first) as port:
        kafka = {"bootstrap_servers": "127.0.0.1:1", "topics": ["cdc"]}
        sink = {"url": f"mysql+pymysql://a@127.0.0.1:{port}/?connect_timeout=1"}
        findings = list(examine_sink(load_config(None, {"source": kafka, "sink": sink}, environment={}), SharedFacts(), patience_s=0.1))
        config = load_config(None, {"source": source(port), "sink": sink}, environment={})
        findings += examine_primary(config, config.source_settings(), SharedFacts(), patience_s=5)
    assert [finding.level for finding in findings] == [Severity.ERROR] * 2
    assert all(f"127.0.0.1:{port} " in finding.detail for finding in findings)
    assert time.monotonic() - began < 8
