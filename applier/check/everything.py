"""All checks together: everything for ``applier check``, and what takes no time for the beginning of a run."""

from collections.abc import Iterator
from typing import Final

from applier.check.examination import examine
from applier.check.finding import CheckFinding
from applier.check.machine import examine_machine
from applier.check.shared_facts import SharedFacts
from applier.check.sink import examine_sink
from applier.check.source import examine_source, name_of_source
from applier.check.spark import examine_spark, spark_properties
from applier.config import Config

PATIENCE_S: Final = 10.0
"""How long one request to Kafka may take."""
LONGEST_S: Final = 60.0
"""Beyond the wait for resolved events."""


def examine_everything(config: Config, *, wait_s: float) -> Iterator[CheckFinding]:
    """Yield all findings, group by group."""
    shared = SharedFacts()
    groups = {
        name_of_source(config): lambda: examine_source(config, shared, patience_s=PATIENCE_S, wait_s=wait_s),
        "sink": lambda: examine_sink(config, shared, patience_s=wait_s + 3 * PATIENCE_S),
        "Spark": lambda: examine_spark(config),
        "machine": lambda: examine_machine(config, spark_properties(config)),
    }
    return examine(groups, within_s=wait_s + LONGEST_S)


def examine_quickly(config: Config, *, within_s: float) -> Iterator[CheckFinding]:
    """Yield the findings that a second is enough for. What a run examines itself before it starts Spark is not repeated."""
    shared = SharedFacts()
    groups = {
        name_of_source(config): lambda: examine_source(config, shared, patience_s=within_s),
        "sink": lambda: examine_sink(config, shared),
        "Spark": lambda: examine_spark(config),
        "machine": lambda: examine_machine(config, spark_properties(config)),
    }
    return examine(groups, within_s=within_s)
