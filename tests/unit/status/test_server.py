"""What the HTTP server answers, and to whom."""

import json
import logging
import socket
import struct
import time
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from socketserver import TCPServer
from threading import Event
from wsgiref.simple_server import WSGIRequestHandler

import pytest

from applier.model.errors import ConfigError
from applier.model.position import Stream, Ts
from applier.status import http_endpoint as server
from applier.status.http_endpoint import StatusApp, StatusServer
from applier.telemetry.run_state import RunState, Stall
from tests.builders.run_state import STATE, W, with_streams
from tests.rig.http_client import PATIENCE_S, get

LOOPBACK = "127.0.0.1"


@contextmanager
def serving(state, *, unhealthy_after_s=600.0):
    with StatusServer(LOOPBACK, 0, StatusApp(lambda: state, unhealthy_after_s)) as served:
        served.start()
        yield served.address


def ask(state, path, **more):
    with serving(state, **more) as address:
        status, _, body = get(address, path)
        return status, json.loads(body)


def alive(state=STATE, progress_s=None, **changes):
    return replace(state, progress_s=time.monotonic() if progress_s is None else progress_s, **changes)


def test_a_run_that_makes_progress_is_healthy():
    assert ask(alive(), "/healthz") == (200, {"is_alive": True, "phase": "writing"})


@pytest.mark.parametrize(("ddl_since_s", "status"), [(None, 503), (1.0, 200)])
def test_a_run_without_progress_for_too_long_is_not_healthy_unless_a_ddl_runs(ddl_since_s, status):
    assert ask(alive(ddl_since_s=ddl_since_s, progress_s=time.monotonic() - 601), "/healthz")[0] == status


@pytest.mark.parametrize(("is_ready", "status"), [(True, 200), (False, 503)])
def test_readyz_shows_whether_the_run_is_ready(is_ready, status):
    assert ask(alive(is_ready=is_ready), "/readyz")[0] == status


def test_the_status_has_exact_timestamps_and_names_the_stream_that_holds_back_the_watermark():
    status, found = ask(alive(with_streams(stall=Stall(Stream("feed", 1), Ts(5), 75.0)), current_ddl="ALTER TABLE t"), "/status")
    assert status == 200
    assert (found["replica"], found["epoch"], found["watermark"], found["is_alive"]) == ("orders", 3, W, True)
    assert (found["holding_stream"], found["stall"]) == ("feed/1", {"stream": "feed/1", "resolved_ts": 5, "silent_s": 75.0})
    assert found["current_ddl"] == "ALTER TABLE t"
    assert found["retries"] == {"RetryableSinkError": 2, "SourceError": 1}
    assert found["streams"]["feed/0"]["resolved_ts"] == W
    assert found["streams"]["feed/0"]["resolved_time"] == "2023-11-14T22:13:21.500+00:00"


def test_a_run_that_has_not_begun_has_a_status_too():
    status, found = ask(RunState(replica="new", started_at_s=time.time(), progress_s=time.monotonic()), "/status")
    assert status == 200
    assert (found["epoch"], found["checkpoint_time"], found["lag_s"], found["stall"], found["streams"]) == (None, None, None, None, {})


def test_metrics_are_text_for_prometheus():
    with serving(STATE) as address:
        status, kind, body = get(address, "/metrics")
    assert (status, kind.split(";")[0]) == (200, "text/plain")
    assert 'applier_info{replica="orders"' in body


def test_unknown_paths_and_other_methods_are_refused():
    with serving(STATE) as address:
        assert get(address, "/nothing")[0] == 404
        assert get(address, "/status", "POST")[0] == 405


@pytest.mark.parametrize("path", ["/", "/status", "/history", "/metrics", "/healthz", "/readyz", "/nothing"])
def test_head_answers_like_get_without_a_body(path):
    with serving(alive()) as address:
        status, kind, body = get(address, path, "HEAD")
        assert (status, kind, body) == (*get(address, path)[:2], "")


def test_a_client_that_sends_nothing_does_not_block_others():
    with serving(STATE) as address:
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S):
            assert get(address, "/readyz")[0] == 200


@pytest.fixture
def let_go(monkeypatch, caplog):
    """Set once the server has done with a client. What it logs is seen, whatever level was asked for before."""
    caplog.set_level(logging.WARNING, logger="applier")
    done, shutdown_request = Event(), TCPServer.shutdown_request

    def note(server, request):
        shutdown_request(server, request)
        done.set()

    monkeypatch.setattr(TCPServer, "shutdown_request", note)
    return done


def send(address, request):
    host, _, port = address.rpartition(":")
    client = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    client.sendall(request)
    return client


def fail_with(error, monkeypatch):
    def fail(handler):
        raise error

    monkeypatch.setattr(WSGIRequestHandler, "get_environ", fail)


def warnings(caplog):
    return [record for record in caplog.records if record.name == "applier"]


def test_a_client_that_resets_its_connection_is_not_logged(let_go, caplog, capfd):
    with serving(STATE) as address:
        with send(address, b"GET /healthz") as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert let_go.wait(PATIENCE_S)
    assert warnings(caplog) == []
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("error", [TimeoutError("timed out"), BrokenPipeError()])
def test_a_client_that_is_silent_or_gone_is_not_logged(error, let_go, monkeypatch, caplog, capfd):
    fail_with(error, monkeypatch)
    with serving(STATE) as address, send(address, b"GET /healthz HTTP/1.0\r\n\r\n"):
        assert let_go.wait(PATIENCE_S)
    assert warnings(caplog) == []
    assert "Traceback" not in capfd.readouterr().err


def test_a_request_that_fails_for_another_reason_is_one_warning(let_go, monkeypatch, caplog):
    fail_with(ZeroDivisionError("the cause"), monkeypatch)
    with serving(STATE) as address, send(address, b"GET /healthz HTTP/1.0\r\n\r\n"):
        assert let_go.wait(PATIENCE_S)
    (record,) = warnings(caplog)
    assert (record.levelname, record.getMessage()) == ("WARNING", "http_request_failed")
    assert isinstance(record.exc_info[1], ZeroDivisionError)


def test_after_close_the_address_is_free():
    server = StatusServer(LOOPBACK, 0, StatusApp(lambda: STATE, 600))
    server.start()
    host, _, port = server.address.rpartition(":")
    server.close()
    assert server.address == ""
    with StatusServer(host, int(port), StatusApp(lambda: STATE, 600)) as again:
        again.start()


def test_an_address_of_another_machine_is_an_error_of_the_configuration():
    with pytest.raises(ConfigError) as caught:
        StatusServer("203.0.113.77", 9464, StatusApp(lambda: STATE, 600)).start()
    assert (caught.value.facts["kind"], caught.value.facts["key"]) == ("address", "http.listen")


def test_connections_beyond_a_limit_are_closed_and_take_no_more_of_the_run(monkeypatch):
    monkeypatch.setattr(server, "MOST_CONNECTIONS", 2)
    with serving(alive()) as address, ExitStack() as opened:
        idle = [opened.enter_context(closing(socket.create_connection((LOOPBACK, int(address.rpartition(":")[2]))))) for _ in range(3)]
        idle[2].settimeout(PATIENCE_S)
        assert idle[2].recv(1) == b""
        for each in idle:
            each.close()
        until = time.monotonic() + PATIENCE_S
        while not answers(address):
            assert time.monotonic() < until
            time.sleep(0.01)


def answers(address):
    try:
        return get(address, "/healthz")[0] == 200
    except OSError:
        return False
