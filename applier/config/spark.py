"""``[spark]``: where the tasks run."""

import re
from typing import Annotated, Final

from pydantic import Field, field_validator

from applier.config.cores import usable_cores
from applier.config.section import Properties, Section
from applier.config.value import (
    refuse,
)
from applier.model.remedy import Remedy

LOCAL_THREADS: Final = re.compile(r"local(?:\[(\*|\d+)(,\s*\d+)?\])?$")
"""local, local[N], local[*] and local[N, retries]: the forms of Spark's "Master URLs"."""
CLUSTER_WRITERS: Final = 4
CLUSTER_BUCKETS: Final = 16
"""The cores of a cluster are unknown before Spark starts. This is enough: one writer is the ceiling of a replica."""


class SparkConfig(Section):
    """The master and Spark's properties. ``master`` is ignored under spark-submit."""

    master: Annotated[str, Field(min_length=1)] = "local[*]"
    conf: Properties = Field(default_factory=dict, repr=False)
    """Any property of Spark."""

    @field_validator("conf")
    @classmethod
    def _refuse_master(cls, properties: dict[str, str]) -> dict[str, str]:
        if "spark.master" in properties:
            raise refuse(
                "cannot set 'spark.master'", Remedy("config.set-spark-master", "Set master under [spark], or give spark-submit --master")
            )
        return properties

    @property
    def buckets(self) -> int:
        """How many tasks render a segment: spark.default.parallelism, else one per core where the cores are known."""
        stated = self.conf.get("spark.default.parallelism", "")
        if stated.isdecimal() and int(stated):
            return int(stated)
        return self._local_cores or CLUSTER_BUCKETS

    @property
    def writers(self) -> int:
        """How many tasks write rows ahead of the watermark, unless the configuration says it: one per core, 4 on a cluster."""
        return self._local_cores or CLUSTER_WRITERS

    def session_master(self, writers: int = 1) -> str:
        """Return the master that Spark gets: a local one of N cores with 2 N slots, and one for each writer.

        Segments are read, prepared and written at the same time, N tasks each for the first two. A writing task mostly waits for the
        database. It must not wait for a slot too, because nothing else writes.
        """
        threads = LOCAL_THREADS.match(self.master)
        return f"local[{2 * self._local_cores + writers}{threads[2] or ''}]" if threads else self.master

    @property
    def session_conf(self) -> Properties:
        """The properties that Spark gets: locally with the number of tasks of one job, which Spark would take from its slots."""
        cores = self._local_cores
        return {"spark.default.parallelism": str(cores), **self.conf} if cores else self.conf

    @property
    def _local_cores(self) -> int:
        """The N of local[N]; 0 on a cluster."""
        threads = LOCAL_THREADS.match(self.master)
        if threads is None:
            return 0
        return usable_cores() if threads[1] == "*" else max(1, int(threads[1] or 1))
