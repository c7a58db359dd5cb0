"""The wish to end: the first signal expresses it, a second one or too long a wait ends the process at once."""

import logging
import os
import signal
import subprocess
import sys
import time
from threading import Event

import pytest

import applier.replica.shutdown
from applier.replica.shutdown import ECHO_S, Shutdown, stopped_by_signals

PROGRAM = """
import sys, time
from applier.replica.shutdown import Shutdown, stopped_by_signals
shutdown = Shutdown()
with stopped_by_signals(shutdown, timeout_s=float(sys.argv[1])):
    print("ready", flush=True)
    shutdown.event.wait(120)
    print("asked", flush=True)
    time.sleep(120)
"""
LONG_S = 120


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_is_a_wish_and_the_handlers_are_as_they_were_after_the_block(number):
    before = signal.getsignal(number)
    shutdown = Shutdown()
    with stopped_by_signals(shutdown, timeout_s=LONG_S, end=lambda code: pytest.fail(f"ended with {code}")):
        os.kill(os.getpid(), number)
        assert shutdown.event.wait(LONG_S)
    assert signal.getsignal(number) is before


def test_a_block_without_signals_ends_and_nothing_is_wished():
    shutdown = Shutdown()
    with stopped_by_signals(shutdown, timeout_s=0):
        pass
    assert not shutdown.is_requested


def test_what_lasts_too_long_after_a_signal_is_ended(caplog):
    caplog.set_level(logging.INFO, "applier")
    ended, codes = Event(), []
    shutdown = Shutdown()
    with stopped_by_signals(shutdown, timeout_s=0.01, end=lambda code: (codes.append(code), ended.set())):
        os.kill(os.getpid(), signal.SIGTERM)
        assert ended.wait(LONG_S)
    assert codes == [143]
    asked, ending = [record for record in caplog.records if record.name == "applier"]
    assert (asked.getMessage(), asked.signal, asked.within_s) == ("shutdown_requested", "SIGTERM", 0.01)
    assert (ending.levelno, ending.reason) == (logging.WARNING, "run.shutdown_timeout_s has passed")


def test_a_pause_ends_when_the_end_is_wished():
    shutdown = Shutdown()
    shutdown.request()
    shutdown.pause(float("1e6"))
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


def test_a_signal_that_a_wrapper_hands_on_too_is_one_wish(monkeypatch):
    monkeypatch.setattr(applier.replica.shutdown, "ECHO_S", LONG_S)
    shutdown, codes = Shutdown(), []
    with stopped_by_signals(shutdown, timeout_s=LONG_S, end=codes.append):
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
        assert shutdown.event.wait(LONG_S)
    assert codes == []
