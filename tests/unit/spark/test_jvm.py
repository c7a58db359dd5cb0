"""The JVM's output: everything is logged but the warning that every start would show; without a log it goes to standard error."""

import io
import logging
import os
import shutil
import subprocess
import sys

import pytest

from applier.spark import jvm
from applier.spark.foreign_output import ForeignOutput
from applier.spark.jvm import forward, report_server_error, show_output

INCUBATOR = "WARNING: Using incubator modules: jdk.incubator.vector\n"
PROGRAM = """
import sys
from applier.spark.session import start_context

def talk(one):
    sys.stdout.write("worker's print\\n")
    sys.stdout.flush()
    sys.stderr.write("worker's error\\n")
    return one

for attempt in range(2):
    context = start_context("test", "local[1]", {})
    assert context.parallelize([attempt], 1).map(talk).collect() == [attempt]
    context.stop()
context = start_context("test", "local[1]", {})
log = context._jvm.org.slf4j.LoggerFactory.getLogger("some.class")
log.warn("trouble that heals")
log.error("real trouble")
context._jvm.java.lang.System.out.println("java's print")
context.stop()
print("result")
"""

STOPPED_AT_WORK = """
import pathlib, sys, threading, time
from applier.spark.runner import SparkRunner
from applier.spark.session import start_context

begun = pathlib.Path(sys.argv[1])

def talk(_):
    begun.touch()
    while True:
        time.sleep(0.01)
        yield "x" * 1_000_000

def work():
    try:
        context.parallelize([0], 1).mapPartitions(talk).count()
    except Exception as error:
        ends.append(error)

ends = []
context = start_context("test", "local[1]", {})
job = threading.Thread(target=work)
job.start()
while not begun.exists():
    time.sleep(0.01)
SparkRunner(context, None, None).close()
job.join()
print(len(ends))
"""


def test_every_line_but_the_incubator_warning_is_logged(caplog):
    forward(io.StringIO(f"{INCUBATOR}ERROR: real trouble\nwithout an end"))
    assert [record.text for record in caplog.records] == ["ERROR: real trouble", "without an end"]


def test_output_is_read_to_its_end_even_if_standard_error_is_closed(monkeypatch):
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stderr", closed)
    output = io.StringIO("one\ntwo\n")
    forward(output)
    assert output.closed


@pytest.mark.parametrize(
    ("error", "logged"), [(EOFError(), []), (ConnectionResetError("gone"), []), (ValueError("a defect"), ["ValueError: a defect"])]
)
def test_pyspark_prints_no_traceback_of_a_jvm_that_has_ended(error, logged, caplog, capsys, monkeypatch):
    # Without what earlier tests have configured and said.
    monkeypatch.setattr(logging.getLogger(), "handlers", [caplog.handler])
    monkeypatch.setattr(jvm, "_entries", ForeignOutput("spark"))
    with caplog.at_level("WARNING", logger="applier"):
        try:
            raise error
        except (EOFError, OSError, ValueError):
            report_server_error(None, None, None)
        show_output()
    assert [record.cause for record in caplog.records] == logged
    assert capsys.readouterr().err == ""


def test_without_java_the_error_says_what_spark_needs():
    code = (
        "from pyspark import SparkConf; from applier.model.errors import ConfigError; from applier.spark.jvm import start_jvm\n"
        "try: start_jvm(SparkConf())\n"
        "except ConfigError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | {"JAVA_HOME": "/nonexistent"}
    )
    assert done.stdout.startswith("Spark does not start: its Java process ended. The lines above say why.")
    assert "JAVA_HOME" in done.stdout
    assert "/nonexistent/bin/java" in done.stderr


@pytest.mark.slow
def test_a_java_that_is_killed_while_it_starts_is_started_again(tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f'#!/bin/sh\nif mkdir "{tmp_path}/killed" 2>/dev/null; then kill -KILL $$; fi\nexec "{shutil.which("java")}" "$@"\n')
    java.chmod(0o755)
    code = "from applier.spark.session import start_context\nprint(start_context('test', 'local[1]', {}).parallelize([7], 1).collect())"
    environment = os.environ | {"JAVA_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert (done.stdout, done.returncode) == ("[7]\n", 0), done.stderr
    assert (tmp_path / "killed").exists()


@pytest.mark.slow
def test_spark_starts_without_noise_and_real_errors_go_to_standard_error_only():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "result\n"
    assert done.stderr.count("ERROR class: real trouble\n") == 1
    for heard in ("java's print", "worker's print", "worker's error"):
        assert heard in done.stderr
    for chatter in ("incubator", "log level", "NativeCodeLoader", "trouble that heals"):
        assert chatter not in done.stderr


@pytest.mark.slow
def test_a_spark_that_is_stopped_during_a_job_logs_nothing(tmp_path):
    done = subprocess.run([sys.executable, "-c", STOPPED_AT_WORK, tmp_path / "begun"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1\n", "")
