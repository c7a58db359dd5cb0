"""Where the zone of upstream's sessions is known from, and which DDLs get it."""

import re
from dataclasses import replace

import pytest

from applier.check.time_zone import session_zone_finding
from applier.config import load_config
from applier.model.errors import NeedsOperator, SourceError
from applier.model.events import DdlEvent
from applier.model.finding import Severity
from applier.model.position import Ts
from applier.sources.factory import open_source
from applier.sources.kafka.settings import KafkaSettings
from applier.upstream.settings import UpstreamSettings
from applier.upstream.snapshot_session import SessionZone
from tests.rig.tidb import Tidb, tidb_server

SETTINGS = KafkaSettings(bootstrap_servers="127.0.0.1:1", topics=("t",), group_id="g")
ALTER = DdlEvent(commit_ts=Ts(1), schema="s", table="t", query="ALTER TABLE t MODIFY ts DATETIME", ddl_type=12)


@pytest.fixture
def tidb():
    with tidb_server() as server:
        yield server


def answering(server: Tidb, zone: str) -> SessionZone:
    server.variables |= {"time_zone": zone} if zone in {"Asia/Shanghai", "+08:00"} else {"system_time_zone": zone}
    return SessionZone("", UpstreamSettings(url=server.url))


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "+08:00", "UTC", "Europe/Berlin", "Japan"])
def test_upstream_is_asked_once(tidb: Tidb, zone: str) -> None:
    asked = answering(tidb, zone)
    assert (asked(), asked()) == (zone, zone)
    assert len([one for one in tidb.asked if "system_time_zone" in one.sql]) == 1


def test_a_fixed_zone_of_sessions_is_what_it_says(tidb: Tidb) -> None:
    tidb.variables |= {"time_zone": "EST"}
    assert SessionZone("", UpstreamSettings(url=tidb.url))() == "EST"


def test_what_the_operator_says_comes_first(tidb: Tidb) -> None:
    assert SessionZone("+05:30", UpstreamSettings(url=tidb.url))() == "+05:30"
    assert tidb.asked == []


@pytest.mark.parametrize("zone", ["CST", "EST", "MST", "GMT", "CET", "+03"])
def test_an_abbreviation_of_upstreams_machine_is_not_guessed(tidb: Tidb, zone: str) -> None:
    with pytest.raises(NeedsOperator, match=re.escape(f"time_zone={zone}")) as raised:
        answering(tidb, zone)()
    assert "source.ddl_time_zone" in raised.value.remedy


def test_an_upstream_that_does_not_answer_is_an_error_of_the_source() -> None:
    with pytest.raises(SourceError):
        SessionZone("", UpstreamSettings(url="mysql+pymysql://reader@127.0.0.1:1/"))()


def test_a_ddl_that_may_depend_on_the_zone_gets_it_and_others_do_not_ask() -> None:
    asked: list[int] = []

    def zone() -> str:
        asked.append(1)
        return "+08:00"

    with open_source(SETTINGS, zone_of_sessions=zone) as source:
        other = replace(ALTER, query="ALTER TABLE t ADD COLUMN c INT")
        assert source.resolved(other) == other
        assert asked == []
        assert source.resolved(ALTER).session == (("time_zone", "+08:00"),)
    with open_source(SETTINGS) as source:
        assert source.resolved(ALTER) == ALTER


@pytest.mark.parametrize(
    ("given", "level", "words"),
    [
        ({"ddl_time_zone": "Asia/Shanghai"}, Severity.OK, "Asia/Shanghai, as source.ddl_time_zone says"),
        ({}, Severity.WARNING, "will stop the run"),
        ({"upstream": "mysql+pymysql://reader@127.0.0.1:1/"}, Severity.ERROR, "upstream"),
    ],
)
def test_check_says_which_zone_ddls_have(given: dict[str, str], level: Severity, words: str) -> None:
    source = {"bootstrap_servers": "127.0.0.1:1", "topics": ["t"], **given}
    found = session_zone_finding(load_config(None, {"source": source, "sink": {"url": "sqlite:///r.db"}}, environment={}))
    assert found.level is level
    assert words in found.detail
