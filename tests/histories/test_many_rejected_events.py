"""Many rejected events never stop a replica for good: what is stored does not count again, and what the operator skips is no accident."""

import sqlite3

import pytest

from applier.coordinator import Policy
from applier.model.errors import FatalSinkError, ProtocolError, RowRefused, SourceError
from applier.model.events import FoldedName
from applier.model.position import Ts
from applier.model.rejected_event import MAX_QUARANTINED, STORED_AT_ONCE, QuarantineState
from applier.sinks.quarantine import SkipRule
from applier.sources.peek import single_record
from tests.builders.handwritten import CREATE_SCHEMA, KEY, ONE, PLAIN, TWO, ddl, everywhere, log_of, resolved, row, rows_of
from tests.builders.wire import column, record
from tests.rig.fake_source import FakeSource, MemoryReader
from tests.rig.local_replica import STRICT, sqlite_replica
from tests.rig.programs import PROGRAMS

HELD, SKIPPED = QuarantineState.HELD, QuarantineState.SKIPPED
BOTH = frozenset({"unreadable", "rejected"})
BEGINNING = (*everywhere(CREATE_SCHEMA), *everywhere(ddl(10, "CREATE TABLE orders (id INT PRIMARY KEY, n INT)")), *everywhere(resolved(11)))
ORDERS = FoldedName("shop", "orders")

pytestmark = pytest.mark.parametrize("program", PROGRAMS)


def order(ts, number, n=0):
    return row(ts, id=column(3, KEY, number), n=column(3, PLAIN, n))


def unreadable(ts, number):
    return row(ts, id=column(3, KEY, number), n=column(3, PLAIN, "not a number"))


def replica_of(tmp_path, *placed, quarantines=BOTH):
    """A replica that has seen the beginning; the rest of the log is not shown yet. Its table refuses n >= 100, unlike upstream's."""
    source = FakeSource(log_of(*BEGINNING, *placed), hidden=True)
    source.advance(len(BEGINNING))
    replica = sqlite_replica(tmp_path, source, quarantines=quarantines, accept=STRICT)
    replica.catch_up()
    with sqlite3.connect(tmp_path / "replica.db") as connection:
        connection.execute(
            "CREATE TRIGGER strict BEFORE INSERT ON \"shop.orders\" WHEN NEW.n >= 100 BEGIN SELECT RAISE(ABORT, 'too much'); END"
        )
    return replica


def states(replica):
    return [entry.event.state for entry in replica.quarantine().values()]


def test_unreadable_records_that_trickled_in_do_not_stop_a_restart_that_reads_them_in_one_range(tmp_path, program):
    bad = [(ONE, unreadable(20, n)) for n in range(150)]
    replica = replica_of(tmp_path, *bad, (ONE, order(20, 999)), *everywhere(resolved(30)))
    replica.source.advance(len(bad))
    replica.catch_up()
    assert states(replica) == [HELD] * 150
    replica.policy = Policy()
    replica.source.advance(9)
    program(replica)
    program(replica)
    assert (states(replica), rows_of(tmp_path)) == ([HELD] * 150, [(999, 0)])


def test_what_is_new_still_counts_beside_what_is_stored(tmp_path, program):
    bad = [(ONE, unreadable(20, n)) for n in range(150)]
    more = [(ONE, unreadable(21, n)) for n in range(MAX_QUARANTINED + 1)]
    replica = replica_of(tmp_path, *bad, *more, *everywhere(resolved(30)))
    replica.source.advance(len(bad))
    replica.catch_up()
    replica.policy = Policy()
    replica.source.advance(len(more) - 1)
    program(replica)
    assert len(states(replica)) == 150 + MAX_QUARANTINED
    replica.source = FakeSource(log_of(*BEGINNING, *bad, *more, *[(ONE, unreadable(22, n)) for n in range(MAX_QUARANTINED + 1)]))
    with pytest.raises(SourceError) as caught:
        program(replica)
    assert caught.value.facts["kind"] == "too_many_bad_events"


def test_refused_rows_at_the_checkpoint_do_not_count_again_after_a_restart(tmp_path, program):
    """A restart reads the rows at the checkpoint again, and applies them with the next segment."""
    before = [(ONE, order(20, n, 100)) for n in range(60)]
    after = [(TWO, order(25, 100 + n, 100)) for n in range(60)]
    replica = replica_of(tmp_path, *before, *everywhere(resolved(20)), *after, (TWO, order(25, 999)), *everywhere(resolved(30)))
    replica.policy = Policy()
    replica.source.advance(len(before) + 2)
    assert replica.catch_up().checkpoint_ts == 20
    assert states(replica) == [HELD] * 60
    replica.source.advance(99)
    program(replica)
    assert (states(replica), rows_of(tmp_path)) == ([HELD] * 120, [(999, 0)])


def test_more_new_refused_rows_than_an_accident_makes_still_stop(tmp_path, program):
    replica = replica_of(tmp_path, *[(ONE, order(20, n, 100)) for n in range(MAX_QUARANTINED + 1)], *everywhere(resolved(30)))
    replica.policy = Policy()
    replica.source.advance(999)
    with pytest.raises(FatalSinkError, match="100"):
        program(replica)
    assert states(replica) == []


@pytest.mark.parametrize("table", [ORDERS, None], ids=["by table", "by timestamp alone"])
@pytest.mark.parametrize(("make", "error"), [(unreadable, ProtocolError), (lambda ts, n: order(ts, n, 100), RowRefused)])
@pytest.mark.parametrize("quarantines", [frozenset(), BOTH], ids=["stop", "quarantine"])
def test_a_transaction_of_many_rows_can_be_skipped(tmp_path, program, table, make, error, quarantines):
    bad = [(stream, make(20, 2 * n + stream.partition)) for n in range(MAX_QUARANTINED + 1) for stream in (ONE, TWO)]
    replica = replica_of(tmp_path, *bad, (ONE, order(21, 999)), *everywhere(resolved(30)), quarantines=quarantines)
    replica.policy = Policy()
    replica.source.advance(9_999)
    with pytest.raises((error, FatalSinkError, SourceError)):
        program(replica)
    replica.skip(SkipRule(decided_by="me@here", commit_ts=Ts(20), table=table))
    program(replica)
    assert (states(replica), rows_of(tmp_path)) == ([SKIPPED] * len(bad), [(999, 0)])
    program(replica)
    assert len(states(replica)) == len(bad)


class CountingReader:
    """Counts the ranges that are read, in this process."""

    read_ranges: list = []  # noqa: RUF012 - shared by all copies

    def __init__(self, reader: MemoryReader):
        self._reader = reader

    def read(self, ranges):
        self.read_ranges.extend(ranges)
        return self._reader.read(ranges)

    def records_at(self, stream, offset):
        return single_record(self, stream, offset)


class CountingSource(FakeSource):
    @property
    def reader(self):
        return CountingReader(super().reader)


def test_a_skipped_transaction_of_any_size_is_stored_in_several_transactions_that_read_each_record_once(tmp_path, program):
    """Its positions move with the last of them: a run that dies in between stores the rest later."""
    rows = 2 * STORED_AT_ONCE + 500
    replica = replica_of(tmp_path, quarantines=frozenset())
    key, value = record(*[order(20, n) for n in range(50)])
    log = log_of(*BEGINNING, *[(ONE, order(20, n)) for n in range(rows // 50)], (ONE, order(21, 9_999)), *everywhere(resolved(30)))
    start = len(BEGINNING)
    log[start : start + rows // 50] = [each._replace(key=key, value=value) for each in log[start : start + rows // 50]]
    replica.source = CountingSource(log)
    replica.policy = Policy()
    replica.skip(SkipRule(decided_by="me@here", commit_ts=Ts(20), table=ORDERS))
    CountingReader.read_ranges.clear()
    program(replica)
    assert (states(replica), rows_of(tmp_path)) == ([SKIPPED] * rows, [(9_999, 0)])
    one_record = [r for r in CountingReader.read_ranges if r.end - r.start == 1]
    assert len(one_record) <= rows // 50 + 3
