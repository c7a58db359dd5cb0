"""Options of Spark's JVMs: ours are defaults, and an operator's replace them.

The JVM carries bytes that Python has made; it computes nothing. So it needs neither the optimising compiler nor a collector that keeps
pauses short. For 1,000,000 rows those two took 20 of 36 µs of its CPU per row (DESIGN.md 4). Blocks in transit die young: a larger young
generation only touches more memory.

No default is added to an operator's option of the same kind: a JVM with two collectors does not start.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_COLLECTORS: Final = r"-XX:[+-]Use(?:Serial|Parallel|ParallelOld|ConcMarkSweep|G1|Z|Shenandoah|Epsilon)GC"


class _Default(NamedTuple):
    option: str
    replaced_by: re.Pattern[str]


DEFAULTS: Final = (
    _Default("-XX:TieredStopAtLevel=1", re.compile(r"-XX:(?:TieredStopAtLevel=|[+-]TieredCompilation|CompilationMode=)|-Xint|-Xcomp")),
    _Default("-XX:+UseParallelGC", re.compile(_COLLECTORS)),
    # Also replaced with the collector: it was measured with ours only. It fits every heap with which Spark starts (450 MB at least).
    _Default("-Xmn256m", re.compile(r"-Xmn|-XX:(?:Max)?NewSize=|-XX:NewRatio=|" + _COLLECTORS)),
)

ENVIRONMENT: Final = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
"""Variables whose options the driver's JVM takes too: the first from Spark's launcher, the others from Java itself."""


def with_defaults(given: str, elsewhere: Iterable[str] = ()) -> str:
    """Return our options and then the options of ``given``, without ours that one of ``given`` or ``elsewhere`` replaces."""
    options = [option.strip("\"'") for text in (given, *elsewhere) for option in text.split()]
    ours = [default.option for default in DEFAULTS if not any(map(default.replaced_by.match, options))]
    return " ".join((*ours, given)).strip()
