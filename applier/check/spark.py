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

from applier.check.finding import CheckFinding, ok, problem, warning
from applier.config import Config
from applier.spark.session import is_submitted

OLDEST_JAVA: Final = 17
PATIENCE_S: Final = 20.0
JAVA_REMEDY: Final = f"Install Java {OLDEST_JAVA} or newer, and set JAVA_HOME to it (here, or in Spark's conf/spark-env.sh)"
JAVA_SCRIPT: Final = '. "$SPARK_HOME/bin/load-spark-env.sh" >/dev/null 2>&1; exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" -version'
"""Spark's own way to its Java: spark-env.sh may set JAVA_HOME."""
MODULES: Final = ("applier", "pyspark", "msgspec", "confluent_kafka", "pymysql", "sqlalchemy", "sqlglot")
"""What tasks import; each distribution brings the rest."""
PYTHON_SCRIPT: Final = f"""
import sys, importlib.util
missing = [name for name in {MODULES!r} if importlib.util.find_spec(name) is None]
print("%d.%d" % sys.version_info[:2], *missing)
"""
_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')


def spark_properties(config: Config) -> Mapping[str, str]:
    """Return Spark's properties. The heap of a JVM that spark-submit has started is what spark-submit gave it."""
    if not is_submitted():
        return config.spark.conf
    submitted = dict(SparkConf().getAll())
    own = {name: value for name, value in config.spark.conf.items() if name != "spark.driver.memory"}
    return {**submitted, **own}


def examine_spark(config: Config) -> Iterator[CheckFinding]:
    """Examine Java and the workers' Python."""
    yield java_finding(is_running=is_submitted())
    if config.spark.master.startswith("local"):
        yield python_finding(os.environ.get("PYSPARK_PYTHON", sys.executable))
    else:
        yield ok("executors' Python", "on a cluster a run compares it with the driver's when Spark has started")


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
        return warning(check, f"could not be asked for its version: {error}", JAVA_REMEDY)
    version = _VERSION.search(done)
    if version is None:
        return problem(check, "is not installed, or JAVA_HOME is wrong", JAVA_REMEDY)
    if int(version[1]) < OLDEST_JAVA:
        return problem(check, f"{version[1]} is too old for Spark", JAVA_REMEDY)
    return ok(check, f"version {version[1]}")


def python_finding(python: str, environment: Mapping[str, str] | None = None) -> CheckFinding:
    """Compare the Python of Spark's workers with this one."""
    check, own = "executors' Python", ".".join(map(str, sys.version_info[:2]))
    remedy = f"Unset PYSPARK_PYTHON, or set it to a Python {own} with applier installed: {sys.executable}"
    if python == sys.executable:
        return ok(check, f"version {own}, the driver's own")
    try:
        answer = _output([python, "-c", PYTHON_SCRIPT], os.environ if environment is None else environment).split()
    except FileNotFoundError:
        return problem(check, f"PYSPARK_PYTHON names no program: {python}", remedy)
    except (OSError, subprocess.TimeoutExpired) as error:
        return problem(check, f"PYSPARK_PYTHON cannot be run: {python}: {error}", remedy)
    if not answer or answer[0] != own:
        return problem(
            check, f"PYSPARK_PYTHON is version {answer[0] if answer else 'unknown'}, and the driver's is {own}: {python}", remedy
        )
    if answer[1:]:
        return problem(check, f"PYSPARK_PYTHON lacks {', '.join(answer[1:])}: {python}", remedy)
    return ok(check, f"version {own}: {python}")


def _output(command: list[str], environment: Mapping[str, str]) -> str:
    done = subprocess.run(  # noqa: S603 - the operator's own Java and Python
        command, env=dict(environment), capture_output=True, text=True, errors="replace", timeout=PATIENCE_S, check=False
    )
    return done.stdout + done.stderr
