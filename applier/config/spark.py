"""``[spark]``: where the tasks run, and how many cores this process may use."""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field, field_validator

from applier.config.section import Properties, Section
from applier.config.value import (
    refuse,
)
from applier.model.errors import Remedy

CONTROL_GROUPS: Final = Path("/sys/fs/cgroup")
OWN_GROUP: Final = Path("/proc/self/cgroup")


def usable_cores(root: Path = CONTROL_GROUPS, own_group: Path = OWN_GROUP) -> int:
    """Return the number, at least 1. A container with a quota of 2 cores on a machine of 64 has 2."""
    # os.cpu_count() knows neither: with 64 of each task, such a container would run out of memory.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([cores, *_quotas(root, own_group)]))


def _quotas(root: Path, own_group: Path) -> list[int]:
    """Return the quotas, in whole cores, of this process's group and of those around it (version 2 of control groups)."""
    found = []
    with suppress(OSError):
        for line in own_group.read_text(encoding="ascii").splitlines():
            if line.startswith("0::/"):
                group = root / line.removeprefix("0::/")
                found += [_quota(place / "cpu.max") for place in (group, *group.parents) if place.is_relative_to(root)]
    return [cores for cores in found if cores is not None]


def _quota(file: Path) -> int | None:
    # "200000 100000" are 2 cores, "max 100000" is no limit. A part of a core counts as one: it can do work.
    with suppress(OSError, ValueError):
        quota, period = file.read_text(encoding="ascii").split()
        return -(-int(quota) // int(period))
    return None


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
