"""The daemon of ``applier demo --live``: killed, it starts again; failed, it ends the demo."""

import signal
import socket
import sys
import time

import pytest

from applier.demo.directory import DemoDirectory
from applier.demo.live.daemon import LiveDaemon, usable_port
from applier.model.errors import ApplierError, ConfigError

DIES = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
ANSWERS = """
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"is_ready": True, "process": 7}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def files(tmp_path):
    files = DemoDirectory(tmp_path / "demo")
    files.clear()
    return files


def a_daemon(files, code):
    port = usable_port(None)
    return LiveDaemon(files, port, [sys.executable, "-c", code, str(port)])


def wait_for(look):
    deadline = time.monotonic() + 20
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


def test_a_daemon_that_is_killed_starts_again(files):
    with a_daemon(files, ANSWERS) as daemon:
        assert wait_for(daemon.ask)["process"] == 7
        assert daemon.restart_if_ended() == ""
        daemon._process.kill()
        assert wait_for(daemon.restart_if_ended) == f"was killed by signal {int(signal.SIGKILL)}"
        assert wait_for(daemon.ask)["process"] == 7


def test_a_daemon_that_stops_without_an_error_starts_again(files):
    with a_daemon(files, "pass") as daemon:
        assert wait_for(daemon.restart_if_ended) == "was stopped"


def test_a_daemon_that_fails_ends_the_demo_with_the_end_of_its_log(files):
    with a_daemon(files, "import sys; sys.stderr.write('no disk'); sys.exit(6)") as daemon:
        with pytest.raises(ApplierError, match="no disk") as caught:
            wait_for(daemon.restart_if_ended)
        assert caught.value.facts == {"exit_code": 6}


def test_a_daemon_that_something_kills_again_and_again_is_not_started_for_ever(files):
    with a_daemon(files, DIES) as daemon:
        assert len({wait_for(daemon.restart_if_ended) for _ in range(3)}) == 1
        with pytest.raises(ApplierError, match="the daemon failed"):
            wait_for(daemon.restart_if_ended)


def test_a_daemon_is_stopped_in_order(files):
    # SIGTERM ends this one without a handler: that is an error, and an end within the time.
    with a_daemon(files, ANSWERS) as daemon:
        wait_for(daemon.ask)
        with pytest.raises(ApplierError) as caught:
            daemon.stop()
    assert caught.value.facts == {"exit_code": 128 + signal.SIGTERM}


def test_a_port_in_use_is_refused_and_without_a_wish_a_free_one_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match="cannot be used") as caught:
            usable_port(port)
        assert "--port" in caught.value.remedy
        assert usable_port(None) != port
    assert usable_port(port) == port
