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
        copy = executed.copy()
        executed.add(gtid)
        assert gtid in executed
        assert gtid not in copy


def test_a_set_of_mariadb_is_the_last_transaction_of_each_domain():
    executed = MariadbGtidSet.parse("[10-3-7,0-1-5]")
    assert str(executed) == "0-1-5,10-3-7"
    executed.add(Gtid("0-2", 6))  # after a failover inside of the upstream
    assert str(executed) == "0-2-6,10-3-7"
    assert Gtid("0-1", 4) in executed
    assert Gtid("0-9", 7) not in executed
    assert Gtid("1-1", 1) not in executed


def test_a_server_of_mariadb_holds_what_its_binlog_has_of_the_same_domain_and_server():
    state = MariadbGtidSet.parse("0-1-5,0-2-9,1-1-3")
    assert MariadbGtidSet.parse("0-1-5,1-1-2").missing_in(state) == ""
    assert MariadbGtidSet.parse("0-1-6").missing_in(state) == "0-1-6"  # it was lost with the old server
    assert MariadbGtidSet.parse("2-1-1").missing_in(state) == "2-1-1"


@pytest.mark.parametrize("text", [f"{A}:7", f"{A}:tag:7", "0-1-7"])
def test_a_gtid_is_spelt_as_its_server_does(text):
    assert str(Gtid.parse(text)) == text


def test_what_was_executed_before_a_greater_one_of_its_domain_is_not_the_last_one():
    executed = MariadbGtidSet.parse("0-1-10,1-1-6")
    for gtid in ("0-1-11", "1-1-5", "1-2-4"):
        executed.add(Gtid.parse(gtid))
    assert str(executed) == "0-1-11,1-1-6"
