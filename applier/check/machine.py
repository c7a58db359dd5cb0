"""Examines this machine: the driver's memory, the disk under ``spark.local.dir``, Java, a Python for Spark's workers."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from pyspark import SparkConf

from applier.config import Config
from applier.config.section import Consistency
from applier.config.spark import usable_cores
from applier.model.errors import ConfigError, Remedy
from applier.model.finding import CheckFinding, of_error, ok, problem, warning
from applier.spark.python_check import VERSION, check_local_python
from applier.spark.session import is_submitted, refuse_speculation

MIB: Final = 1024**2
JAVA_BESIDE_HEAP: Final = 300 * MIB
WORKER: Final = 110 * MIB
"""What a Python worker takes at the most; there are 2 N + 1 of them on N cores (docs/sizing.md)."""
LEAST_FREE: Final = 32 * MIB
GROUP_LIMITS: Final = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_UNITS: Final = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_SIZE: Final = re.compile(r"(\d+)\s*(?:([kmgtp])b?|(b))?", re.IGNORECASE)


def examine_machine(config: Config, spark_conf: Mapping[str, str]) -> Iterator[CheckFinding]:
    """Examine memory and disk. ``spark_conf``: the properties as Spark will have them (spark-submit may have given some)."""
    is_local = config.spark.master.startswith("local")
    yield memory_finding(spark_conf.get("spark.driver.memory", "1g"), machine_memory(), is_local=is_local)
    yield from disk_findings(local_dirs(spark_conf), needed=2 * config.run.memory if is_local else 0)


def memory_finding(heap: str, machine: int | None, *, is_local: bool, cores: int | None = None) -> CheckFinding:
    """Compare what the driver may take with what the machine, or its container, has."""
    check, heap_bytes = "memory", size_of(heap)
    if heap_bytes is None:
        return problem(
            check,
            f"spark.driver.memory is not a size: {heap!r}",
            Remedy("check.write-memory-as-spark", 'Write it as Spark does, for instance "1g"'),
        )
    if machine is None:
        return warning(
            check,
            "the memory of this machine is not known",
            Remedy("check.give-machine-more-memory", f"Make sure that it has more than {_text(heap_bytes + JAVA_BESIDE_HEAP)}"),
        )
    # On a cluster the workers run elsewhere.
    workers = WORKER * (2 * (usable_cores() if cores is None else cores) + 1) if is_local else 0
    wanted = heap_bytes + JAVA_BESIDE_HEAP + workers
    detail = f"Spark's Java and Python may take {_text(wanted)}; this machine has {_text(machine)}"
    # Never an error: Java takes its heap as it needs it, and a small feed needs little.
    if wanted > machine:
        return warning(
            check,
            detail,
            Remedy("check.give-memory-or-shrink-driver", "Give it more memory, or set a smaller spark.driver.memory under [spark.conf]"),
        )
    return ok(check, detail)


def machine_memory(limits: Sequence[Path] = GROUP_LIMITS) -> int | None:
    """Return the bytes of memory that this process can have: the machine's, or its container's; None: not known."""
    found: list[int] = []
    with suppress(OSError, ValueError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for path in limits:
        with suppress(OSError, ValueError):  # "max": no limit
            found.append(int(path.read_text(encoding="ascii")))
    return min(found, default=None)


def size_of(text: str) -> int | None:
    """Return the bytes of a size as Spark and Java write it: a number alone are mebibytes; None: it is not a size."""
    match = _SIZE.fullmatch(text.strip())
    return None if match is None else int(match[1]) * _UNITS[(match[2] or match[3] or "m").lower()]


def local_dirs(spark_conf: Mapping[str, str]) -> list[Path]:
    """Return where Spark keeps its files. The environment counts before the property, as in Spark."""
    stated = os.environ.get("SPARK_LOCAL_DIRS") or spark_conf.get("spark.local.dir") or tempfile.gettempdir()
    return [Path(part.strip()) for part in stated.split(",") if part.strip()]


def disk_findings(directories: Sequence[Path], *, needed: int) -> Iterator[CheckFinding]:
    """Examine the directories. Spark uses the directories that it can write to: one is enough."""
    check = "disk"
    free, refused = {}, []
    for directory in directories:
        try:
            free[directory] = _free_bytes(directory)
        except OSError as error:
            refused.append(f"{directory}: {error.strerror or error}")
    remedy = Remedy("check.set-writable-local-dir", 'Set "spark.local.dir" under [spark.conf] to a directory that the applier may write to')
    if not free:
        yield problem(check, f"Spark cannot write its files: {'; '.join(refused)}", remedy)
        return
    if refused:
        yield warning(check, f"Spark cannot use all of its directories: {'; '.join(refused)}", remedy)
    total, places = sum(free.values()), ", ".join(map(str, free))
    detail = f"{_text(total)} free under spark.local.dir ({places})"
    if total < LEAST_FREE:
        yield problem(
            check,
            detail,
            Remedy(
                "check.free-local-dir-space",
                f'Free some space, or set another "spark.local.dir". Twice run.memory is enough: {_text(needed)}',
            ),
        )
    elif total < needed:
        yield warning(
            check,
            f"{detail}; rows that wait may take {_text(needed)}, twice run.memory",
            Remedy("check.free-space-or-lower-memory", "Free some space, or lower run.memory"),
        )
    else:
        yield ok(check, detail)


def _free_bytes(directory: Path) -> int:
    """Return the free bytes where Spark would make its files; OSError if it cannot. Spark makes a directory that is missing."""
    place = directory.absolute()
    while not os.path.lexists(place) and place != place.parent:
        place = place.parent
    if not place.is_dir():
        raise NotADirectoryError(0, f"{place} is not a directory")
    if not os.access(place, os.W_OK | os.X_OK):
        raise PermissionError(0, f"{place} is not writable")
    return shutil.disk_usage(place).free


def _text(size: int) -> str:
    return f"{size / 1024**3:.1f} GiB" if size >= 1024**3 else f"{size / MIB:.0f} MiB"


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
        done, ended_by = _output(["bash", "-c", JAVA_SCRIPT], {**inherited, "SPARK_HOME": home})
    except (OSError, subprocess.TimeoutExpired) as error:
        return warning(check, f"its version is not known: {error}", JAVA_REMEDY)
    version = _VERSION.search(done)
    if version is None and ended_by:
        # As a machine without memory kills it: it is there, and Spark tries it again.
        return warning(check, f"its version is not known: signal {ended_by} ended it", JAVA_REMEDY)
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


def _output(command: list[str], environment: Mapping[str, str]) -> tuple[str, int]:
    """Return what a command printed, and the signal that ended it, 0 if none did."""
    done = subprocess.run(  # noqa: S603 - the operator's own Java and Python
        command, env=dict(environment), capture_output=True, text=True, errors="replace", timeout=PATIENCE_S, check=False
    )
    return done.stdout + done.stderr, max(0, -done.returncode)
