"""Compares the Python of Spark's workers with the driver's before any range is read, so that a wrong PYSPARK_PYTHON is named at once.

Without this, each worker that cannot start costs Spark several attempts of a job, with hundreds of lines of Java stacks.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JError
from pyspark import SparkContext

from applier import __version__
from applier.model.errors import ApplierError, ConfigError, Remedy
from applier.spark.failure import job_failed

NEEDED: Final = ("confluent_kafka", "cramjam", "lz4", "msgspec", "pymysql", "sqlalchemy")
"""What the modules of the tasks import, except PySpark, which Spark itself puts on the path."""
PROBE: Final = """
import importlib.util, json, sys
missing = [name for name in sys.argv[1:] if importlib.util.find_spec(name) is None]
try:
    from applier import __version__ as version
except ImportError:
    version, missing = "", ["applier"] + missing
print(json.dumps({"python": "%d.%d" % sys.version_info[:2], "applier": version, "missing": missing}))
"""
"""Written for every Python 3: the wrong one may be old."""
PROBE_S: Final = 20.0
MAX_TASKS: Final = 64
VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
REFUSED: Final = ("PYTHON_VERSION_MISMATCH", "ModuleNotFoundError", "No module named", "Cannot run program")
"""How Spark reports a worker that could not begin."""


@dataclass(frozen=True, slots=True)
class WorkerPython:
    """The Python of one worker, and why tasks cannot run in it ('': they can)."""

    host: str
    path: str
    problem: str


def probe(path: str, modules: Sequence[str] = ()) -> WorkerPython:
    """Ask a Python of this machine what it has, also in the directories ``modules``. Takes a tenth of a second."""
    environment = os.environ | ({"PYTHONPATH": os.pathsep.join(modules)} if modules else {})
    host = socket.gethostname()
    try:
        done = subprocess.run(  # noqa: S603 - the program is the operator's, and its arguments are ours
            [path, "-c", PROBE, *NEEDED],
            capture_output=True,
            text=True,
            timeout=PROBE_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
        return WorkerPython(host, path, _problem(json.loads(done.stdout)))
    except OSError as error:
        return WorkerPython(host, path, f"it cannot be started: {error.strerror}")
    except subprocess.TimeoutExpired:
        return WorkerPython(host, path, f"it has not answered in {PROBE_S:.0f} s")
    except ValueError:
        return WorkerPython(host, path, f"it cannot run Python 3 code: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")


def _problem(found: dict[str, object]) -> str:
    if found["python"] != VERSION:
        return f"it is Python {found['python']}, and the driver has Python {VERSION}"
    if found["missing"]:
        return f"it has no {', '.join(map(str, found['missing'] if isinstance(found['missing'], list) else []))}"
    # Plans and errors are pickled between them.
    return "" if found["applier"] == __version__ else f"it has applier {found['applier']}, and the driver has {__version__}"


def check_local_python(path: str) -> None:
    """Check the Python of local workers before Spark starts. ConfigError names the variable."""
    # Its own interpreter has everything: the usual case costs nothing.
    if path != sys.executable and (found := probe(path)).problem:
        raise _refusal(found)


def check_executors(context: SparkContext) -> None:
    """Check the Python of executors in a first tiny job. ConfigError names the variable, another error is that of the job."""
    tasks = min(MAX_TASKS, context.defaultParallelism)
    try:
        answers = context.parallelize(range(tasks), tasks).mapPartitions(_probed).collect()
    except Py4JError as error:
        raise _job_refused(job_failed(error)) from error
    for found in answers:
        if found.problem:
            raise _refusal(found)


def _probed(elements: Iterable[int]) -> Iterator[WorkerPython]:
    for _ in elements:
        yield probe(sys.executable, sys.path)  # the path with what spark-submit has shipped


def _job_refused(failed: ApplierError) -> ApplierError:
    cause = str(failed.facts.get("cause", ""))
    return _refusal(WorkerPython("", "", cause)) if any(words in cause for words in REFUSED) else failed


def _refusal(found: WorkerPython) -> ConfigError:
    return ConfigError(
        "the Python of Spark's workers cannot run applier",
        remedy=(
            Remedy(
                "spark.set-pyspark-python",
                f"Set the environment variable PYSPARK_PYTHON (or spark.pyspark.python under [spark.conf]) to a Python {VERSION} "
                f"that has applier {__version__}; this command runs in {sys.executable}. Without either, workers use that one",
            )
        ),
        python=found.path,
        host=found.host,
        cause=found.problem,
    )
