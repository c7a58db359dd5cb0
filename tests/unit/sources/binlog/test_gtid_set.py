"""Sets of executed transactions, in the notation of both servers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from applier.sources.binlog.gtid_set import Gtid, MariadbGtidSet, MysqlGtidSet

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4350f323-7565-4e59-8763-4b1b83a0ce0e"


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("", ""),
        (f"{A}:1-5", f"{A}:1-5"),
        (f"{A.upper()}:1-5:7:9-10,\n{B}:1", f"{A}:1-5:7:9-10,{B}:1"),
        (f"{A}:1-5:6-8:3", f"{A}:1-8"),
        (f"{A}:1-3:Sales:1-2:5,{B}:audit:7", f"{A}:1-3,{A}:sales:1-2:5,{B}:audit:7"),
    ],
)
def test_a_set_of_mysql_is_read_and_spelt_as_the_server_does(text, spelt):
    assert str(MysqlGtidSet.parse(text)) == spelt
    assert str(MysqlGtidSet.parse(spelt)) == spelt


@pytest.mark.parametrize("text", ["x", f"{A}", f"{A}:0-5", f"{A}:5-3", "0-1-2-3", "not-a-uuid:1"])
def test_what_is_no_set_of_mysql_is_refused(text):
    with pytest.raises(ValueError):
        MysqlGtidSet.parse(text)


@given(
    st.lists(st.tuples(st.sampled_from([A, B, f"{A}:t"]), st.integers(1, 30))),
    st.lists(st.tuples(st.sampled_from([A, B]), st.integers(1, 30))),
)
def test_a_set_of_mysql_behaves_as_a_set_of_transactions(left, right):
    sets = []
    for members in (left, right):
        one = MysqlGtidSet()
        for source, number in members:
            one.add(Gtid(source, number))
        assert all((Gtid(source, number) in one) == ((source, number) in members) for source in (A, B, f"{A}:t") for number in range(1, 32))
        assert str(MysqlGtidSet.parse(str(one))) == str(one)
        sets.append(one)
    missing = MysqlGtidSet()
    for source, number in set(left) - set(right):
        missing.add(Gtid(source, number))
    assert sets[0].missing_in(sets[1]) == str(missing)


def test_a_copy_does_not_change_with_its_set():
    for executed, gtid in ((MysqlGtidSet.parse(f"{A}:1"), Gtid(A, 2)), (MariadbGtidSet.parse("0-1-1"), Gtid("0-1", 2))):
        copy, before = executed.copy(), str(executed)
        executed.add(gtid)
        assert str(executed) != before
        assert str(copy) == before


def test_a_set_of_mariadb_is_the_last_transaction_of_each_domain():
    executed = MariadbGtidSet.parse("[10-3-7,0-1-5]")
    assert str(executed) == "0-1-5,10-3-7"
    executed.add(Gtid("0-2", 6))  # after a failover inside of the upstream
    assert str(executed) == "0-2-6,10-3-7"
    assert executed.last("0") == Gtid("0-2", 6)
    assert executed.last("1") is None


def test_a_server_of_mariadb_holds_what_its_binlog_has_of_the_same_domain_and_server():
    state = MariadbGtidSet.parse("0-1-5,0-2-9,1-1-3")
    assert MariadbGtidSet.parse("0-1-5,1-1-2").missing_in(state) == ""
    assert MariadbGtidSet.parse("0-1-6").missing_in(state) == "0-1-6"  # it was lost with the old server
    assert MariadbGtidSet.parse("2-1-1").missing_in(state) == "2-1-1"


@pytest.mark.parametrize("text", [f"{A}:7", f"{A}:tag:7", "0-1-7"])
def test_a_gtid_is_spelt_as_its_server_does(text):
    assert str(Gtid.parse(text)) == text


def test_the_last_transaction_of_a_domain_is_the_last_that_was_logged_whatever_its_number():
    executed = MariadbGtidSet.parse("0-1-10,1-1-6")
    for gtid in ("0-1-11", "1-1-5", "1-2-4"):
        executed.add(Gtid.parse(gtid))
    assert str(executed) == "0-1-11,1-2-4"
    assert executed.ambiguous == "1"
    assert str(MariadbGtidSet.parse("[0-2-13,0-1-7]")) == "0-1-7"


@pytest.mark.parametrize(
    ("before", "executed", "holds_the_rest"),
    [
        ("", "0-1-5", True),
        ("0-1-5", "0-1-5", True),
        ("0-1-5", "0-1-6", True),
        ("0-1-6", "0-1-5", False),
        ("0-1-5,0-2-13", "0-1-5", False),  # the replica's own transactions follow it in an earlier file
        ("0-2-13,0-1-5", "0-1-5", True),
        ("0-2-13,0-1-6", "0-2-13", False),
        ("0-2-13", "0-1-6", True),  # greater, and logged before
        ("0-1-5,1-1-1", "0-1-5", False),  # a domain that the replica does not know begins earlier
        ("0-1-5", "0-1-5,1-1-1", True),
    ],
)
def test_a_file_holds_what_follows_if_the_exact_last_transactions_are_at_its_beginning_or_behind_it(before, executed, holds_the_rest):
    assert MariadbGtidSet.parse(before).precedes(MariadbGtidSet.parse(executed)) is holds_the_rest
