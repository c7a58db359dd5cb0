"""The daemon that workers are forked from: it has the tasks' modules, no thread and no connection."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from applier.run.worker_daemon import MODULES, ending_quietly, use_compiled_pyspark

SITE = "/opt/applier/lib/python3.11/site-packages"
ZIPS = [f"{SITE}/pyspark/python/lib/pyspark.zip", f"{SITE}/pyspark/python/lib/py4j-0.10.9.9-src.zip"]

IMPORTED = f"""
import importlib, json, os
for name in {MODULES!r}:
    importlib.import_module(name)
# The last one is the directory that is being read.
print(json.dumps([len(os.listdir("/proc/self/task")), sorted(map(int, os.listdir("/proc/self/fd")))[3:-1]]))
"""

ON_SPARK = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from applier.spark.session import end_context, start_context

def look(numbers):
    from applier.sources.kafka import reader
    list(numbers)
    with open("/proc/self/status") as status:
        parent = next(line.split()[1] for line in status if line.startswith("PPid"))
    with open(f"/proc/{parent}/cmdline") as command:
        daemon = command.read().split(chr(0))
    import pyspark
    return [(daemon, pyspark.__file__, "applier.sinks.mysql.writer" in sys.modules)]

def run():
    context = start_context("test", "local[1]", {}, "applier.run.worker_daemon")
    print(json.dumps(context.parallelize([0], 1).mapPartitions(look).collect()))
    end_context(context)

ThreadPoolExecutor(1).submit(run).result()
"""


def test_importing_the_tasks_modules_starts_no_thread_and_opens_nothing():
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [1, []]


def test_zips_of_an_installed_pyspark_are_not_searched():
    path = ["/home/me", *ZIPS, SITE]
    use_compiled_pyspark(path)
    assert path == ["/home/me", SITE]


def test_zips_of_a_pyspark_that_is_not_installed_are_all_there_is():
    path = ["/home/me", *ZIPS, "/opt/other/site-packages", f"{SITE}/pyspark", "applier.zip"]
    before = path[:]
    use_compiled_pyspark(path)
    assert path == before


def test_a_worker_whose_connection_the_jvm_has_closed_ends_without_a_traceback():
    def answering(connection, _):
        return int(connection)

    def unheard(connection, _):
        raise BrokenPipeError(connection)

    def defective(connection, _):
        raise ValueError(connection)

    assert (ending_quietly(answering)(7, False), ending_quietly(unheard)(7, True)) == (7, 1)
    with pytest.raises(ValueError, match="7"):
        ending_quietly(defective)(7, True)


@pytest.mark.slow
def test_workers_are_forked_from_the_daemon_and_have_the_modules():
    done = subprocess.run([sys.executable, "-c", ON_SPARK], capture_output=True, text=True, check=True)
    ((daemon, pyspark, has_modules),) = json.loads(done.stdout)
    assert "applier.run.worker_daemon" in daemon
    assert Path(pyspark).suffix == ".py"
    assert ".zip" not in pyspark
    assert has_modules
