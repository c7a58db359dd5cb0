"""What the HTTP server answers, and whom it listens to."""

import json
import logging
import socket
import struct
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from socketserver import TCPServer
from threading import Event
from wsgiref.simple_server import WSGIRequestHandler

import pytest

from applier.model.errors import ConfigError
from applier.model.position import Stream, Ts
from applier.status.http_endpoint import HttpEndpoint
from applier.status.server import StatusApp, StatusServer
from applier.telemetry import SilentObserver
from applier.telemetry.monitor import Monitor
from applier.telemetry.run_state import RunState
from applier.telemetry.stall import Stall
from tests.builders.run_state import STATE, W, with_streams

LOOPBACK = "127.0.0.1"
PATIENCE_S = 60


def get(address, path, method="GET"):
    host, _, port = address.rpartition(":")
    connection = HTTPConnection(host, int(port), timeout=PATIENCE_S)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.headers["Content-Type"], response.read().decode()
    finally:
        connection.close()


@contextmanager
def serving(state, *, unhealthy_after_s=600.0):
    with StatusServer(LOOPBACK, 0, StatusApp(lambda: state, unhealthy_after_s)) as server:
        server.start()
        yield server.address


def ask(state, path, **more):
    with serving(state, **more) as address:
        status, _, body = get(address, path)
        return status, json.loads(body)


def alive(state=STATE, progress_s=None, **changes):
    return replace(state, progress_s=time.monotonic() if progress_s is None else progress_s, **changes)


def test_a_run_that_makes_progress_is_healthy():
    assert ask(alive(), "/healthz") == (200, {"is_alive": True, "phase": "applying"})


@pytest.mark.parametrize(("phase", "status"), [("applying", 503), ("waiting", 503), ("ddl", 200)])
def test_a_run_without_progress_for_too_long_is_not_healthy_unless_a_ddl_runs(phase, status):
    assert ask(alive(phase=phase, progress_s=time.monotonic() - 601), "/healthz")[0] == status


@pytest.mark.parametrize(("is_ready", "status"), [(True, 200), (False, 503)])
def test_a_run_is_ready_when_it_follows(is_ready, status):
    assert ask(alive(is_ready=is_ready), "/readyz")[0] == status


def test_the_status_has_exact_timestamps_and_names_what_holds_the_watermark():
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


def test_unknown_paths_and_orders_are_refused():
    with serving(STATE) as address:
        assert get(address, "/")[0] == 404
        assert get(address, "/status", "POST")[0] == 405


def test_a_client_that_says_nothing_does_not_keep_others_waiting():
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


def test_a_client_that_resets_its_connection_is_no_news(let_go, caplog, capfd):
    with serving(STATE) as address:
        with send(address, b"GET /healthz") as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        assert let_go.wait(PATIENCE_S)
    assert warnings(caplog) == []
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("error", [TimeoutError("timed out"), BrokenPipeError()])
def test_a_client_that_is_silent_or_gone_is_no_news(error, let_go, monkeypatch, caplog, capfd):
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


def test_after_its_end_nobody_answers_and_the_address_is_free():
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


# When it begins to answer


@dataclass
class Address:
    host: str
    port: int


@dataclass
class Settings:
    listen: Address | None
    unhealthy_after_s: float = 600.0


class NoteBook(SilentObserver):
    def __init__(self):
        self.notes = []

    def note(self, message, /, **facts):
        self.notes.append((message, facts))


@pytest.fixture
def taken():
    """An address that is in use."""
    with socket.socket() as other:
        other.bind((LOOPBACK, 0))
        other.listen()
        yield Address(LOOPBACK, other.getsockname()[1])


def test_a_run_answers_from_its_beginning_and_notes_where():
    book = NoteBook()
    with HttpEndpoint(Settings(Address(LOOPBACK, 0)), Monitor(book)) as endpoint:
        endpoint.open()
        endpoint.keep_open()
        ((message, facts),) = book.notes
        assert message == "http_listening"
        assert get(facts["address"], "/readyz")[0] == 503


def test_an_address_that_is_in_use_keeps_no_run_from_its_work_and_is_told_once(taken):
    book = NoteBook()
    with HttpEndpoint(Settings(taken), Monitor(book)) as endpoint:
        endpoint.open()
        assert book.notes == []  # another run may answer there, which is told by whoever owns the replica
        endpoint.keep_open()
        endpoint.keep_open()
    ((message, facts),) = book.notes
    assert message == "http_address_in_use"
    assert (facts["host"], facts["port"]) == (taken.host, taken.port)


def test_a_run_answers_as_soon_as_its_address_is_free():
    book = NoteBook()
    with socket.socket() as frozen:
        frozen.bind((LOOPBACK, 0))
        frozen.listen()
        address = Address(LOOPBACK, frozen.getsockname()[1])
        with HttpEndpoint(Settings(address), Monitor(book)) as endpoint:
            endpoint.keep_open()
            frozen.close()
            endpoint.keep_open()
            assert get(f"{address.host}:{address.port}", "/readyz")[0] == 503
    assert [message for message, _ in book.notes] == ["http_address_in_use", "http_listening"]


def test_what_is_no_address_of_this_machine_stops_a_run_before_it_owns_anything():
    with HttpEndpoint(Settings(Address("192.0.2.1", 9464)), Monitor(SilentObserver())) as endpoint, pytest.raises(ConfigError) as caught:
        endpoint.open()
    assert caught.value.facts["kind"] == "address"


def test_an_address_that_became_free_is_taken_when_the_replica_is_owned(taken):
    book = NoteBook()
    settings = Settings(taken)
    with HttpEndpoint(settings, Monitor(book)) as endpoint:
        endpoint.open()
        assert book.notes == []
    free = StatusServer(LOOPBACK, 0, StatusApp(lambda: STATE, 600))
    free.start()
    with HttpEndpoint(Settings(Address(LOOPBACK, int(free.address.rpartition(":")[2]))), Monitor(book)) as endpoint:
        endpoint.open()
        free.close()
        endpoint.keep_open()
        assert [message for message, _ in book.notes] == ["http_listening"]


def test_it_can_be_switched_off():
    book = NoteBook()
    with HttpEndpoint(Settings(None), Monitor(book)) as endpoint:
        endpoint.open()
        endpoint.keep_open()
    assert book.notes == []
