"""The JVM of a driver that spark-submit has not started: its output goes through a pipe, and lines that would mislead are skipped.

The launcher adds an incubator module to every JVM, and the JVM warns of it before any option or logging configuration is read. Every
line but that one goes to the log (``foreign_output``), also lines of Python workers, whose standard error is the JVM's. Nothing goes to
the standard output, which belongs to the command's result.

A context that is stopped while a job runs makes Spark and its Python workers log errors about one another (broken pipes, missing
blocks). Code that stops one mutes the JVM before: an operator could mistake them for the reason of the stop.
"""

import atexit
import os
import sys
import time
import traceback
from contextlib import suppress
from threading import Event, Thread
from typing import IO, Any, Final

from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from applier.model.errors import ConfigError, Remedy
from applier.spark.foreign_output import QUIET_S, ForeignOutput

NOISE: Final = ("WARNING: Using incubator modules: ",)
REMEDY: Final = Remedy(
    "spark.install-java",
    "The lines above say why. Spark needs Java 17 or newer: set JAVA_HOME to it. [spark.conf] may also ask for too much memory",
)
DRAIN_S: Final = 10.0
"""How long the JVM may take to end at exit; it deletes its temporary files."""

_muted: Final = Event()
_entries: Final = ForeignOutput("spark")


def start_jvm(conf: SparkConf, plain: SparkConf | None = None) -> None:
    """Start the JVM for the contexts of this process, if there is none, and pass its output on. ConfigError if it does not start.

    ``plain``: what it starts with the second time: without what may be damaged (a class archive crashes Java then).
    """
    _muted.clear()
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        # Its own would write to standard error, whatever form the log has.
        server.handle_error = report_server_error  # type: ignore[method-assign, assignment]
    if SparkContext._gateway is not None:  # noqa: SLF001 - a process has one JVM for all of its contexts, and this is where it is kept
        return
    with suppress(PySparkRuntimeError):
        _start(conf)
        return
    # Try once more: a JVM that the kernel killed at its start (short of memory) starts now. A wrong setting fails again.
    try:
        _start(plain or conf)
    except PySparkRuntimeError as error:
        raise ConfigError("Spark does not start: its Java process ended", remedy=REMEDY) from error


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


def report_server_error(_server: object, _request: object, _client_address: object) -> None:
    """Log what failed in PySpark's server for the JVM, which would print its traceback. The end of the JVM is reported by its users."""
    if not isinstance(sys.exception(), EOFError | OSError):
        for line in traceback.format_exc().splitlines(keepends=True):
            _entries.feed(line)


def mute_jvm() -> None:
    """Stop passing output on: a context is being stopped. The output of a JVM that has died is passed on: it may say why."""
    gateway = SparkContext._gateway  # noqa: SLF001 - as above
    process = getattr(gateway, "proc", None)
    if process is not None and process.poll() is None:
        _muted.set()


def drop_dead_jvm() -> None:
    """Drop a JVM that no longer answers, so that the next context starts another; keep one that answers."""
    gateway = SparkContext._gateway  # noqa: SLF001 - see start_jvm
    if gateway is None:
        return
    with suppress(Py4JError, OSError):
        gateway.jvm.System.nanoTime()
        return
    with suppress(AttributeError):  # spark-submit has started it: then it is not our child
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
    """Pass the lines of ``output`` on to the log until its end, without the noise, and without lines of a muted JVM."""
    with output:
        for line in output:
            if not line.startswith(NOISE) and not _muted.is_set():
                _entries.feed(line)
    _entries.flush()


def show_output() -> None:
    """Log what the JVM has said so far: an error that refers to it comes after it."""
    time.sleep(QUIET_S)
    _entries.flush()


def _end(process: Any, forwarder: Thread) -> None:
    """End the JVM (it lives as long as its standard input is open) and pass on its last output."""
    with suppress(OSError):
        process.stdin.close()
    forwarder.join(DRAIN_S)
