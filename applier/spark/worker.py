"""What a Python worker of Spark does at the beginning of a task: it shows the kind of task, and is prepared once for each kind.

Temporary files of tasks lie where Spark's own do, whoever makes them: the system's directory may be small, or memory.
"""

import gc
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

NAME: Final = Path("/proc/self/comm")
"""The name of this process in top and ps. Linux only, 15 characters."""

LOCAL_DIRECTORIES: Final = "SPARK_LOCAL_DIRS"
"""Where an executor may write (``spark.local.dir``, or what the cluster says instead), as Spark tells its workers."""

_prepared: Final[set[str]] = set()


def prepare_worker(kind: str) -> None:
    """Name the process after the kind of task, and freeze what its modules have created, so that the garbage collector skips it."""
    # Workers are reused for tasks of all kinds: the name tells an operator, and `make bench`, what one uses its CPU for. Some 20 µs.
    with suppress(OSError):
        NAME.write_text(f"applier {kind}", encoding="ascii")
    if LOCAL_DIRECTORIES in os.environ:
        directories = os.environ[LOCAL_DIRECTORIES].split(",")
        # By process, so that the workers of an executor share several disks.
        tempfile.tempdir = directories[os.getpid() % len(directories)]
    # PySpark's worker calls gc.collect() after each task. Measured: without the freeze, that took three quarters of a small task's CPU.
    if kind not in _prepared:
        _prepared.add(kind)
        gc.collect()
        gc.freeze()
