"""What Spark's failures mean: the JVM's exceptions and its text become our own errors, which say what may be done.

A job that Spark aborts may be repeated. A session that has ended cannot run another job: a new one is started (``on_demand``).
"""

import re
from collections import deque
from typing import Final

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkRuntimeError

from applier.model.errors import ApplierError, ConfigError, JobAborted, Remedy, SparkRestartedTooOften, SparkSessionLost

UNANSWERED: Final = (Py4JError, OSError)
"""How a call to a JVM fails; a dead one refuses the connection, which py4j passes on unchanged."""

STOPPED: Final = ("stopped SparkContext", "SparkContext was shut down")
REFUSED_SETTING: Final = "SparkIllegalArgumentException"
NAMED_TASK: Final = re.compile(r"Task (\d+) in stage \S+ failed \d+ times")
NO_SPACE: Final = ("No space left on device", "Disk quota exceeded")

SPACE_REMEDY: Final = Remedy(
    "spark.free-local-dir-space", "Free space in spark.local.dir on each machine, or set a directory with more space under [spark.conf]"
)
SESSION_REMEDY: Final = Remedy(
    "spark.raise-driver-memory",
    "See the output above and the system log. If Java ran out of memory, raise spark.driver.memory under [spark.conf]",
)
PREPARED_AGAIN: Final = Remedy(
    "spark.see-why-spark-ended", "The applier prepares them again automatically. If this repeats, the log above says why Spark ended"
)
EXECUTORS_REMEDY: Final = Remedy("spark.see-driver-and-executor-logs", "See the logs of the driver and of the executors")

MAX_CAUSE: Final = 500
"""Characters of Spark's text that an error quotes, for each of two lines: a stack trace would hide the message."""


def is_unanswered(error: BaseException) -> bool:
    """Whether the JVM has failed, or does not answer."""
    # Where the JVM ends before its results are fetched, PySpark fails while it closes a connection that it never had.
    return isinstance(error, UNANSWERED) or isinstance(error.__context__, PySparkRuntimeError)


def job_failed(error: Exception) -> ApplierError:
    """Return our error for a job that failed. SparkSessionLost if no other job can run."""
    text = _text(error)
    if not isinstance(error, Py4JError) or isinstance(error, Py4JNetworkError) or any(words in text for words in STOPPED):
        return SparkSessionLost("the Spark session ended during a job", remedy=SESSION_REMEDY, cause=_cause(text))
    if any(words in text for words in NO_SPACE):
        return JobAborted("Spark job aborted: no space left on its disk", remedy=SPACE_REMEDY, cause=_cause(text))
    return JobAborted("Spark job aborted", remedy=EXECUTORS_REMEDY, cause=_cause(text))


def start_failed(error: Py4JError | OSError) -> ApplierError:
    """Return our error for a context that does not start. ConfigError if Spark refuses a setting: a retry cannot help."""
    # A JVM that ends itself, because it can write to no directory of its own, only closes the connection.
    if isinstance(error, OSError | Py4JNetworkError):
        remedy = Remedy(
            "spark.see-java-output",
            "Its Java process has ended: see its output above. Most often it cannot write to spark.local.dir, or lacks memory",
        )
    elif REFUSED_SETTING in _text(error):
        return ConfigError(
            "Spark refuses a setting", remedy=Remedy("spark.change-spark-conf", "Change it under [spark.conf]"), cause=_cause(_text(error))
        )
    else:
        remedy = Remedy("spark.check-spark-master", "Check spark.master, and whether the cluster runs and has free resources")
    return SparkSessionLost("Spark does not start", remedy=remedy, cause=_cause(_text(error)))


def named_task(error: Exception) -> int | None:
    """Return the number of the task for which Spark aborted a job, if it names one: the number of its range in the job."""
    named = NAMED_TASK.search(_text(error))
    return int(named[1]) if named else None


def ranges_lost() -> JobAborted:
    """Return the error of segments whose ranges were cached by a Spark session that is gone."""
    return JobAborted("the cached ranges were lost with the previous Spark session", remedy=PREPARED_AGAIN)


def segments_lost() -> JobAborted:
    """Return the error of prepared segments that were released, or that another Spark session has prepared."""
    return JobAborted("the prepared segments are gone", remedy=PREPARED_AGAIN)


def _text(error: Exception) -> str:
    """Return the text of the Java exception: that of Py4JJavaError repeats it after py4j's own words and the whole stack."""
    return str(getattr(error, "java_exception", error))


def _cause(text: str) -> str:
    """Return what Spark says in its first line and, where a Python task raised, the last line of the traceback: what was raised."""
    stripped = (line.strip() for line in text.partition("\n\tat ")[0].splitlines())
    lines = [line for line in stripped if line and not line.startswith("SQLSTATE")]
    first, last = (lines[0][:MAX_CAUSE], lines[-1][:MAX_CAUSE]) if lines else ("", "")
    return first if first == last else f"{first} … {last}"


# --- restart limit ---------------------------------------------------------------------------------------------------


MAX_LOSSES: Final = 5
PERIOD_S: Final = 600.0
"""More losses than that in this time have a cause that a restart does not remove (most often: too little memory)."""


class RestartLimit:
    """Remembers when Spark was lost."""

    def __init__(self) -> None:
        self._at: deque[float] = deque(maxlen=MAX_LOSSES + 1)

    def add(self, now: float) -> None:
        """Note a loss at ``now`` (seconds of a monotonic clock)."""
        self._at.append(now)

    def check(self, now: float) -> None:
        """Raise SparkRestartedTooOften if Spark was lost too often in the last PERIOD_S."""
        recent = [at for at in self._at if now - at < PERIOD_S]
        if len(recent) > MAX_LOSSES:
            raise SparkRestartedTooOften(
                "Spark restarted too often",
                remedy=Remedy(
                    "spark.stop-restarting",
                    "See the output above and the system log. If Java ran out of memory, raise spark.driver.memory under [spark.conf]",
                ),
                losses=len(recent),
                within_s=round(now - recent[0]),
            )
