"""The cores that a process may use: the least of machine, affinity and quotas."""

import os

import pytest

from applier.config.spark import usable_cores

ALL = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("own", "around", "cores"),
    [
        ("100000 100000", "max 100000", 1),
        ("max 100000", "100000 100000", 1),
        ("50000 100000", "max 100000", 1),
        ("150000 100000", "max 100000", min(2, ALL)),
        ("6400000 100000", "max 100000", ALL),
        ("max 100000", "max 100000", ALL),
        ("nonsense", "", ALL),
    ],
)
def test_the_least_quota_of_the_groups_counts(tmp_path, own, around, cores):
    group = tmp_path / "system.slice" / "applier"
    group.mkdir(parents=True)
    (group / "cpu.max").write_text(own)
    (group.parent / "cpu.max").write_text(around)
    named = tmp_path / "cgroup"
    named.write_text("3:cpuset:/\n0::/system.slice/applier\n")
    assert usable_cores(tmp_path, named) == cores


def test_without_control_groups_every_core_counts(tmp_path):
    assert usable_cores(tmp_path, tmp_path / "missing") == ALL
