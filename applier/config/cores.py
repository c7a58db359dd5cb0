"""How many cores this process may use: those of the machine, less what its affinity and its control groups take away."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

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
