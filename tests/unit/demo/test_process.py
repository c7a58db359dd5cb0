"""A process that is killed with everything that it started."""

import sys
from pathlib import Path

import pytest

from applier.demo.process import WatchedProcess, catchup_command
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
