"""What the page's own paths answer: its data, to whom, and the commands that need a token."""

import json
import time
from http.client import HTTPConnection

import pytest

from applier.model.errors import FatalSinkError
from applier.model.position import Ts
from applier.sources.ticdc.tso import TSO_TIMELINE
from applier.status.http_endpoint import EndNotice, PageParts, RecentHistory, StatusApp, has_token, is_known_host, names_of
from applier.status.page import CONTENT_SECURITY_POLICY, PAGE
from applier.telemetry.run_state import Counts, RunState
from tests.rig.http_client import PATIENCE_S
from tests.rig.page_state import TOKEN, ended, page_of


def ask(address, path, method="GET", **headers):
    connection = HTTPConnection(*address.rsplit(":", 1), timeout=PATIENCE_S)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        body = response.read().decode()
        return response.status, response.headers, json.loads(body) if "json" in response.headers["Content-Type"] else body
    finally:
        connection.close()


@pytest.mark.parametrize("name", ["localhost:9464", "127.0.0.1:9464", "[::1]:9464", "10.1.2.3", "Replica.internal.:9464", ""])
def test_a_page_is_answered_under_its_own_names_and_any_ip_address(name):
    assert is_known_host(name, names_of("::", ["replica.internal"]))


@pytest.mark.parametrize("name", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:9464", "[evil]:80", "a:b:c"])
def test_a_page_is_refused_under_a_name_that_somebody_may_point_at_this_machine(name):
    assert not is_known_host(name, names_of("127.0.0.1", ["replica.internal"]))


@pytest.mark.parametrize(("path", "status"), [("/", 403), ("/status", 403), ("/ddls", 403), ("/metrics", 200), ("/healthz", 200)])
def test_an_unknown_name_gets_what_scrapers_and_supervisors_ask_for_and_nothing_else(path, status):
    with page_of() as shown:
        assert ask(shown.address, path, Host="evil.example")[0] == status


def test_the_page_may_load_and_call_nothing_but_its_own_server():
    with page_of() as shown:
        status, headers, body = ask(shown.address, "/")
    assert status == 200
    assert headers["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert "default-src 'none'" in CONTENT_SECURITY_POLICY
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert (headers["X-Frame-Options"], headers["X-Content-Type-Options"]) == ("DENY", "nosniff")
    assert "innerHTML" not in body.partition("/*! https://github.com/leeoniya/uPlot")[0]
    assert all("<!-- " not in page.decode() for page in PAGE.values())


def test_the_data_of_the_page_are_json():
    with page_of("stalled") as shown:
        history, ddls, quarantine = (ask(shown.address, path)[2] for path in ("/history", "/ddls", "/quarantine"))
    assert len(history["unix_s"]) == len(history["lag_s"]) == len(history["rows_per_s"]) == 720
    assert ddls["ddls"][0]["table"] == "order_lines"
    assert quarantine["held"] == 2


def test_a_sink_that_is_away_is_said_with_its_reason():
    with page_of() as shown:
        shown.records.is_away = True
        status, _, value = ask(shown.address, "/ddls")
    assert status == 503
    assert value["error"].startswith("connecting failed")
    assert value["remedy"]


def test_without_a_token_commands_are_refused():
    with page_of() as shown:
        status, _, value = ask(shown.address, "/api/pause", "POST", Authorization="Bearer ")
    assert (status, shown.records.asked) == (403, [])
    assert "token_file" in value["remedy"]


@pytest.mark.parametrize("header", ["", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN])
def test_a_wrong_token_changes_nothing(header):
    with page_of(token=TOKEN) as shown:
        assert ask(shown.address, "/api/pause", "POST", Authorization=header)[0] == 401
    assert shown.records.asked == []
    assert not has_token(header, TOKEN)


def test_the_token_pauses_and_resumes_and_the_caller_is_named():
    with page_of(token=TOKEN) as shown:
        for word in ("pause", "resume"):
            assert ask(shown.address, f"/api/{word}", "POST", Authorization=f"Bearer {TOKEN}")[0] == 200
        assert ask(shown.address, "/api/pause", "GET", Authorization=f"Bearer {TOKEN}")[0] == 405
        shown.records.is_away = True
        assert ask(shown.address, "/api/pause", "POST", Authorization=f"Bearer {TOKEN}")[0] == 503
    assert shown.records.asked == [("pause", "http from 127.0.0.1"), ("resume", "")]


def state_at(rows, lag_s, unix_s):
    return RunState(timeline=TSO_TIMELINE, counts=Counts(rows=rows), checkpoint_ts=Ts(int((unix_s - lag_s) * 1000) << 18))


def test_the_history_has_the_lag_and_the_rows_a_second_since_the_sample_before():
    states = iter([state_at(100, 3.0, 1000.0), state_at(600, 4.0, 1005.0)])
    history = RecentHistory(lambda: next(states))
    history.sample(1000.0, 50.0)
    history.sample(1005.0, 55.0)
    assert history.document() == {"every_s": 5.0, "unix_s": [1000.0, 1005.0], "lag_s": [3.0, 4.0], "rows_per_s": [0.0, 100.0]}


def test_the_history_keeps_an_hour():
    history = RecentHistory(RunState)
    for number in range(800):
        history.sample(1000.0 + 5 * number, 5.0 * number)
    found = history.document()
    assert found["unix_s"][-1] - found["unix_s"][0] == 3595.0
    assert set(found["lag_s"]) == {None}


def test_the_history_is_taken_while_nobody_asks():
    history = RecentHistory(RunState, every_s=0.01)
    history.start()
    began = time.monotonic()
    while len(history.document()["unix_s"]) < 3 and time.monotonic() - began < PATIENCE_S:
        time.sleep(0.01)
    history.close()
    assert len(history.document()["unix_s"]) >= 3


def test_an_ended_run_says_why_as_long_as_it_answers():
    with page_of("stopped") as shown:
        end = ask(shown.address, "/status")[2]["end"]
    assert (end["exit_code"], end["error_class"]) == (4, "FatalSinkError")
    assert end["error"] == f"{ended().message} [table=shop.order_lines]"
    assert end["remedy"] == ended().remedy


def test_the_first_reason_of_an_end_counts():
    end_notice = EndNotice()
    end_notice.end(FatalSinkError("the cause"))
    end_notice.end(OSError("while closing"))
    assert end_notice.told({})["end"]["error"] == "the cause"


def test_the_end_of_a_run_waits_for_nobody_where_no_page_is_open():
    end_notice, began = EndNotice(), time.monotonic()
    end_notice.end(None)
    end_notice.wait_until_read(PATIENCE_S)
    assert time.monotonic() - began < PATIENCE_S / 2


def test_a_defect_shows_no_more_than_its_name():
    app = StatusApp(RunState, 600, PageParts())
    app.end(KeyError("a value of a row"))
    assert "value of a row" not in json.dumps(app._end_notice.told({}))
