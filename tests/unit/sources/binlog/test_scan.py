"""The scan walks ahead of what is applied, and goes on wherever its connection breaks."""

import time
from contextlib import contextmanager
from itertools import pairwise
from threading import Event

import pytest

from applier.model.errors import InvariantViolation, SourceError
from applier.model.failure import FailureKind
from applier.model.position import Cut
from applier.sources.binlog import event_stream as kinds
from applier.sources.binlog.event_stream import BinlogEvent
from applier.sources.binlog.gtid_set import MysqlGtidSet
from applier.sources.binlog.position import BinlogPosition
from applier.sources.binlog.scan import Scan, _Walk
from applier.sources.binlog.state import CUT_BYTES, Beginning, EndedGroup, Journal

DEADLINE_S = 10
TRANSACTION = 1000
FIRST = BinlogPosition(0, 1, 4).number
HEARTBEAT = BinlogEvent(kinds.HEARTBEAT, FIRST, FIRST, 0, 0, b"")


def transaction(begin: int, size: int = TRANSACTION) -> list[BinlogEvent]:
    """An anonymous transaction: GTID, BEGIN, rows, XID."""
    gtid = bytes(19) + bytes(42)
    ends = [begin + 50, begin + 100, begin + size - 30, begin + size]
    begin_sql = bytes(19) + bytes(8) + b"\0" + bytes(4) + b"\0BEGIN"
    kinds_and_data = [(kinds.ANONYMOUS_GTID, gtid), (kinds.QUERY, begin_sql), (30, None), (kinds.XID, bytes(27))]
    places = pairwise([begin, *ends])
    return [BinlogEvent(kind, first, end, 7, 0, data) for (kind, data), (first, end) in zip(kinds_and_data, places, strict=True)]


class Log:
    """A session on a log of equal transactions. ``failures`` are raised, one for each feed, where its list of events ends."""

    def __init__(self, count, size=TRANSACTION):
        self.ends = [FIRST + size * number for number in range(count + 1)]
        self.size, self.failures, self.opened, self.closed, self.ended = size, [], [], 0, Event()

    def open_feed(self, at):
        self.opened.append(at)
        return Feed(self, at, self.failures.pop(0) if self.failures else None)

    def end(self):
        return self.ends[-1]

    def close(self):
        self.ended.set()


class Feed:
    def __init__(self, log, at, failure):
        self.log, self.at, self.failure = log, at, failure

    def read(self, timeout_s):
        if self.failure is not None:
            where, error = self.failure
            if self.at >= self.log.ends[where]:
                raise error
        if self.at >= self.log.ends[-1]:
            time.sleep(min(timeout_s, 0.01))
            return [HEARTBEAT]
        events = transaction(self.at, self.log.size)
        self.at = events[-1].end
        return events

    def close(self):
        self.log.closed += 1


@contextmanager
def scanning(log, **options):
    beginning = Beginning(position=FIRST, executed=MysqlGtidSet())
    scan = Scan(log, beginning, **options).start()
    try:
        yield scan
    finally:
        scan.close()
    assert log.ended.wait(DEADLINE_S)
    assert log.closed == len(log.opened)


def until(condition):
    give_up = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.005)


def last_of(scan):
    with scan.journal() as journal:
        return journal.last


def lost(message="gone"):
    return SourceError(message, kind=FailureKind.UNREACHABLE)


def test_the_scan_finds_every_boundary_and_the_quiet_end():
    log = Log(50)
    with scanning(log) as scan:
        until(lambda: scan.quiet_ms)
        assert last_of(scan) == log.ends[-1] == scan.server_end
        with scan.journal() as journal:
            assert journal.last_at(log.ends[7]) == EndedGroup(log.ends[6], log.ends[7], "", 7000)
            assert journal.cuts()[-1].offset == log.ends[-1]


def test_a_lost_connection_is_opened_again_at_the_last_group_which_must_be_the_same():
    log = Log(50)
    log.failures = [(20, lost()), (20, lost())]
    with scanning(log) as scan:
        until(lambda: last_of(scan) == log.ends[-1])
        scan.raise_failure(0)
    assert log.opened == [FIRST, log.ends[19], log.ends[19]]


def test_a_server_that_stays_away_is_the_drivers_question():
    log = Log(50)
    log.failures = [(20, lost("away"))] * 1000
    with scanning(log) as scan:
        until(lambda: len(log.opened) > 1)
        scan.raise_failure(DEADLINE_S)
        with pytest.raises(SourceError, match="away"):
            scan.raise_failure(0)


@pytest.mark.parametrize("change", ["another size", "another server", "a defect"])
def test_a_log_that_has_changed_is_not_followed(change):
    log = Log(50)
    error = {"another size": lost(), "another server": SourceError("x", kind=FailureKind.OTHER_SERVER), "a defect": ValueError("x")}[change]
    log.failures = [(20, error)]
    with scanning(log) as scan:
        if change == "another size":
            until(lambda: last_of(scan) == log.ends[20])
            log.size = TRANSACTION + 1
        until(lambda: not scan.is_well)
        with pytest.raises(InvariantViolation if change == "a defect" else SourceError) as caught:
            scan.raise_failure(DEADLINE_S)
        assert change == "a defect" or caught.value.facts["kind"] in {"other_server", "other_log"}
        assert last_of(scan) == log.ends[20]


def test_the_scan_waits_without_a_connection_for_what_is_applied():
    log = Log(100, CUT_BYTES)
    with scanning(log, lookahead_bytes=10 * CUT_BYTES) as scan:
        until(lambda: log.closed == 1)
        ahead = last_of(scan)
        assert ahead == log.ends[11]
        scan.applied(log.ends[3])
        assert log.opened == [FIRST]
        scan.applied(log.ends[6])
        until(lambda: last_of(scan) > ahead)
        scan.applied(log.ends[-1])
        until(lambda: last_of(scan) == log.ends[-1])


def test_a_scan_that_waits_for_anything_can_be_closed():
    for log, options in ((Log(100, CUT_BYTES), {"lookahead_bytes": CUT_BYTES}), (Log(0), {})):
        with scanning(log, **options) as scan:
            until(lambda log=log: log.opened)
            began = time.monotonic()
            scan.close()
        assert time.monotonic() - began < 1


def test_a_log_that_ends_before_what_was_read_is_another_one():
    log = Log(50)
    with scanning(log) as scan:
        until(lambda: last_of(scan) == log.ends[-1])
        scan._asked_s = 0.0
        until(lambda: scan._seen == log.ends[-1])
        log.end, scan._asked_s = lambda: log.ends[3], 0.0
        until(lambda: not scan.is_well)
        with pytest.raises(SourceError) as caught:
            scan.raise_failure(0)
    assert caught.value.facts["kind"] == "other_log"


def test_a_file_that_ends_without_a_rotation_has_the_size_that_was_read():
    second = BinlogPosition(0, 2, 4).number
    journal = Journal(Beginning(position=FIRST, executed=MysqlGtidSet()))
    _Walk(journal).take([*transaction(FIRST), BinlogEvent(kinds.ROTATE, second, second, 0, 0, b"")])
    assert journal.cuts() == (Cut(second, TRANSACTION),)


def test_events_that_look_damaged_because_the_log_was_reset_are_said_to_be_that():
    log = Log(5)
    log.failures = [(3, SourceError("an event of the binlog is damaged", kind=FailureKind.CHECKSUM))]
    before, log.end = log.end, lambda: log.ends[1]
    with scanning(log) as scan:
        assert log.ended.wait(DEADLINE_S)
        with pytest.raises(SourceError, match="it was reset") as caught:
            scan.raise_failure(0)
    assert caught.value.facts["kind"] == "other_log"
    log.failures, log.end = [(3, SourceError("an event of the binlog is damaged", kind=FailureKind.CHECKSUM))], before
    log.ended.clear()
    with scanning(log) as scan:
        assert log.ended.wait(DEADLINE_S)
        with pytest.raises(SourceError, match="is damaged"):
            scan.raise_failure(0)
