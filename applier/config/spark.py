"""``[spark]``: where the tasks run."""

import os
import re
from typing import Annotated, Final

from pydantic import Field, field_validator

from applier.config.section import Properties, Section
from applier.config.value import (
    refuse,
)

LOCAL_THREADS: Final = re.compile(r"local(?:\[(\*|\d+)(?:,\s*\d+)?\])?$")
CLUSTER_BUCKETS: Final = 16
"""The cores of a cluster are unknown before Spark starts. This is enough: one writer is the ceiling of a replica."""


class SparkConfig(Section):
    """The master and Spark's properties. ``master`` is ignored under spark-submit."""

    master: Annotated[str, Field(min_length=1)] = "local[*]"
    conf: Properties = Field(default_factory=dict, repr=False)

    @field_validator("conf")
    @classmethod
    def _refuse_master(cls, properties: dict[str, str]) -> dict[str, str]:
        if "spark.master" in properties:
            raise refuse("cannot set 'spark.master'", "Set master under [spark], or give spark-submit --master")
        return properties

    @property
    def buckets(self) -> int:
        """How many tasks render a segment: spark.default.parallelism, else one per core where the cores are known."""
        stated = self.conf.get("spark.default.parallelism", "")
        if stated.isdecimal() and int(stated):
            return int(stated)
        # local, local[N], local[*] and local[N, retries]: the forms of Spark's "Master URLs".
        threads = LOCAL_THREADS.match(self.master)
        if threads is None:
            return CLUSTER_BUCKETS
        return (os.cpu_count() or 1) if threads[1] == "*" else int(threads[1] or 1)
