"""Spark's speculation: it starts a copy of a task that takes long, beside the first one. Not with ``consistency = "row"``.

The fence stops a copy that is late. While the window stays, a copy only waits for the locks of the task that it repeats, and holds its own
against it: what was meant to help makes the write longer, up to a deadlock.
"""

from collections.abc import Mapping
from typing import Final

from pyspark import SparkContext

from applier.model.errors import ConfigError
from applier.spark.session import end_context

PROPERTY: Final = "spark.speculation"


def refuse_speculation(properties: Mapping[str, str]) -> None:
    """Raise ConfigError if tasks would be copied."""
    if properties.get(PROPERTY, "").strip().lower() == "true":
        raise ConfigError(
            'spark.speculation repeats tasks that write, which sink.consistency = "row" does not allow',
            remedy='Remove "spark.speculation" from [spark.conf], from spark-submit and from spark-defaults.conf',
            property=PROPERTY,
        )


def refuse_started_speculation(context: SparkContext) -> None:
    """Refuse, and end, a Spark that was started with it: only then is known what spark-defaults.conf says."""
    try:
        refuse_speculation(dict(context.getConf().getAll()))
    except ConfigError:
        end_context(context)
        raise
