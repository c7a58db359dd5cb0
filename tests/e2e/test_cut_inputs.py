"""The input of the task that writes is cut short while that task waits at a named point: no part of a segment is committed.

The sign that the cut has hit is Spark's message of a failed fetch, or a segment that is applied again; the sign that nothing was
lost is the number of rows.
"""

import json
import os
import signal
import sys
import time
from contextlib import contextmanager

import pytest

from tests.rig.process_tree import Role, processes
from tests.rig.program import DEADLINE_S, POLL_S, ROOT, Program
from tests.rig.spark_cluster import environment_with, running_cluster_in
from tests.rig.spark_segment import MANY, PARTITIONS

pytestmark = [pytest.mark.slow]

ALL = MANY * PARTITIONS


@contextmanager
def stopped_writer(directory, master):
    """Yield a program whose segment is rendered, and whose writer waits for a signal."""
    command = [sys.executable, "-m", "tests.rig.spark_segment", "stopped_writer", directory, master]
    with Program(command, directory, PYTHONPATH=str(ROOT)) as program:
        yield program


def stopped(leaders):
    """Return the stopped Python workers with the leaders of their sessions."""
    return [(leader, process) for leader in leaders for process in processes(leader, Role.WORKER) if process.state == "T"]


def first_stopped(program, leaders):
    found = []
    assert program.reaches(lambda: bool(found.extend(stopped(leaders)) or found)), program.wait()
    return found[0]


def continue_until_the_end(program, leaders):
    """Let every writer continue, also those of later attempts, each of which stops once."""
    give_up = time.monotonic() + DEADLINE_S
    while program.poll() is None:
        assert time.monotonic() < give_up, program.said()
        for _, process in stopped(leaders()):
            process.signal(signal.SIGCONT)
        time.sleep(POLL_S)
    return json.loads(program.wait().stdout or "null")


@pytest.mark.soak(reason="a cluster; the same failed fetch as that of the files, test_spark_submit.py kills a worker of a cluster")
def test_an_executor_that_holds_rendered_statements_dies_before_they_are_written(tmp_path):
    with (
        running_cluster_in(tmp_path / "cluster", environment_with(sys.executable) | {"PYTHONPATH": str(ROOT)}, workers=2) as cluster,
        stopped_writer(tmp_path, cluster.master) as program,
    ):
        leaders = [worker.pid for worker in cluster.workers]
        home, _ = first_stopped(program, leaders)
        (other,) = [leader for leader in leaders if leader != home]
        (executor,) = processes(other, Role.EXECUTOR)
        executor.signal(signal.SIGKILL)
        reported = continue_until_the_end(program, lambda: leaders)
        said = program.said()
    assert "FetchFailed" in said, "the executor that died held nothing that the writer needed"
    assert (reported["outcomes"][-1]["state"], reported["rows"]) == ("committed", ALL), reported


def test_the_files_of_a_shuffle_are_cut_short_on_disk_before_they_are_read(tmp_path):
    with stopped_writer(tmp_path, "local[2]") as program:
        first_stopped(program, [program.pid])
        for path in (tmp_path / "spark").rglob("shuffle_*.data"):
            os.truncate(path, path.stat().st_size // 2)
        reported = continue_until_the_end(program, lambda: [program.pid])
        said = program.said()
    # Where the file ends between two blocks of its compression, Spark takes that for the end of the data, and its job succeeds.
    assert "FetchFailed" in said or len(reported["outcomes"]) > 1, "what was cut off had been read before"
    assert (reported["outcomes"][-1]["state"], reported["rows"]) == ("committed", ALL), reported
