"""Ctrl-C while the interpreter ends, after the command has said its result."""

import subprocess
import sys

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
