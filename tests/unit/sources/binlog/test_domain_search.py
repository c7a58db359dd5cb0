"""Where the last executed transactions of MariaDB's domains lie in a log: by their exact GTIDs, never by their numbers."""

import pytest

from applier.sources.binlog.group import Group, GroupKind
from applier.sources.binlog.gtid_set import MariadbGtidSet
from applier.sources.binlog.walk import DomainSearch


def groups(*gtids):
    """Return groups of which the first ends at 10, the second at 20."""
    return [Group(GroupKind.TRANSACTION, 10 * at, 10 * at + 10, gtid, "", 0) for at, gtid in enumerate(gtids)]


def search_of(executed, before, *gtids):
    search = DomainSearch(MariadbGtidSet.parse(executed), MariadbGtidSet.parse(before))
    for group in groups(*gtids):
        if not search.is_over:
            search.take(group)
    return search


def left(search, *gtids):
    return [group.gtid for group in groups(*gtids) if not search.is_executed(group)]


def lost(search, held=""):
    return ",".join(map(str, search.lost(MariadbGtidSet.parse(held))))


AFTER_ANALYZE = ("0-2-6", "0-2-7", "0-2-8", "0-1-6", "0-1-7", "0-2-9")
"""A replica has logged its own ANALYZE TABLE before what its primary did; then it is the primary."""


@pytest.mark.parametrize(
    ("executed", "expected"),
    [
        ("0-1-5", AFTER_ANALYZE),
        ("0-1-6", ("0-1-7", "0-2-9")),
        ("0-1-7", ("0-2-9",)),
        ("0-2-8", ("0-1-6", "0-1-7", "0-2-9")),
        ("0-2-9", ()),
    ],
)
def test_what_follows_the_exact_gtid_is_not_executed_whatever_its_number(executed, expected):
    search = search_of(executed, "0-1-5", *AFTER_ANALYZE)
    assert lost(search) == ""
    assert left(search, *AFTER_ANALYZE) == [*expected]


def test_each_domain_is_passed_at_a_place_of_its_own_and_a_new_one_is_executed_nowhere():
    log = ("1-1-4", "0-1-6", "2-1-1", "1-1-5", "1-1-6")
    search = search_of("0-1-5,1-1-5", "0-1-5,1-1-3", *log)
    assert search.ends == {"1-1-5": 40}
    assert left(search, *log) == ["0-1-6", "2-1-1", "1-1-6"]


@pytest.mark.parametrize(
    ("executed", "before", "log"),
    [
        ("0-1-6", "0-1-5", ("0-1-5", "0-1-7")),  # filtered on the way to this server
        ("0-1-6", "0-1-5", ("0-2-6",)),  # never came
        ("0-1-6", "", ("0-1-8",)),  # its log begins later
        ("0-1-6", "", ("0-2-7", "0-1-7")),
    ],
)
def test_a_gtid_that_the_log_does_not_have_is_named(executed, before, log):
    assert lost(search_of(executed, before, *log), "0-2-6") == "0-1-6"


def test_a_log_that_begins_right_behind_the_gtid_has_all_that_follows_it():
    search = search_of("0-1-6", "", "0-1-7", "0-1-8")
    assert (lost(search), left(search, "0-1-7", "0-1-8")) == ("", ["0-1-7", "0-1-8"])


@pytest.mark.parametrize(("held", "expected"), [("5-1-9", ""), ("5-1-10", "5-1-9"), ("5-2-9", "5-1-9"), ("", "5-1-9")])
def test_a_domain_that_was_never_logged_is_complete_if_the_server_has_applied_the_same_last_one(held, expected):
    assert lost(search_of("0-1-5,5-1-9", "0-1-5", "0-1-6"), held) == expected


def test_a_group_that_a_crash_has_cut_is_not_the_one_that_is_sought():
    search = DomainSearch(MariadbGtidSet.parse("0-1-6"), MariadbGtidSet.parse("0-1-5"))
    search.take(Group(GroupKind.UNFINISHED, 0, 10, "0-1-6", "", 0))
    assert not search.is_over
