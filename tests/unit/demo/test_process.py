"""A process that is killed with everything that it started."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from applier.demo.process import GuardedProcess, WatchedProcess, catchup_command
from applier.model.errors import ApplierError

TREE = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import os, time; os.setpgid(0, 0); print(os.getpid(), flush=True); time.sleep(600)"])
time.sleep(600)
"""


def lines_of(path):
    return path.read_text().split() if path.exists() else []


def is_gone(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_kill_reaches_everything_that_the_process_started(tmp_path):
    reported = tmp_path / "reported"
    code = TREE.replace("print(os.getpid(), flush=True)", f"open({str(reported)!r}, 'w').write(str(os.getpid()))")
    with WatchedProcess([sys.executable, "-c", code], tmp_path / "log") as process:
        assert process.wait_until(lambda: bool(lines_of(reported)))
        grandchild = int(lines_of(reported)[0])
        process.kill()
        assert is_gone(grandchild)


def test_a_result_is_the_object_that_the_process_prints(tmp_path):
    with WatchedProcess([sys.executable, "-c", "print('{\"rows\": 5}')"], tmp_path / "log") as process:
        assert process.wait_until(lambda: False) is False
        assert process.result() == {"rows": 5}


def test_a_failed_catch_up_is_reported_with_the_end_of_its_log(tmp_path):
    with (
        WatchedProcess(catchup_command(tmp_path / "none.toml"), tmp_path / "log") as process,
        pytest.raises(ApplierError, match="the configuration file does not exist") as caught,
    ):
        process.result()
    assert caught.value.facts == {"exit_code": 2}


DEMO = """
import sys, time
from pathlib import Path
from applier.demo.process import GuardedProcess
process = GuardedProcess([sys.executable, "-c", sys.argv[1]], Path(sys.argv[2]))
time.sleep(600)
"""


def wait_until(is_reached):
    deadline = time.monotonic() + 20
    while not is_reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def guarded(code, tmp_path):
    with GuardedProcess([sys.executable, "-c", code], tmp_path / "log") as process:
        yield process


def test_nothing_outlives_a_demo_that_is_killed(tmp_path):
    reported = tmp_path / "reported"
    code = TREE.replace("print(os.getpid(), flush=True)", f"open({str(reported)!r}, 'a').write(str(os.getpid()) + ' ')")
    code = code.replace("child =", f"open({str(reported)!r}, 'a').write(str(os.getpid()) + ' ')\nchild =")
    with subprocess.Popen([sys.executable, "-c", DEMO, code, str(tmp_path / "log")]) as demo:
        wait_until(lambda: len(lines_of(reported)) == 2)
        demo.kill()
    wait_until(lambda: all(is_gone(int(process)) for process in lines_of(reported)))


def test_a_signal_that_ends_the_process_is_in_its_exit_code(tmp_path):
    with guarded("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", tmp_path) as process:
        wait_until(lambda: process.exit_code() is not None)
        assert process.exit_code() == 128 + signal.SIGKILL
        # The daemon of --live closes such a process before it starts the next one, and again at its own end if that fails.
        process.close()


def test_a_driver_that_is_killed_leaves_no_children(tmp_path):
    reported = tmp_path / "reported"
    code = TREE.replace("print(os.getpid(), flush=True)", f"open({str(reported)!r}, 'w').write(str(os.getpid()) + ' ' + str(os.getppid()))")
    with guarded(code, tmp_path) as process:
        wait_until(lambda: len(lines_of(reported)) == 2)
        grandchild, driver = map(int, lines_of(reported))
        os.kill(driver, signal.SIGKILL)
        wait_until(lambda: process.exit_code() is not None)
        assert is_gone(grandchild)


def test_a_process_ends_in_order_when_it_is_asked(tmp_path):
    ready = tmp_path / "ready"
    code = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); open(READY, 'w').close(); time.sleep(600)"
    code = code.replace("READY", repr(str(ready)))
    with guarded(code, tmp_path) as process:
        wait_until(ready.exists)
        process.terminate()
        wait_until(lambda: process.exit_code() is not None)
        assert process.exit_code() == 7
