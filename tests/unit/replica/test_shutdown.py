"""The first signal requests a shutdown; a second one, or the timeout, ends the process at once."""

import logging
import os
import signal
import subprocess
import sys
import time
from threading import Event

import pytest

import applier.replica.shutdown
from applier.replica.shutdown import ECHO_S, Shutdown, shutdown_on_signals

PROGRAM = """
import sys, time
from applier.replica.shutdown import Shutdown, shutdown_on_signals
shutdown = Shutdown()
with shutdown_on_signals(shutdown, timeout_s=float(sys.argv[1])):
    print("ready", flush=True)
    shutdown.event.wait(120)
    print("asked", flush=True)
    time.sleep(120)
"""
LONG_S = 120


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_requests_a_shutdown_and_the_handlers_are_restored_after_the_block(number):
    before = signal.getsignal(number)
    shutdown = Shutdown()
    with shutdown_on_signals(shutdown, timeout_s=LONG_S, end=lambda code: pytest.fail(f"ended with {code}")):
        os.kill(os.getpid(), number)
        assert shutdown.event.wait(LONG_S)
    assert signal.getsignal(number) is before


def test_a_block_without_signals_requests_nothing():
    shutdown = Shutdown()
    with shutdown_on_signals(shutdown, timeout_s=0):
        pass
    assert not shutdown.is_requested


def test_what_lasts_too_long_after_a_signal_is_ended(caplog):
    caplog.set_level(logging.INFO, "applier")
    ended, codes = Event(), []
    shutdown = Shutdown()
    with shutdown_on_signals(shutdown, timeout_s=0.01, end=lambda code: (codes.append(code), ended.set())):
        os.kill(os.getpid(), signal.SIGTERM)
        assert ended.wait(LONG_S)
    assert codes == [143]
    asked, ending = [record for record in caplog.records if record.name == "applier"]
    assert (asked.getMessage(), asked.signal, asked.within_s) == ("shutdown_requested", "SIGTERM", 0.01)
    assert (ending.levelno, ending.reason) == (logging.WARNING, "run.shutdown_timeout_s has passed")


def test_a_request_ends_a_wait():
    shutdown = Shutdown()
    shutdown.request()
    shutdown.wait(float("1e6"))
    assert shutdown.is_requested


@pytest.mark.parametrize(("second", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_ends_the_process_at_once(second, code):
    with subprocess.Popen([sys.executable, "-c", PROGRAM, str(LONG_S)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "asked\n"
        time.sleep(2 * ECHO_S)
        process.send_signal(second)
        assert process.wait(LONG_S) == code


def test_a_signal_that_a_wrapper_forwards_too_is_one_request(monkeypatch):
    monkeypatch.setattr(applier.replica.shutdown, "ECHO_S", LONG_S)
    shutdown, codes = Shutdown(), []
    with shutdown_on_signals(shutdown, timeout_s=LONG_S, end=codes.append):
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        assert shutdown.event.wait(LONG_S)
    assert codes == []
