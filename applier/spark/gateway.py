"""The JVM of a driver that no spark-submit has started: its output is in our hands, so that its chatter does not reach the operator.

The launcher adds an incubator module to every JVM, and the JVM warns of it before any option or logging configuration is read. So
its output goes through a pipe, and every line but that one is passed on to the standard error of the moment: what a display shows
above itself, and never the standard output, which belongs to the result.

A context that is stopped while a job runs makes Spark and its Python workers complain of one another (broken pipes, blocks that do
not exist any more). Whoever stops one hushes the JVM before: an operator must not take that for the reason of the stop.
"""

import atexit
import os
import sys
from contextlib import suppress
from threading import Event, Thread
from typing import IO, Any, Final

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from applier.model.errors import ConfigError

CHATTER: Final = ("WARNING: Using incubator modules: ",)
REMEDY: Final = (
    "The lines above say why. Spark needs a Java runtime 17 or newer: set JAVA_HOME to it; [spark.conf] may ask for too much memory"
)
DRAIN_S: Final = 10.0
"""How long the JVM may take to end at exit; it deletes its temporary files."""

_hushed: Final = Event()


def start_jvm(conf: SparkConf) -> None:
    """Start the JVM for the contexts of this process, if it has none; hear it. ConfigError if it does not come up: it has said why."""
    _hushed.clear()
    if SparkContext._gateway is not None:  # noqa: SLF001 - a process has one JVM for all of its contexts, and this is where it is kept
        return
    with suppress(PySparkRuntimeError):
        _start(conf)
        return
    # Once more: what was killed while it started (the kernel does that, short of memory) comes up now, and what is wrong fails again.
    try:
        _start(conf)
    except PySparkRuntimeError as error:
        raise ConfigError("spark does not start: its java process has ended", remedy=REMEDY) from error


def _start(conf: SparkConf) -> None:
    read_end, write_end = os.pipe()
    output = os.fdopen(read_end, encoding="utf-8", errors="replace")
    forwarder = Thread(target=forward, args=(output,), name="applier-jvm-output", daemon=True)
    forwarder.start()
    try:
        gateway = _launch(conf, write_end)
    except PySparkRuntimeError:
        forwarder.join(DRAIN_S)
        raise
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - what SparkContext(gateway=…) itself begins with
    atexit.register(_end, gateway.proc, forwarder)


def hush_jvm() -> None:
    """Pass nothing on from now on: a context is being stopped. A JVM that has died is heard to its last word, which may say why."""
    gateway = SparkContext._gateway  # noqa: SLF001 - as above
    process = getattr(gateway, "proc", None)
    if process is not None and process.poll() is None:
        _hushed.set()


def drop_dead_jvm() -> None:
    """Forget a JVM that this process has started and that does not answer any more; one that answers is kept."""
    gateway = SparkContext._gateway  # noqa: SLF001 - see start_jvm
    if gateway is None:
        return
    with suppress(Py4JError, OSError):
        gateway.jvm.System.nanoTime()
        return
    with suppress(AttributeError):  # spark-submit's is not our child
        gateway.proc.kill()
        gateway.proc.wait()
    with suppress(Py4JError, OSError):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - see start_jvm


def _launch(conf: SparkConf, output: int) -> JavaGateway:
    try:
        return launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
    finally:
        os.close(output)  # the pipe ends with the JVM


def forward(output: IO[str]) -> None:
    """Pass the lines of ``output`` on to standard error until its end, without the chatter, and without those of a hushed JVM."""
    with output:
        for line in output:
            if not line.startswith(CHATTER) and not _hushed.is_set():
                with suppress(OSError, ValueError):  # nobody reads standard error any more: the JVM must not wait for that
                    sys.stderr.write(line)
                    sys.stderr.flush()


def _end(process: Any, forwarder: Thread) -> None:
    """End the JVM (it lives as long as its standard input) and hear what it says at its end."""
    with suppress(OSError):
        process.stdin.close()
    forwarder.join(DRAIN_S)
