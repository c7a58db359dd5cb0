"""Spark's Python daemon with the tasks' modules: every worker is forked from it, so they import nothing, and share the memory.

``python -m applier.run.worker_daemon`` is what the JVM starts instead of ``pyspark.daemon`` (``spark.python.daemon.module``), only where
this package is certain to be installed: in local mode. On a cluster Spark's own daemon runs, and each worker imports for itself.

A process may be forked as long as it has one thread and holds no connection. The modules make neither: librdkafka starts its threads
with the first client, and a session of the database is opened by the task that needs one.
"""

import gc
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from applier.sinks.registry import task_modules

MODULES: Final = (
    "pyspark.worker",
    "applier.spark.runner",
    "applier.sources.formats",
    "applier.sources.kafka.reader",
)
"""The modules that tasks use, and no more: the sinks themselves (SQLAlchemy, migrations) would be twice the memory."""


def main() -> None:
    """Import the modules, then serve Spark until it closes the standard input."""
    use_compiled_pyspark(sys.path)
    for name in (*MODULES, *task_modules()):
        importlib.import_module(name)
    gc.collect()
    # What was imported is neither searched for garbage nor written to, so that the workers continue sharing it.
    gc.freeze()
    daemon: Any = importlib.import_module("pyspark.daemon")
    daemon.worker = ending_quietly(daemon.worker)
    daemon.manager()


def ending_quietly(worker: Callable[[Any, bool], int]) -> Callable[[Any, bool], int]:
    """Return PySpark's worker without the traceback that it prints when the JVM has closed its connection.

    The JVM does so with each worker that had nothing to do for a minute, and with all of them at the end of a run.
    """

    def run(connection: Any, authenticated: bool) -> int:  # noqa: FBT001 - PySpark's signature
        try:
            return worker(connection, authenticated)
        except (BrokenPipeError, ConnectionResetError):
            return 1

    return run


def use_compiled_pyspark(path: list[str]) -> None:
    """Take PySpark's zip files from ``path`` where they are in an installed PySpark: they hold the same modules, not compiled.

    Spark puts them in front. To compile PySpark takes 0.8 s of CPU at each start.
    """
    for entry in path[:]:
        package = next((parent for parent in Path(entry).parents if parent.name == "pyspark"), None)
        if entry.endswith(".zip") and package is not None and str(package.parent) in path:
            path.remove(entry)


if __name__ == "__main__":
    main()
