"""The session: what the operator's properties, Spark's own environment and our defaults come to in the JVMs that run."""

import json
import os
import re
import subprocess
import sys

import pytest

PROGRAM = """
import json, logging, sys
from applier.spark.session import start_context

logging.basicConfig(level=logging.INFO, format="%(message)s on %(master)s after %(seconds)s s")
logging.getLogger("py4j").setLevel(logging.ERROR)
context = start_context("test", "local[1]", json.loads(sys.argv[1]))
beans = context._jvm.java.lang.management.ManagementFactory
print(json.dumps({
    "arguments": list(beans.getRuntimeMXBean().getInputArguments()),
    "collectors": [bean.getName() for bean in beans.getGarbageCollectorMXBeans()],
    "executors": context.getConf().get("spark.executor.extraJavaOptions"),
}))
"""


def started(properties: dict[str, str], **environment: str) -> dict[str, object]:
    """Start Spark in a process of its own; return what its JVM says of itself."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(properties)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^spark_started on local\[1\] after [0-9.]+ s$", done.stderr, re.MULTILINE), done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_the_jvm_starts_with_our_options():
    found = started({})
    assert {"-XX:TieredStopAtLevel=1", "-XX:+UseParallelGC", "-Xmn256m"} <= set(found["arguments"])
    assert str(found["executors"]).endswith(" -XX:TieredStopAtLevel=1 -XX:+UseParallelGC -Xmn256m")  # after the modules that Spark opens


@pytest.mark.slow
@pytest.mark.parametrize(
    ("properties", "environment"),
    [
        ({"spark.driver.extraJavaOptions": "-XX:+UseG1GC"}, {}),
        ({"spark.driver.defaultJavaOptions": "-XX:+UseG1GC"}, {}),
        ({}, {"JDK_JAVA_OPTIONS": "-XX:+UseG1GC"}),
    ],
)
def test_a_jvm_with_a_collector_of_the_operator_starts_with_it(properties, environment):
    found = started(properties | {"spark.executor.extraJavaOptions": "-XX:+UseSerialGC"}, **environment)
    assert all(name.startswith("G1") for name in found["collectors"])
    assert str(found["executors"]).endswith(" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


@pytest.mark.slow
def test_a_spark_that_can_write_nowhere_names_its_directory():
    code = """
from applier.spark.failure import UNANSWERED, start_failed
from applier.spark.session import start_context
try:
    start_context("test", "local[1]", {"spark.local.dir": "/proc/nowhere"})
except UNANSWERED as error:
    print(start_failed(error))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Spark does not start")
    assert "spark.local.dir" in done.stdout
    assert "Failed to create any local dir" in done.stderr


@pytest.mark.slow
def test_a_setting_that_spark_refuses_ends_the_run_at_once():
    code = """
from applier.spark.failure import UNANSWERED, start_failed
from applier.spark.session import start_context
try:
    start_context("test", "local[1]", {"spark.driver.memory": "460m"})
except UNANSWERED as error:
    failure = start_failed(error)
    print(type(failure).__name__, failure)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ConfigError Spark refuses a setting")
    assert "spark.driver.memory" in done.stdout
