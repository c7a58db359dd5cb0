"""Transactions that are executed, and lie behind the place nevertheless."""

import pytest

from applier.sources.binlog.group import Group, GroupKind
from applier.sources.binlog.walk import NONE_SKIPPED, SkippedGroups

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4350f323-7565-4e59-8763-4b1b83a0ce0e"
SKIPPED = SkippedGroups(100, f"{A}:1-5")


@pytest.mark.parametrize(
    ("end", "gtid", "kind", "is_skipped"),
    [
        (200, f"{A}:5", GroupKind.TRANSACTION, True),
        (200, f"{A}:6", GroupKind.TRANSACTION, False),
        (200, f"{B}:1", GroupKind.QUERY, False),
        (200, "", GroupKind.QUERY, False),
        (100, f"{A}:5", GroupKind.TRANSACTION, False),  # the group at the checkpoint is read again as always
        (200, f"{A}:5", GroupKind.XA_PREPARE, False),  # its commit may follow
        (200, f"{A}:5", GroupKind.XA_COMMIT, True),
    ],
)
def test_only_executed_groups_behind_the_place_are_skipped(end, gtid, kind, is_skipped):
    group = Group(kind, end - 50, end, gtid, "", 0)
    assert SKIPPED.contain(group) is is_skipped
    assert not NONE_SKIPPED.contain(group)


@pytest.mark.parametrize(
    ("gtid", "end", "is_skipped"),
    [("1-7-5", 150, True), ("1-9-80", 180, True), ("1-7-5", 250, False), ("0-7-3", 150, False), ("2-7-1", 150, False)],
)
def test_a_domain_of_mariadb_is_executed_up_to_a_place_whatever_the_numbers(gtid, end, is_skipped):
    group = Group(GroupKind.TRANSACTION, end - 10, end, gtid, "", 0)
    skipped = SkippedGroups(100, passed={"1-7-6": 200})
    assert skipped.contain(group) is is_skipped
    assert (skipped.passed_behind(199), skipped.passed_behind(200)) == ({"1-7-6": 200}, {})
