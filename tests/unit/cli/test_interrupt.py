"""Ctrl-C while a command has something to close, and while the interpreter ends, after the command has said its result."""

import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from applier.cli.interrupt import interrupts_announced

ENDING = """
import os, signal, sys
from applier.cli.interrupt import end_as, end_on_interrupt
end_on_interrupt()
print("the result")
end_as(3)
os.kill(os.getpid(), signal.SIGINT)
sys.exit(0)
"""


def test_ctrl_c_after_the_end_of_a_command_changes_neither_its_output_nor_its_exit_code():
    ended = subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "the result\n", "")


@pytest.fixture
def interruptible():
    """Python's own handler: a job in the background of a script begins with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_is_answered_before_anything_is_closed(capfd):
    before = signal.getsignal(signal.SIGINT)
    said = []

    @contextmanager
    def open_until_read():
        try:
            yield
        finally:
            said.append(capfd.readouterr().err)

    with pytest.raises(KeyboardInterrupt), interrupts_announced(), open_until_read():
        signal.raise_signal(signal.SIGINT)
    assert "Ctrl-C again ends it at once" in said[0]
    assert signal.getsignal(signal.SIGINT) is before
