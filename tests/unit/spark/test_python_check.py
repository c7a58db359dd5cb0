"""A wrong Python of Spark's workers is refused before a range is read, and the variable is named."""

import json
import os
import subprocess
import sys

import pytest

from applier.model.errors import ConfigError
from applier.spark.python_check import NEEDED, check_local_python, probe

WORKER_MODULES = """
import importlib, json, sys
from applier.run.worker_daemon import MODULES
from applier.sinks.registry import task_modules
for name in (*MODULES, *task_modules()):
    importlib.import_module(name)
print(json.dumps(sorted(sys.modules)))
"""
ON_EXECUTORS = """
import sys
from applier.model.errors import ConfigError
from applier.spark.session import start_context
try:
    start_context("test", "local-cluster[1,1,1024]", {})
except ConfigError as error:
    print(error)
"""


def program(tmp_path, text: str) -> str:
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def answer(**found: object) -> str:
    return f"echo '{json.dumps(found)}'"


def test_the_drivers_own_python_is_accepted_without_a_process():
    check_local_python(sys.executable)
    assert probe(sys.executable).problem == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (answer(python="3.6", applier="", missing=["applier", "msgspec"]), "it is Python 3.6, and the driver has Python 3."),
        (answer(python="{}.{}".format(*sys.version_info), applier="", missing=["applier", "msgspec"]), "it has no applier, msgspec"),
        (answer(python="{}.{}".format(*sys.version_info), applier="0.0.1", missing=[]), "it has applier 0.0.1, and the driver has"),
        ("echo 'ImportError: No module named util' >&2; exit 1", "it cannot run Python 3 code: ImportError: No module named util"),
    ],
)
def test_a_python_that_cannot_run_tasks_is_refused_with_the_variable_that_names_it(tmp_path, text, problem):
    path = program(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        check_local_python(path)
    assert caught.value.facts["cause"].startswith(problem)
    assert caught.value.facts["python"] == path
    assert "PYSPARK_PYTHON" in caught.value.remedy
    assert sys.executable in caught.value.remedy


def test_a_python_that_is_not_there_is_refused():
    with pytest.raises(ConfigError) as caught:
        check_local_python("/nowhere/python3")
    assert caught.value.facts["cause"] == "it cannot be started: No such file or directory"


def test_what_is_asked_for_is_what_the_tasks_import():
    done = subprocess.run([sys.executable, "-c", WORKER_MODULES], capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert set(NEEDED) <= imported


@pytest.mark.slow
def test_a_wrong_python_of_executors_is_named_by_the_first_job(tmp_path):
    # It runs PySpark's own workers, which Spark puts on the path, and has no installed package.
    path = program(tmp_path, f'exec {sys.executable} -S "$@"')
    done = subprocess.run(
        [sys.executable, "-c", ON_EXECUTORS],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"PYSPARK_PYTHON": path},
    )
    assert done.stdout.startswith("the Python of Spark's workers cannot run applier"), done.stderr[-2000:]
    assert "PYSPARK_PYTHON" in done.stdout
