"""Upstream waits for a replica that does not apply."""

from applier.demo.live.feed import LIMIT, ROWS_LIMIT, Backlog
from applier.model.position import Ts


def test_rows_stop_first_and_promises_later():
    backlog = Backlog(rows_limit=100, limit=200)
    backlog.wrote(99)
    assert (backlog.takes_rows, backlog.takes_promises) == (True, True)
    backlog.wrote(1)
    assert (backlog.takes_rows, backlog.takes_promises) == (False, True)
    backlog.wrote(100)
    backlog.promised(Ts(1))
    assert (backlog.takes_rows, backlog.takes_promises) == (False, False)


def test_rows_beyond_the_limit_are_promised_or_they_could_never_be_applied():
    backlog = Backlog(rows_limit=100, limit=200)
    backlog.wrote(5000)
    assert backlog.takes_promises
    backlog.promised(Ts(1))
    assert not backlog.takes_promises
    backlog.applied(Ts(1))
    assert backlog.takes_rows


def test_what_is_applied_up_to_a_resolved_ts_makes_room():
    backlog = Backlog(rows_limit=100, limit=200)
    for ts in (10, 20, 30):
        backlog.wrote(60)
        backlog.promised(Ts(ts))
    backlog.applied(Ts(9))
    assert not backlog.takes_rows
    # 10 is durable, 60 bytes of 180 are applied; at 20 it is 120.
    backlog.applied(Ts(19))
    assert not backlog.takes_rows
    backlog.applied(Ts(20))
    assert backlog.takes_rows


def test_it_remembers_only_what_is_not_applied():
    backlog = Backlog()
    for ts in range(1, 10_000):
        backlog.wrote(50)
        backlog.promised(Ts(ts))
        backlog.applied(Ts(ts - 1))
    assert len(backlog._promises) == 1
    assert backlog.takes_rows


def test_the_limits_fit_into_one_partition_of_the_embedded_broker():
    # librdkafka's mock cluster keeps 5 MB of a partition, and adds about 70 bytes to a batch.
    assert ROWS_LIMIT < LIMIT < 5_000_000
