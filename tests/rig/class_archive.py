"""An archive of the classes that Spark loads when it starts: with it a JVM needs 3.6 CPU seconds until its first job, without it 7.8.

The suite starts a hundred JVMs. The archive belongs to one Java and one Spark, takes half a minute to make, and is kept in build/.
A JVM that cannot use it starts without it.
"""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pyspark

from tests.rig.program import ROOT

OPTIONS = "SPARK_SUBMIT_OPTS"
"""Spark gives these to the JVM of a driver, and says nothing of it. JAVA_TOOL_OPTIONS would be announced on standard error."""

QUIET = "-Xshare:auto -Xlog:cds*=off"
START_AND_END = """
import sys
from pyspark.sql import SparkSession
options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC " + sys.argv[1]
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.extraJavaOptions", options).getOrCreate()
spark.sparkContext.parallelize(range(10), 2).map(lambda n: (n % 2, n)).groupByKey().collect()
gateway = spark.sparkContext._gateway
spark.stop()
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()
"""
DEADLINE_S = 300


def use_class_archive() -> None:
    """Let each driver's JVM that this process starts, or that its children start, read the archive; make it if it is missing."""
    given = os.environ.get(OPTIONS, "")
    if "-XX:SharedArchiveFile" not in given:
        os.environ[OPTIONS] = f"{given} -XX:SharedArchiveFile={_archive()} {QUIET}".strip()


def _archive() -> Path:
    directory = ROOT / "build"
    directory.mkdir(exist_ok=True)
    archive = directory / f"spark-{pyspark.__version__}-java-{_java()}.jsa"
    with archive.with_suffix(".lock").open("w") as lock:
        # Of several test processes one makes it, and the others wait for it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            _make(archive)
    return archive


def _make(archive: Path) -> None:
    made = archive.with_suffix(".made")
    command = [sys.executable, "-c", START_AND_END, f"-XX:ArchiveClassesAtExit={made} {QUIET}"]
    subprocess.run(command, check=False, capture_output=True, timeout=DEADLINE_S)
    if made.exists():
        made.rename(archive)


def _java() -> str:
    """Return the version of the Java that Spark starts."""
    java = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else "java"
    reported = subprocess.run([java, "-version"], check=True, capture_output=True, text=True).stderr
    return reported.split('"')[1]
