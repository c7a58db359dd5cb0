"""The Spark context: one per process, with few log lines, with this interpreter for its Python workers; and its end."""

import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib.resources import as_file, files
from typing import Final

from pyspark import SparkConf, SparkContext

from applier.model.errors import ApplierError, ConfigError, Remedy
from applier.spark import java_options
from applier.spark.class_archive import archive_options
from applier.spark.failure import UNANSWERED
from applier.spark.jvm import drop_dead_jvm, show_output, start_jvm
from applier.spark.python_check import check_executors, check_local_python

LOGGER: Final = logging.getLogger("applier")

DEFAULTS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.python.worker.reuse": "true",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.cleaner.periodicGC.interval": "5min",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.ui.dagGraph.retainedRootRDDs": "50",
    "spark.ui.retainedDeadExecutors": "10",
    "spark.worker.ui.retainedExecutors": "10",
    "spark.rdd.compress": "false",
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.locality.wait": "0s",
    "spark.task.maxFailures": "4",
}
"""The operator's [spark.conf] overrides them. Unix sockets halve the fixed cost of a job (DESIGN.md 4). Spark keeps what a web interface
would show of past jobs in memory, even where there is none: a daemon runs hundreds of thousands, so few are retained."""

SECRET: Final = re.compile(r"secret|password|token|access\.?key", re.IGNORECASE)
"""Names of properties that Spark itself treats as secrets (the default of spark.redaction.regex)."""

LOCAL_DEFAULTS: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
}


def is_submitted() -> bool:
    """Whether spark-submit started this process: then it has chosen the master."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def is_local(master: str) -> bool:
    """Whether the tasks run in processes of this machine that the driver's JVM starts."""
    return master == "local" or master.startswith("local[")


def submitted_master() -> str | None:
    """Return the master that spark-submit has chosen; None if it did not start this process."""
    if not is_submitted():
        return None
    # Connects to the JVM that spark-submit has started; without it, SparkConf knows nothing of the command line.
    SparkContext._ensure_initialized()  # noqa: SLF001 - what SparkContext() itself begins with
    return SparkConf().get("spark.master")


def start_context(app_name: str, master: str, conf: Mapping[str, str], worker_daemon: str = "pyspark.daemon") -> SparkContext:
    """Start Spark. Under spark-submit its master is used, and its ``--conf`` overrides our defaults.

    ``worker_daemon``: the module that Python workers are forked from in local mode, where it is certain to be installed.
    """
    began = time.monotonic()
    try:
        context = _start_context(app_name, master, conf, worker_daemon)
    except UNANSWERED:
        show_output()
        raise
    # Local workers of a Spark of our own have the Python that was checked before.
    if is_submitted() or not is_local(master):
        try:
            check_executors(context)
        except ApplierError:
            end_context(context)
            raise
    LOGGER.info("spark_started", extra={"seconds": round(time.monotonic() - began, 1), "master": context.master})
    return context


def _start_context(app_name: str, master: str, conf: Mapping[str, str], worker_daemon: str) -> SparkContext:
    # PySpark reads the variable only: spark-submit alone would know the property.
    os.environ["PYSPARK_PYTHON"] = conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON") or sys.executable
    if submitted_master() is not None:
        # The driver's JVM runs already.
        return SparkContext.getOrCreate(_with_java_options(_configured(SparkConf(), app_name, DEFAULTS, conf), "executor"))
    if is_local(master):
        check_local_python(os.environ["PYSPARK_PYTHON"])
    local = {**DEFAULTS, **LOCAL_DEFAULTS, "spark.python.daemon.module": worker_daemon}
    defaults = local if master.startswith("local") else DEFAULTS
    spark_conf = _with_java_options(_configured(SparkConf(), app_name, defaults, conf).setMaster(master), "executor")
    environment = [os.environ.get(name, "") for name in java_options.ENVIRONMENT]
    _with_java_options(spark_conf, "driver", environment)
    with as_file(files("applier.spark") / "log4j2.properties") as log4j:
        options = f"-Dlog4j2.configurationFile=file:{log4j} {spark_conf.get('spark.driver.extraJavaOptions', '')}"
        plain = _without_secrets(spark_conf.set("spark.driver.extraJavaOptions", options))
        archive = archive_options(" ".join((options, *environment)))
        start_jvm(_without_secrets(spark_conf).set("spark.driver.extraJavaOptions", f"{archive} {options}".strip()), plain)
        return SparkContext.getOrCreate(spark_conf)


def end_context(context: SparkContext) -> None:
    """Stop a context whatever its state. If its JVM has died, the next context starts another."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # PySpark warns of a JVM that does not answer
        with suppress(*UNANSWERED):
            context.stop()
        # Once more: where the JVM's death has interrupted the first call, PySpark still takes the context for the active one.
        context.stop()
    drop_dead_jvm()


def _without_secrets(spark_conf: SparkConf) -> SparkConf:
    """Return what may be on the JVM's command line, where every user of the machine can read it; the context gets the rest later."""
    shown = SparkConf(loadDefaults=False)
    for name, value in spark_conf.getAll():
        if not SECRET.search(name):
            shown.set(name, value)
    return shown


def _with_java_options(spark_conf: SparkConf, process: str, elsewhere: Iterable[str] = ()) -> SparkConf:
    """Put our options before the options that the operator gives to JVMs of ``process`` (driver or executor)."""
    given = spark_conf.get(f"spark.{process}.extraJavaOptions", "") or ""
    administrators = spark_conf.get(f"spark.{process}.defaultJavaOptions", "") or ""
    return spark_conf.set(f"spark.{process}.extraJavaOptions", java_options.with_defaults(given, [administrators, *elsewhere]))


def _configured(spark_conf: SparkConf, app_name: str, defaults: Mapping[str, str], conf: Mapping[str, str]) -> SparkConf:
    for name, value in conf.items():
        spark_conf.set(name, value)
    for name, value in defaults.items():
        spark_conf.setIfMissing(name, value)
    return spark_conf.setAppName(app_name)


# --- speculation -----------------------------------------------------------------------------------------------------
# Spark's speculation: it starts a copy of a task that takes long, beside the first one. Not with ``consistency = "row"``.
#
# The fence stops a copy that is late. While the window stays, a copy only waits for the locks of the task that it repeats, and holds its
# own against it: what was meant to help makes the write longer, up to a deadlock.

PROPERTY: Final = "spark.speculation"


def refuse_speculation(properties: Mapping[str, str]) -> None:
    """Raise ConfigError if tasks would be copied."""
    if properties.get(PROPERTY, "").strip().lower() == "true":
        raise ConfigError(
            'spark.speculation repeats tasks that write, which sink.consistency = "row" does not allow',
            remedy=Remedy(
                "spark.remove-speculation", 'Remove "spark.speculation" from [spark.conf], from spark-submit and from spark-defaults.conf'
            ),
            property=PROPERTY,
        )


def refuse_started_speculation(context: SparkContext) -> None:
    """Refuse, and end, a Spark that was started with it: only then is known what spark-defaults.conf says."""
    try:
        refuse_speculation(dict(context.getConf().getAll()))
    except ConfigError:
        end_context(context)
        raise
