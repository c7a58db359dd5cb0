"""``python -m applier.spark.make_class_archive`` makes the archive of ``class_archive``, once for each Java and Spark.

It takes about ten seconds of CPU, and 120 MB of disk. Only this command makes it: a run should end when its work is done.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from applier.spark.class_archive import QUIET, archive_path
from applier.spark.session import end_context, start_context

DUMP_S: Final = 300.0
"""How long Java may take to write the archive when it ends."""


def make_archive(path: Path) -> bool:
    """Run what a catch-up runs in a Spark of its own, and keep the classes that it has loaded; False if Java has written no archive."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = path.with_suffix(f".{os.getpid()}")
    # Not in the main thread, whose handler of Ctrl-C a context replaces.
    with ThreadPoolExecutor(1) as pool:
        code = pool.submit(_run_spark, f"-XX:ArchiveClassesAtExit={made} {QUIET}").result()
    if code == 0 and made.exists():
        # Only a whole one: the JVM that has written it has ended well. Java checks little of an archive, and a damaged one crashes it.
        made.replace(path)
        return True
    made.unlink(missing_ok=True)
    return False


def _run_spark(options: str) -> int:
    """Run some jobs; return the exit code of the JVM."""
    context = start_context("applier class archive", "local[2]", {"spark.driver.extraJavaOptions": options})
    gateway: Any = context._gateway  # noqa: SLF001 - PySpark gives it by no other name
    dealt = context.parallelize([(0, b"a"), (1, b"b")], 2).partitionBy(3, int)
    context.runJob(dealt, list, [2])
    dealt.union(dealt).coalesce(1).mapPartitions(list).collect()
    end_context(context)
    gateway.proc.stdin.close()
    return int(gateway.proc.wait(DUMP_S))


def main() -> None:
    """Make the archive, and say where it is; exit code 1 if there is none."""
    path = archive_path()
    if path is None or not make_archive(path):
        sys.exit("no class archive was made: Java has not written it, or there is no directory for it (set XDG_CACHE_HOME)")
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
