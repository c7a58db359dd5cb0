"""Examines what Spark needs on this machine: Java, and a Python for its workers. Starts no Spark."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pyspark import SparkConf

from applier.config import Config
from applier.config.choice import Consistency
from applier.model.errors import ConfigError
from applier.model.finding import CheckFinding, of_error, ok, problem, warning
from applier.model.remedy import Remedy
from applier.spark.python_check import VERSION, check_local_python
from applier.spark.session import is_submitted, refuse_speculation

OLDEST_JAVA: Final = 17
PATIENCE_S: Final = 20.0
JAVA_REMEDY: Final = Remedy(
    "check.install-java", f"Install Java {OLDEST_JAVA} or newer, and set JAVA_HOME to it (here, or in Spark's conf/spark-env.sh)"
)
JAVA_SCRIPT: Final = '. "$SPARK_HOME/bin/load-spark-env.sh" >/dev/null 2>&1; exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version'
"""Spark's own way to its Java: spark-env.sh may set JAVA_HOME."""
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')


def spark_properties(config: Config) -> Mapping[str, str]:
    """Return Spark's properties. The heap of a JVM that spark-submit has started is what spark-submit gave it."""
    if not is_submitted():
        return config.spark.conf
    submitted = dict(SparkConf().getAll())
    own = {name: value for name, value in config.spark.conf.items() if name != "spark.driver.memory"}
    return {**submitted, **own}


def examine_spark(config: Config) -> Iterator[CheckFinding]:
    """Examine Java, the workers' Python, and what Spark may do with tasks."""
    yield java_finding(is_running=is_submitted())
    if config.sink.consistency is Consistency.ROW:
        yield speculation_finding(spark_properties(config))
    if config.spark.master.startswith("local"):
        yield python_finding(config.spark.conf)
    else:
        yield ok("executors' Python", "on a cluster a run compares it with the driver's when Spark has started")


def speculation_finding(properties: Mapping[str, str]) -> CheckFinding:
    """Examine whether Spark would run tasks twice that write rows ahead of the checkpoint."""
    check = "Spark: speculation"
    try:
        refuse_speculation(properties)
    except ConfigError as error:
        return of_error(check, error)
    return ok(check, "off")


def java_finding(environment: Mapping[str, str] | None = None, *, is_running: bool = False) -> CheckFinding:
    """Examine the Java that Spark would start."""
    check = "Java"
    if is_running:
        return ok(check, "spark-submit has started it")
    inherited = dict(os.environ if environment is None else environment)
    found = importlib.util.find_spec("pyspark")
    home = inherited.get("SPARK_HOME") or str(Path(found.origin).parent if found and found.origin else "")
    try:
        done = _output(["bash", "-c", JAVA_SCRIPT], {**inherited, "SPARK_HOME": home})
    except (OSError, subprocess.TimeoutExpired) as error:
        return warning(check, f"its version is not known: {error}", JAVA_REMEDY)
    version = _VERSION.search(done)
    if version is None:
        return problem(check, "no Java was found: it is not installed, or JAVA_HOME names another directory", JAVA_REMEDY)
    if int(version[1]) < OLDEST_JAVA:
        return problem(check, f"version {version[1]} is too old for Spark", JAVA_REMEDY)
    return ok(check, f"version {version[1]}")


def python_finding(properties: Mapping[str, str]) -> CheckFinding:
    """Compare the Python of Spark's workers with this one, as a run does before it starts Spark."""
    check = "executors' Python"
    path = properties.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable
    try:
        check_local_python(path)
    except ConfigError as error:
        return of_error(check, error)
    return ok(check, f"version {VERSION}: {path}")


def _output(command: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(  # noqa: S603 - the operator's own Java and Python
        command, env=dict(environment), capture_output=True, text=True, errors="replace", timeout=PATIENCE_S, check=False
    )
    return done.stdout + done.stderr
